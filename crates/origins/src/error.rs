//! Errors of opening and reading objects.

use nuthatch_chunks::file_limit_advice;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The result of this crate's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the bytes of an object could not be read. Addresses in it have no secrets. A failure of the
/// cache is not an error, except when its folder is opened: bytes then come from the origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The folder of the cache cannot be opened.
    Cache(Arc<nuthatch_chunks::Error>),
    /// Threads or clients could not be set up, for example because settings of an object store are
    /// missing.
    Setup {
        /// What could not be set up.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// The address is not valid.
    Address {
        /// The address without secrets, or a description of what was found.
        address: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The object does not exist.
    NotFound {
        /// The address, without secrets.
        address: String,
    },
    /// The origin denies access.
    Denied {
        /// The address, without secrets.
        address: String,
        /// The status 401 or 403, or the reason of the operating system.
        reason: String,
    },
    /// The origin responded with an error status, at each attempt if the error is transient.
    Status {
        /// The address, without secrets.
        address: String,
        /// The status of the last response.
        status: u16,
        /// The number of attempts.
        attempts: u32,
    },
    /// The origin could not be reached, sent nothing for too long or closed the connection, at each
    /// attempt.
    Unreachable {
        /// The address, without secrets.
        address: String,
        /// The reason at the last attempt.
        reason: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The cache does not have the bytes, and the settings forbid requests to the origin.
    Offline {
        /// The address, without secrets.
        address: String,
        /// What the cache does not have.
        missing: String,
    },
    /// The response of the origin does not fit the request.
    Response {
        /// The address, without secrets.
        address: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The object has changed since it was opened. Opening it again reads the new version.
    Changed {
        /// The address, without secrets.
        address: String,
        /// The validator of the version that was opened.
        was: String,
        /// The current version, as far as the origin reported it.
        is: String,
    },
    /// A range ends before it begins, or begins or ends beyond the object.
    Range {
        /// The start of the range.
        start: u64,
        /// The end of the range, exclusive.
        end: u64,
        /// The length of the object.
        len: u64,
    },
}

impl Error {
    /// Returns the error of a cache that was closed.
    pub(crate) fn closed() -> Self {
        Self::Setup { what: "requests", reason: "the cache is closed".into() }
    }

    /// Returns whether the origin is unavailable, so that a stale version in the cache may be used.
    pub(crate) fn is_origin_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Status { status, .. } => crate::status::is_unavailable(*status),
            _ => false,
        }
    }

    /// Returns the error for something that could not be set up. Libraries may hide that the
    /// process has too many open files, so this opens a file to find out.
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

    /// Returns a name for the kind of error, which never changes.
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
            Self::Response { .. } => "answer",
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
            Error::Response { .. } => io::ErrorKind::InvalidData,
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
            Self::Denied { address, reason } => write!(f, "{address}: access denied: {reason}"),
            Self::Status { address, status, attempts } => {
                write!(f, "{address}: the origin responded with {status}{}", Times(*attempts))
            }
            Self::Unreachable { address, reason, attempts } => {
                write!(f, "{address}: no response from the origin: {reason}{}", Times(*attempts))
            }
            Self::Offline { address, missing } => {
                write!(f, "{address}: offline: {missing}; ")?;
                f.write_str("without the offline setting it is fetched from the origin")
            }
            Self::Response { address, expected, found } => {
                write!(f, "{address}: the response: expected {expected}, found {found}")
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

/// Writes the number of attempts, if there were several.
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
