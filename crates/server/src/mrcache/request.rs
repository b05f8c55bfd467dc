//! Requests of mrcache clients, and errors.

use super::layout::Op;
use std::fmt;

/// A request. Keys and values borrow from the decoded bytes, and may contain any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'b> {
    /// Gets the value of a key.
    Get {
        /// The key.
        key: &'b [u8],
    },
    /// Stores a value. There is no reply.
    Set {
        /// The key.
        key: &'b [u8],
        /// The value.
        value: &'b [u8],
    },
    /// The same as [`Request::Get`].
    GetZ {
        /// The key.
        key: &'b [u8],
    },
    /// The same as [`Request::Set`]. There is no reply.
    SetZ {
        /// The key.
        key: &'b [u8],
        /// The value, not compressed.
        value: &'b [u8],
    },
    /// Does nothing. There is no reply.
    Stat,
}

/// Why a connection is closed: its bytes are no valid request. The protocol has no error replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An unknown operation.
    UnknownOp {
        /// The number of the operation that was received.
        found: u8,
    },
    /// A key that exceeds the limit.
    KeyTooLong {
        /// The operation.
        op: Op,
        /// The length.
        found: usize,
        /// The limit.
        max: usize,
    },
    /// A value that exceeds the limit, or has a negative length.
    ValueTooLong {
        /// The operation.
        op: Op,
        /// The length as an unsigned number.
        found: usize,
        /// The limit.
        max: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOp { found } => {
                write!(f, "expected an operation from 1 to 5, found {found}")
            }
            Self::KeyTooLong { op, found, max } => {
                write!(f, "{op:?}: expected a key of at most {max} bytes, found {found}")
            }
            Self::ValueTooLong { op, found, max } => {
                write!(f, "{op:?}: expected a value of at most {max} bytes, found {found}")
            }
        }
    }
}

impl std::error::Error for Error {}
