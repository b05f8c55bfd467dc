//! One request, on its way to its answer.

use super::Shared;
use crate::commands::Server;
use crate::protocol::memcache::reply::{self, Line};
use nuthatch_cache::Turn;

/// All that a request needs to be answered.
#[derive(Debug)]
pub struct Call<'a> {
    /// The cache.
    pub turn: &'a Turn<'a>,
    /// What all connections share.
    pub server: &'a Server,
    /// What those that speak this protocol share.
    pub shared: &'a Shared,
    /// Where the answer goes, behind those of earlier requests.
    pub out: &'a mut Vec<u8>,
}

impl Call<'_> {
    /// Answers a line, if the client wants one.
    pub(super) fn answer(&mut self, noreply: bool, line: Line) {
        if !noreply {
            reply::line(self.out, line);
        }
    }
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next request, please.
    GoOn,
    /// It ends once all answers are sent.
    Close,
}
