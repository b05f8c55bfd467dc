//! What can go wrong.

use std::fmt;

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An option is out of its range.
    Options {
        /// The option's name.
        option: &'static str,
        /// What it may be.
        expected: String,
        /// What it was.
        found: String,
    },
    /// The system gave no memory.
    Memory(std::io::Error),
    /// There are as many sessions as there can be.
    TooManySessions,
    /// A key or a value is longer than it may be.
    TooLong {
        /// `key` or `value`.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The greatest length.
        most: usize,
    },
    /// The budget is used up: nothing may be evicted, or what was comes back after this turn. See
    /// [`Turn::renew`](crate::Turn::renew).
    Full,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options { option, expected, found } => {
                write!(f, "{option}: expected {expected}, found {found}")
            }
            Self::Memory(source) => write!(f, "the system gave no memory: {source}"),
            Self::TooManySessions => f.write_str("too many sessions are open"),
            Self::TooLong { what, len, most } => {
                write!(f, "a {what} of {len} bytes is too long: at most {most} can be stored")
            }
            Self::Full => f.write_str("the memory is used up"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(source) => Some(source),
            _ => None,
        }
    }
}
