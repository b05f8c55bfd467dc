//! What can go wrong.

use std::fmt;

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done. That chunks are missing or could not be kept is no error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The folder cannot be used as it was asked for.
    Folder(nuthatch_segments::Error),
    /// A chunk is there with other bytes. What is there stays.
    Conflict {
        /// The number of the first such chunk.
        chunk: u64,
    },
    /// A range is empty, ends before it begins, or reaches beyond the object.
    Range {
        /// Its start.
        start: u64,
        /// Its end, which does not belong to it.
        end: u64,
        /// Where the object ends.
        most: u64,
    },
    /// Offsets of chunks do not fit the range or the bytes that came with them.
    Offsets {
        /// What they ought to be.
        expected: String,
        /// What they are.
        found: String,
    },
    /// More bytes than the folder may ever keep.
    TooLarge {
        /// How many there are.
        len: u64,
        /// How many there may be.
        most: u64,
    },
    /// A buffer has not the length of what is read into it.
    Buffer {
        /// The length that it ought to have.
        expected: u64,
        /// The length that it has.
        found: u64,
    },
    /// The key of an object cannot be used.
    Key {
        /// What it ought to be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// Bytes do not have the hash that they are named by.
    Content,
}

impl Error {
    /// A name for the kind of error, that stays.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Folder(nuthatch_segments::Error::Options { .. }) => "options",
            Self::Folder(_) => "folder",
            Self::Conflict { .. } => "conflict",
            Self::Range { .. } => "range",
            Self::Offsets { .. } => "offsets",
            Self::TooLarge { .. } => "too-large",
            Self::Buffer { .. } => "buffer",
            Self::Key { .. } => "key",
            Self::Content => "content",
        }
    }
}

impl From<nuthatch_segments::Error> for Error {
    fn from(error: nuthatch_segments::Error) -> Self {
        Self::Folder(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(source) => source.fmt(f),
            Self::Conflict { chunk } => {
                write!(f, "chunk {chunk} is there with other bytes; what is there stays")
            }
            Self::Range { start, end, most } => {
                write!(f, "range: expected one within 0..{most}, found {start}..{end}")
            }
            Self::Offsets { expected, found } => {
                write!(f, "offsets: expected {expected}, found {found}")
            }
            Self::TooLarge { len, most } => {
                write!(f, "{len} bytes are too many to be kept: at most {most}")
            }
            Self::Buffer { expected, found } => {
                write!(f, "a buffer: expected {expected} bytes, found {found}")
            }
            Self::Key { expected, found } => write!(f, "a key: expected {expected}, found {found}"),
            Self::Content => f.write_str("the bytes do not have the hash that they are named by"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Folder(source) => Some(source),
            _ => None,
        }
    }
}
