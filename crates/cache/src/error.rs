//! Errors of the cache.

use std::fmt;

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An option is out of its range.
    Options {
        /// Name of the option.
        option: &'static str,
        /// The values that are allowed.
        expected: String,
        /// The value that was set.
        found: String,
    },
    /// The system did not provide address space.
    Memory(std::io::Error),
    /// 1,024 sessions are open, which is the maximum.
    TooManySessions,
    /// A key or a value exceeds its maximum length.
    TooLong {
        /// `key` or `value`.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The maximum length in bytes.
        max: usize,
    },
    /// No memory is free under this guard. [`Guard::renew`](crate::Guard::renew) frees memory if it
    /// can: evicted memory becomes available only after the guard. Without eviction, the budget may
    /// be used up.
    Full,
    /// The item is on disk, or an operation before under this guard needed one that is:
    /// [`Guard::take_on_disk`](crate::Guard::take_on_disk).
    OnDisk,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options { option, expected, found } => {
                write!(f, "{option}: expected {expected}, found {found}")
            }
            Self::Memory(source) => write!(f, "cannot reserve address space: {source}"),
            Self::TooManySessions => f.write_str("too many sessions are open"),
            Self::TooLong { what, len, max } => {
                write!(f, "a {what} of {len} bytes is too long: at most {max} can be stored")
            }
            Self::Full => f.write_str("the memory is used up"),
            Self::OnDisk => f.write_str("the item is on disk and must be read first"),
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
