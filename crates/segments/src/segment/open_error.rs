//! Reasons for which a segment cannot be used.

use nuthatch_filesystem::file_limit_advice;
use rustix::io::Errno;
use std::fmt;

/// The reason for which a segment cannot be opened or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The file does not exist.
    Missing,
    /// The file is not a segment, or not the one of its name.
    Damaged,
    /// A newer version of this crate wrote the file.
    Newer,
    /// The system refused. The segment may be intact.
    System(Errno),
}

impl OpenError {
    /// Returns whether the segment may be intact in spite of the error.
    pub(crate) fn may_be_intact(self) -> bool {
        matches!(self, Self::System(_) | Self::Newer)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such file"),
            Self::Damaged => f.write_str("damaged"),
            Self::Newer => f.write_str("a newer version wrote it"),
            Self::System(errno) => {
                let error = std::io::Error::from(*errno);
                write!(f, "{error}{}", file_limit_advice(&error).unwrap_or_default())
            }
        }
    }
}

/// Returns the number of an error of the system.
pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
