//! Errors of this crate.

use std::fmt;

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate. Chunks that are missing or could not be kept are not errors.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The folder cannot be opened or changed.
    Folder(nuthatch_segments::Error),
    /// A chunk is stored with other bytes. They are kept.
    Conflict {
        /// The number of the first such chunk.
        chunk: u64,
    },
    /// A range is empty, ends before it begins, or reaches beyond the object.
    Range {
        /// Its start.
        start: u64,
        /// Its end, which is not included.
        end: u64,
        /// The end of the object.
        max: u64,
    },
    /// Offsets of chunks do not match the range or the bytes.
    Offsets {
        /// The expected value.
        expected: String,
        /// The value.
        found: String,
    },
    /// A put, a chunk or a block is too long for the limit of the folder, or a block length is
    /// zero.
    TooLarge {
        /// The length in bytes.
        len: u64,
        /// The maximum length in bytes.
        max: u64,
    },
    /// A buffer has the wrong length.
    Buffer {
        /// The expected length.
        expected: u64,
        /// Its length.
        found: u64,
    },
    /// A key is invalid.
    Key {
        /// The expected form.
        expected: &'static str,
        /// The key.
        found: String,
    },
    /// Bytes do not have the hash that names them.
    Content,
}

impl Error {
    /// Returns the name of the kind of error. It never changes.
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
                write!(f, "chunk {chunk} is stored with other bytes, which are kept")
            }
            Self::Range { start, end, max } => {
                write!(f, "range: expected one within 0..{max}, found {start}..{end}")
            }
            Self::Offsets { expected, found } => {
                write!(f, "offsets: expected {expected}, found {found}")
            }
            Self::TooLarge { len, max } => {
                write!(f, "a length: expected 1 to {max} bytes, found {len}")
            }
            Self::Buffer { expected, found } => {
                write!(f, "a buffer: expected {expected} bytes, found {found}")
            }
            Self::Key { expected, found } => write!(f, "a key: expected {expected}, found {found}"),
            Self::Content => f.write_str("the bytes do not have the expected BLAKE3 hash"),
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
