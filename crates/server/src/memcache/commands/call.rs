//! One request, on its way to its answer.

use crate::ZeroCopyValues;
use crate::memcache::Flags;
use crate::memcache::reply::{self, LINE_END, Line};
use crate::state::MemcachedState;
use crate::state::Server;
use nuthatch_cache::{Guard, Item};

/// All that a request needs to be answered.
#[derive(Debug)]
pub struct Call<'a> {
    /// The cache.
    pub guard: &'a Guard<'a>,
    /// What all connections share.
    pub server: &'a Server,
    /// What those that speak this protocol share.
    pub shared: &'a MemcachedState,
    /// Where the answer goes, behind those of earlier requests.
    pub out: &'a mut Vec<u8>,
    /// Values of answers that are not there.
    pub zero_copy: &'a mut ZeroCopyValues,
}

impl Call<'_> {
    /// Answers with the value of an item, behind the line that tells of it.
    #[inline]
    pub(crate) fn value(&mut self, item: &Item<'_>) {
        self.zero_copy.value(self.guard, &self.server.cache, item, self.out);
        self.out.extend_from_slice(LINE_END);
    }

    /// The number for compare-and-set that what is written gets: the one that the client wants, or
    /// a new one if it is to be told.
    pub(crate) fn cas_to_store(&self, flags: &Flags<'_>) -> Option<u64> {
        let new_cas = || flags.has(b'c').then(|| self.guard.new_cas());
        flags.new_cas().or_else(new_cas)
    }

    /// Takes back what was answered from `start` on.
    pub(crate) fn truncate_output(&mut self, start: usize) {
        self.zero_copy.truncate_output(self.out, start);
    }

    /// Answers a line, if the client wants one.
    pub(crate) fn answer(&mut self, noreply: bool, line: Line) {
        if !noreply {
            reply::line(self.out, line);
        }
    }
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next request, please.
    Continue,
    /// It ends once all answers are sent.
    Close,
}
