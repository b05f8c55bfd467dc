//! What clients ask for, and why they are sent away.

use super::layout::Op;
use std::fmt;

/// A request. Keys and values lie in the bytes that were decoded, and may be any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'b> {
    /// A value for a key.
    Get {
        /// Of what.
        key: &'b [u8],
    },
    /// Store a value; there is no reply.
    Set {
        /// Where.
        key: &'b [u8],
        /// What.
        value: &'b [u8],
    },
    /// A value that was stored by [`Request::SetZ`], as it was before.
    GetZ {
        /// Of what.
        key: &'b [u8],
    },
    /// Store a value compressed; there is no reply.
    SetZ {
        /// Where.
        key: &'b [u8],
        /// What, not compressed yet.
        value: &'b [u8],
    },
    /// Write statistics to the log; there is no reply.
    Stat,
}

/// Why a connection is closed. The protocol has no reply for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An operation that there is not.
    UnknownOp {
        /// Its number.
        found: u8,
    },
    /// A key over the limit.
    KeyTooLong {
        /// Of which operation.
        op: Op,
        /// Its length.
        found: usize,
        /// The limit.
        max: usize,
    },
    /// A value over the limit, or with a length below 0.
    ValueTooLong {
        /// Of which operation.
        op: Op,
        /// Its length, as a number without sign.
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
