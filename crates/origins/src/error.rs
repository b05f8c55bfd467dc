//! What can go wrong.

use nuthatch_chunks::file_limit_advice;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why bytes of an object could not be had. Addresses in it have no secrets. A cache that fails is
/// none of these, but for opening its folder: bytes then come from the origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The folder of the cache cannot be opened.
    Cache(Arc<nuthatch_chunks::Error>),
    /// Threads or clients could not be set up, those of a store without settings among them.
    Setup {
        /// What was to be set up.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// What was given as an address is none that can be read.
    Address {
        /// The address, without secrets.
        address: String,
        /// What it ought to be.
        expected: &'static str,
    },
    /// There is no such object.
    NotFound {
        /// The address, without secrets.
        address: String,
    },
    /// The origin does not let us read it.
    Denied {
        /// The address, without secrets.
        address: String,
        /// What the origin said: 401 or 403, or the reason of the operating system.
        reason: String,
    },
    /// The origin refuses the request, or failed as often as it was asked.
    Status {
        /// The address, without secrets.
        address: String,
        /// The status of its last answer.
        status: u16,
        /// How often it was asked.
        attempts: u32,
    },
    /// The origin could not be reached, fell silent, or broke off, as often as it was asked.
    Unreachable {
        /// The address, without secrets.
        address: String,
        /// What happened the last time.
        reason: String,
        /// How often it was asked.
        attempts: u32,
    },
    /// The cache does not have the bytes, and the settings forbid asking the origin.
    Offline {
        /// The address, without secrets.
        address: String,
        /// What the cache does not have.
        missing: String,
    },
    /// The origin answered with something that is not what was asked for.
    Answer {
        /// The address, without secrets.
        address: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The object is another one than the one that was opened. Opening it again reads the new one.
    Changed {
        /// The address, without secrets.
        address: String,
        /// The validator of what was opened.
        was: String,
        /// What the origin has now, as far as it said so.
        is: String,
    },
    /// A range ends before it begins, or begins or ends beyond the object.
    Range {
        /// Its start.
        start: u64,
        /// Its end, which does not belong to it.
        end: u64,
        /// How many bytes the object has.
        len: u64,
    },
}

impl Error {
    /// Nobody makes requests any more.
    pub(crate) fn closed() -> Self {
        Self::Setup { what: "requests", reason: "the cache is closed".into() }
    }

    /// Returns whether the origin could not be asked, so that a version in the cache may be used
    /// that is stale.
    pub(crate) fn is_origin_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Status { status, .. } => crate::status::is_unavailable(*status),
            _ => false,
        }
    }

    /// Returns why something could not be set up. Libraries may not report that the system refused
    /// to open a file because too many are open, so that is tried here.
    pub(crate) fn setup(what: &'static str, reason: impl fmt::Display) -> Self {
        let cause = std::fs::File::open("/dev/null").err();
        let advice = cause.and_then(|cause| Some((file_limit_advice(&cause)?, cause)));
        let reason = reason.to_string();
        let reason = match advice {
            Some((advice, cause)) if reason.contains(&cause.to_string()) => reason + &advice,
            Some((advice, cause)) => format!("{reason}: {cause}{advice}"),
            None => reason,
        };
        Self::Setup { what, reason }
    }

    /// A name for the kind of error, that stays.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cache(_) => "cache",
            Self::Setup { .. } => "setup",
            Self::Address { .. } => "address",
            Self::NotFound { .. } => "not-found",
            Self::Denied { .. } => "denied",
            Self::Status { .. } => "status",
            Self::Unreachable { .. } => "unreachable",
            Self::Offline { .. } => "offline",
            Self::Answer { .. } => "answer",
            Self::Changed { .. } => "changed",
            Self::Range { .. } => "range",
        }
    }
}

impl From<nuthatch_chunks::Error> for Error {
    fn from(error: nuthatch_chunks::Error) -> Self {
        Self::Cache(Arc::new(error))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NotFound { .. } => io::ErrorKind::NotFound,
            Error::Denied { .. } => io::ErrorKind::PermissionDenied,
            Error::Address { .. } | Error::Range { .. } => io::ErrorKind::InvalidInput,
            Error::Answer { .. } => io::ErrorKind::InvalidData,
            Error::Unreachable { .. } | Error::Offline { .. } => io::ErrorKind::NotConnected,
            Error::Changed { .. } => io::ErrorKind::StaleNetworkFileHandle,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cache(source) => source.fmt(f),
            Self::Setup { what, reason } => write!(f, "cannot set up {what}: {reason}"),
            Self::Address { address, expected } => {
                write!(f, "an address: expected {expected}, found {address}")
            }
            Self::NotFound { address } => write!(f, "{address}: there is no such object"),
            Self::Denied { address, reason } => write!(f, "{address}: not allowed: {reason}"),
            Self::Status { address, status, attempts } => {
                write!(f, "{address}: the origin answered {status}{}", Times(*attempts))
            }
            Self::Unreachable { address, reason, attempts } => {
                write!(f, "{address}: no answer to be had: {reason}{}", Times(*attempts))
            }
            Self::Offline { address, missing } => {
                write!(f, "{address}: offline: {missing}; ")?;
                f.write_str("without the offline setting it is fetched from the origin")
            }
            Self::Answer { address, expected, found } => {
                write!(f, "{address}: the answer: expected {expected}, found {found}")
            }
            Self::Changed { address, was, is } => {
                write!(f, "{address}: changed since it was opened: it was {was}, it is {is}")
            }
            Self::Range { start, end, len } => {
                write!(f, "a range: expected one within 0..{len}, found {start}..{end}")
            }
        }
    }
}

/// How often something was tried, if more than once.
struct Times(u32);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 | 1 => Ok(()),
            times => write!(f, " ({times} attempts)"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Cache(source) => Some(&**source),
            _ => None,
        }
    }
}
