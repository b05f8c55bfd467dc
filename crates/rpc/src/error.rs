//! Errors, which are the same for client and server: a gRPC status, and a short name that is the
//! same in all versions.

use crate::transport::reason;
use nuthatch_store::Error as StoreError;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Code, Status, TimeoutExpired};

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The name of the trailer with the short name.
const CODE_KEY: &str = "nuthatch-code";
/// The name of the trailer with the index of a condition that was not met.
const WRITE_KEY: &str = "nuthatch-write";

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    status: Code,
    code: Cow<'static, str>,
    message: String,
    write: Option<u64>,
}

impl Error {
    pub(crate) fn new(status: Code, code: &'static str, message: impl Into<String>) -> Self {
        let (code, message) = (Cow::Borrowed(code), message.into());
        Self(Box::new(Inner { status, code, message, write: None }))
    }

    /// Returns the error for a field that is not valid, or that contradicts another one.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, "argument", message)
    }

    pub(crate) fn no_table(name: &str) -> Self {
        let name = name.escape_debug();
        Self::new(Code::NotFound, "no-table", format!("expected a table \"{name}\", found none"))
    }

    pub(crate) fn memory(bytes: u64, held: u64, max: u64) -> Self {
        let message = format!(
            "the server's memory limit is {max} bytes: {held} are in use, and the call needs \
             {bytes} more; retry later, or raise the limit (--memory)"
        );
        Self::new(Code::ResourceExhausted, "memory", message)
    }

    pub(crate) fn too_long(bytes: usize, max: usize) -> Self {
        let message = format!("expected a message of at most {max} bytes, found {bytes}");
        Self::new(Code::OutOfRange, "too-long", message)
    }

    /// Returns the error for a transaction that the server ended at a limit, which `flag` sets.
    pub(crate) fn expired(what: &str, limit: Duration, flag: &str) -> Self {
        let message = format!(
            "the transaction was ended: {what} for {limit:?}, the limit that {flag} of the server \
             sets; begin again after the last row"
        );
        Self::new(Code::Aborted, "expired", message)
    }

    pub(crate) fn deadline() -> Self {
        Self::new(
            Code::DeadlineExceeded,
            "deadline",
            "the deadline of the call has passed; a write may have been executed",
        )
    }

    pub(crate) fn draining() -> Self {
        Self::new(Code::Unavailable, "draining", "the server is stopping and accepts no new calls")
    }

    /// Returns the error for a bug, such as a thread that panicked.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, "internal", message)
    }

    /// Returns the error for a server that could not be reached or sent no valid response.
    pub(crate) fn transport(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(Code::Unavailable, "transport", reason(error))
    }

    /// Returns the error that a response reports.
    pub(crate) fn reported(status: i32, code: String, message: String, write: Option<u64>) -> Self {
        let (status, code) = (Code::from_i32(status), Cow::Owned(code));
        Self(Box::new(Inner { status, code, message, write }))
    }

    /// Adds advice to the message.
    pub(crate) fn with(mut self, more: &str) -> Self {
        self.0.message = format!("{}; {more}", self.0.message);
        self
    }

    /// Returns a short name that is the same in all versions, for programs: one of
    /// `testdata/store/statuses.csv`, `transport` if no server responded, or `status` if the
    /// response had only a gRPC [`status`](Self::status).
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// Returns the number of the gRPC status.
    pub fn status(&self) -> i32 {
        self.0.status as i32
    }

    /// Returns the index of the condition that was not met in its batch, from 0; `None` unless the
    /// code is `condition-unmet`.
    pub fn write(&self) -> Option<u64> {
        self.0.write
    }

    /// Returns the message for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns whether a retry of the same call may succeed soon: the server cannot be reached or
    /// is stopping, or all its reader slots are in use.
    pub fn is_transient(&self) -> bool {
        self.0.status == Code::Unavailable || self.0.code == "readers-full"
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

/// Returns the status for an error of the store, as in `testdata/store/statuses.csv`.
fn status_of(error: &StoreError) -> Code {
    match error {
        StoreError::Io(e) if e.source.kind() == std::io::ErrorKind::StorageFull => {
            Code::ResourceExhausted
        }
        StoreError::NotAStore(_) | StoreError::Corrupt(_) => Code::DataLoss,
        StoreError::AlreadyOpen(_)
        | StoreError::InUse(_)
        | StoreError::OtherLocks(_)
        | StoreError::Table { .. }
        | StoreError::ReadOnly
        | StoreError::Unordered { .. }
        | StoreError::NoChangesKept => Code::FailedPrecondition,
        StoreError::Full { .. }
        | StoreError::ReadersFull { .. }
        | StoreError::TransactionFull
        | StoreError::QueueFull => Code::ResourceExhausted,
        StoreError::Options { .. } | StoreError::Length { .. } => Code::InvalidArgument,
        StoreError::Closed => Code::Unavailable,
        StoreError::FellBehind { .. } | StoreError::Ahead { .. } => Code::OutOfRange,
        StoreError::ConditionUnmet { .. } => Code::Aborted,
        // Errors of the disk or of LMDB, and damage.
        _ => Code::Internal,
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        if let StoreError::Group(cause) = &error {
            // The caller knows of no group and can only act on the cause.
            let (status, code) = (status_of(cause), cause.code());
            return Self::new(status, code, error.to_string());
        }
        let write = match &error {
            StoreError::ConditionUnmet { write } => Some(*write as u64),
            _ => None,
        };
        let (status, code, message) = (status_of(&error), error.code().into(), error.to_string());
        Self(Box::new(Inner { status, code, message, write }))
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let Inner { status, code, message, write } = *error.0;
        let mut status = Self::new(status, message);
        let metadata = status.metadata_mut();
        if let Ok(code) = AsciiMetadataValue::try_from(code.as_ref()) {
            metadata.insert(CODE_KEY, code);
        }
        if let Some(write) = write {
            metadata.insert(WRITE_KEY, write.into());
        }
        status
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let text = |key| status.metadata().get(key).and_then(|value| value.to_str().ok());
        let write = text(WRITE_KEY).and_then(|write| write.parse().ok());
        let message = match status.message() {
            "" => status.code().description().to_owned(),
            message => message.to_owned(),
        };
        match (text(CODE_KEY), std::error::Error::source(&status)) {
            (Some(code), _) => {
                Self::reported(status.code() as i32, code.to_owned(), message, write)
            }
            // The deadline passed here before the server reported it.
            (None, Some(cause)) if is_timeout(cause) => Self::deadline(),
            // The connection was lost, or could not be established.
            (None, Some(cause)) => Self::transport(cause),
            (None, None) => {
                Self::reported(status.code() as i32, "status".to_owned(), message, write)
            }
        }
    }
}

fn is_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<TimeoutExpired>() || error.source().is_some_and(is_timeout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_store::{Damage, FullCause, IoError};
    use std::path::PathBuf;
    use std::sync::Arc;

    /// Returns one of each error of the store, in the order of `testdata/store/errors.csv`.
    fn of_the_store() -> Vec<StoreError> {
        let damage = || {
            let (expected, found) = (String::new(), String::new());
            Box::new(Damage { path: PathBuf::new(), offset: 0, expected, found })
        };
        let text = String::new;
        vec![
            io(std::io::ErrorKind::NotFound),
            StoreError::NotAStore(damage()),
            StoreError::Corrupt(damage()),
            StoreError::AlreadyOpen(PathBuf::new()),
            StoreError::InUse(PathBuf::new()),
            StoreError::OtherLocks(PathBuf::new()),
            StoreError::Full { max: 1, cause: FullCause::Limit },
            StoreError::ReadersFull { max: 1 },
            StoreError::TransactionFull,
            StoreError::Options { option: "limit", expected: text(), found: text() },
            StoreError::Length { what: "key", min: 1, max: 511, found: 0 },
            StoreError::Table { name: text(), expected: "a table", found: text() },
            StoreError::ReadOnly,
            StoreError::Closed,
            StoreError::Broken,
            StoreError::Unordered { key: Vec::new() },
            StoreError::FellBehind { wanted: 1, oldest: 2 },
            StoreError::Ahead { after: 2, newest: 1 },
            StoreError::NoChangesKept,
            StoreError::ConditionUnmet { write: 3 },
            StoreError::QueueFull,
            StoreError::Decode { expected: "an integer", found: text() },
            StoreError::Lmdb { operation: "get", message: text() },
        ]
    }

    fn io(kind: std::io::ErrorKind) -> StoreError {
        StoreError::Io(Box::new(IoError {
            path: PathBuf::new(),
            operation: "open",
            source: kind.into(),
        }))
    }

    /// Returns the errors of this crate that a server reports.
    fn of_the_server() -> Vec<Error> {
        vec![
            Error::new(Code::Unauthenticated, "unauthenticated", ""),
            Error::new(Code::PermissionDenied, "forbidden", ""),
            Error::argument(""),
            Error::no_table("a"),
            Error::too_long(2, 1),
            Error::memory(1, 2, 3),
            Error::expired("it was open", Duration::from_secs(1), "--longest-ms"),
            Error::deadline(),
            Error::draining(),
            Error::internal(""),
        ]
    }

    #[test]
    fn the_table_for_all_languages_has_every_code_and_its_status() {
        let listed: Vec<_> = include_str!("../../../testdata/store/statuses.csv").lines().collect();
        let store = of_the_store().into_iter().map(Error::from);
        let all = store.chain(of_the_server()).map(|error| {
            let status = format!("{:?}", Code::from_i32(error.status()));
            format!("{},{},{}", error.code(), error.status(), status)
        });
        let header = std::iter::once("code,number,status".to_owned());
        assert_eq!(listed, header.chain(all).collect::<Vec<_>>());
        let errors = include_str!("../../../testdata/store/errors.csv").lines();
        let codes = errors.skip(1).filter_map(|error| error.split(',').next());
        // A group is reported by its cause.
        let codes: Vec<_> = codes.filter(|code| *code != "group").collect();
        let with_status = listed[1..=codes.len()].iter().filter_map(|line| line.split(',').next());
        assert_eq!(with_status.collect::<Vec<_>>(), codes);
    }

    #[test]
    fn a_full_disk_has_a_status_of_its_own() {
        let full = Error::from(io(std::io::ErrorKind::StorageFull));
        assert_eq!((full.code(), full.status()), ("io", Code::ResourceExhausted as i32));
    }

    #[test]
    fn transient_errors_are_retried_and_others_are_not() {
        let all = || of_the_store().into_iter().map(Error::from).chain(of_the_server());
        let transient = all().filter(Error::is_transient);
        let codes: Vec<_> = transient.map(|error| error.code().to_owned()).collect();
        assert_eq!(codes, ["readers-full", "closed", "draining"]);
    }

    #[test]
    fn a_failed_group_has_the_code_of_its_cause() {
        let group = Error::from(StoreError::Group(Arc::new(StoreError::ReadOnly)));
        assert_eq!((group.code(), group.status()), ("read-only", Code::FailedPrecondition as i32));
        assert!(group.message().starts_with("the group was not committed: "), "{group}");
    }

    #[test]
    fn an_error_is_the_same_on_both_sides() {
        for error in of_the_store().into_iter().map(Error::from).chain(of_the_server()) {
            let back = Error::from(Status::from(error.clone()));
            assert_eq!((back.code(), back.status()), (error.code(), error.status()));
            assert_eq!(back.write(), error.write());
            if !error.message().is_empty() {
                assert_eq!(back.to_string(), error.to_string());
            }
        }
        let unmet = Error::from(StoreError::ConditionUnmet { write: 3 });
        assert_eq!(unmet.write(), Some(3));
        let bare = Error::from(Status::new(Code::NotFound, ""));
        assert_eq!((bare.code(), bare.to_string().is_empty()), ("status", false));
    }
}
