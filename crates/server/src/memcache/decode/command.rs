//! What a line says, before the data block that may follow it.

use super::error::Error;
use super::request::Request;

/// A line that is understood.
pub(crate) enum Command<'b> {
    /// A request without data.
    Whole(Request<'b>),
    /// A request to store what follows, which is this long.
    Block(Request<'b>, usize),
}

/// A line that is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) error: Error,
    /// Whether the client asked for no reply; like memcached, not even this one.
    pub(crate) quiet: bool,
    pub(crate) rest: Rest,
}

/// What follows a line that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The next line.
    Line,
    /// A data block of this length, and then the next line.
    Block(usize),
    /// A data block whose length is unknown.
    Unknown,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::new(error, false)
    }
}

impl Fault {
    pub(crate) fn new(error: Error, quiet: bool) -> Self {
        Self { error, quiet, rest: Rest::Line }
    }

    /// A line that stores something, without a length that can be trusted: what follows may be a
    /// value or commands, so the connection must be closed.
    pub(crate) fn without_length(error: Error) -> Self {
        Self { error, quiet: false, rest: Rest::Unknown }
    }
}
