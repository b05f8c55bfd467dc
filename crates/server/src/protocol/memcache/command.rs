//! What a line says, before the data block that may follow it.

use super::error::Error;
use super::request::Request;

/// A line that is understood.
pub(super) enum Command<'b> {
    /// A request without data.
    Whole(Request<'b>),
    /// A request to store what follows, which is this long.
    Block(Request<'b>, usize),
}

/// A line that is refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) error: Error,
    /// Whether the client asked for no reply; like memcached, not even this one.
    pub(super) quiet: bool,
    /// The length of the data block that follows all the same.
    pub(super) block: Option<usize>,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { error, quiet: false, block: None }
    }
}

impl Fault {
    pub(super) fn new(error: Error, quiet: bool) -> Self {
        Self { error, quiet, block: None }
    }
}
