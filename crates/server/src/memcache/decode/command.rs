//! A parsed line, before the data block that may follow it.

use super::error::Error;
use super::request::Request;

/// A valid line.
pub(crate) enum Command<'b> {
    /// A request without a data block.
    Whole(Request<'b>),
    /// A request with a data block of this length.
    Block(Request<'b>, usize),
}

/// An invalid line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) error: Error,
    /// Whether the request has `noreply`. As in memcached, the client then gets no error either.
    pub(crate) quiet: bool,
    pub(crate) rest: Rest,
}

/// What follows an invalid line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Another line.
    Line,
    /// A data block of this length, then another line.
    Block(usize),
    /// A data block of unknown length.
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

    /// Returns the fault of a storage command without a valid length. The next bytes may be a value
    /// or commands, so the connection must be closed.
    pub(crate) fn without_length(error: Error) -> Self {
        Self { error, quiet: false, rest: Rest::Unknown }
    }
}
