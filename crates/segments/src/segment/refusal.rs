//! Why a segment could not be opened.

use nuthatch_filesystem::file_limit_advice;
use rustix::io::Errno;
use std::fmt;

/// Why a segment could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no such file.
    Missing,
    /// It is no segment, or not the one that its name says.
    Damaged,
    /// A newer version of this crate wrote it.
    Newer,
    /// The system refused: nothing is known of it.
    System(Errno),
}

impl Refusal {
    /// Returns whether the segment may be whole all the same.
    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, Self::System(_) | Self::Newer)
    }
}

impl fmt::Display for Refusal {
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

pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
