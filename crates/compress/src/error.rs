//! The errors of this crate.

use std::fmt;
use std::path::PathBuf;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of decoding a value, or of loading, training or adding a dictionary.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An encoded value ends before a part of it.
    Truncated {
        /// The part that is missing.
        part: &'static str,
        /// The minimum length of the encoded value in bytes, as far as it is known.
        expected_len: u64,
        /// Its length in bytes.
        found_len: u64,
    },
    /// An encoded value continues after its last block.
    TrailingBytes {
        /// The expected length of the encoded value in bytes.
        expected_len: u64,
        /// Its length in bytes.
        found_len: u64,
    },
    /// The descriptor of an encoded value is not that of a codec of this version.
    UnknownCodec {
        /// The offset of the descriptor.
        offset: usize,
        /// The descriptor.
        found: u8,
    },
    /// A field of an encoded value is invalid.
    Invalid {
        /// The offset of the field.
        offset: u64,
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// The value needs a dictionary that is not in the set.
    UnknownDictionary {
        /// The id of the dictionary.
        id: u32,
    },
    /// The raw value is longer than the caller allows.
    TooLong {
        /// The limit of the caller in bytes.
        limit: u64,
        /// The length of the raw value in bytes.
        found: u64,
    },
    /// The blocks of an encoded value are damaged.
    Damaged {
        /// The length of the raw value in bytes.
        raw_len: u64,
        /// The message of zstd.
        message: String,
    },
    /// Memory could not be allocated.
    OutOfMemory {
        /// What the memory was for.
        purpose: &'static str,
        /// The size in bytes. 0 if zstd does not report it.
        bytes: u64,
    },
    /// The bytes are not a dictionary of zstd with an id.
    NotADictionary {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// The set already has another dictionary with the same id.
    DuplicateId {
        /// The id.
        id: u32,
    },
    /// The set has no room for another dictionary.
    NoRoom {
        /// The limit of the set in bytes.
        limit: u64,
        /// The number of bytes that all dictionaries would need.
        needed: u64,
    },
    /// No dictionary can be trained from the samples.
    Training {
        /// The number of samples.
        samples: usize,
        /// The length of all samples in bytes.
        bytes: u64,
        /// The reason.
        message: String,
    },
    /// A file of a dictionary cannot be read or written, or is invalid.
    File {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        operation: &'static str,
        /// The error of the system, or that of the content.
        source: std::io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { part, expected_len, found_len } => write!(
                f,
                "compressed value: expected at least {expected_len} bytes for {part}, found \
                 {found_len}"
            ),
            Self::TrailingBytes { expected_len, found_len } => write!(
                f,
                "compressed value: expected its end after {expected_len} bytes, found {found_len}"
            ),
            Self::UnknownCodec { offset, found } => write!(
                f,
                "compressed value: offset {offset}: expected the descriptor of a zstd frame with \
                 a length and without dictionary id or checksum, found {found:#04x}"
            ),
            Self::Invalid { offset, expected, found } => {
                write!(f, "compressed value: offset {offset}: expected {expected}, found {found}")
            }
            Self::UnknownDictionary { id } => {
                write!(f, "compressed value: expected a known dictionary, found the id {id}")
            }
            Self::TooLong { limit, found } => write!(
                f,
                "compressed value: expected a value of at most {limit} bytes, found one of {found}"
            ),
            Self::Damaged { raw_len, message } => {
                write!(f, "compressed value: expected {raw_len} bytes, found damage: {message}")
            }
            Self::OutOfMemory { purpose, bytes: 0 } => write!(f, "{purpose}: out of memory"),
            Self::OutOfMemory { purpose, bytes } => {
                write!(f, "{purpose}: out of memory: {bytes} bytes")
            }
            Self::NotADictionary { expected, found } => {
                write!(f, "dictionary: expected {expected}, found {found}")
            }
            Self::DuplicateId { id } => write!(
                f,
                "dictionary: expected an id that no other dictionary has, found {id}; train the \
                 dictionary with another id"
            ),
            Self::NoRoom { limit, needed } => write!(
                f,
                "dictionary: expected at most {limit} bytes for all dictionaries, found {needed}"
            ),
            Self::Training { samples, bytes, message } => {
                let s = if *samples == 1 { "" } else { "s" };
                write!(f, "training from {samples} sample{s} with {bytes} bytes: {message}")
            }
            Self::File { path, operation, source } => {
                write!(f, "{}: {operation}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}
