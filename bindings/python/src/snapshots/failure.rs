//! Errors of snapshots, and their conversion into exceptions of `nuthatch.errors`.

use crate::failure::{Failure, Fields};
use nuthatch_snapshot::{Error, IoError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self::new(error.code(), error.to_string()).with_fields(fields(error))
    }
}

/// Converts an error of a snapshot into an exception with the fields of the error.
#[cold]
pub(super) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    Failure::from(error).raise(py)
}

/// Returns the fields of an error besides its code and its message.
fn fields(error: &Error) -> Fields {
    match error {
        Error::Io(io) | Error::NotDurable(io) => {
            let IoError { path, source, .. } = &**io;
            Fields { path: Some(path.clone()), number: source.raw_os_error(), ..Fields::default() }
        }
        Error::NotASnapshot(damage) | Error::Unsupported(damage) | Error::Corrupt(damage) => {
            Fields {
                path: Some(damage.path.clone()),
                offset: Some(damage.offset),
                expected: Some(damage.expected.clone()),
                found: Some(damage.found.clone()),
                number: None,
            }
        }
        Error::WrongType { requested, found } => Fields {
            expected: Some(requested.name().to_owned()),
            found: Some(found.name().to_owned()),
            ..Fields::default()
        },
        Error::Unreadable(path) => Fields { path: Some(path.to_path_buf()), ..Fields::default() },
        Error::Limit(limit) => Fields {
            expected: Some(limit.max.to_string()),
            found: Some(limit.found.to_string()),
            ..Fields::default()
        },
        _ => Fields::default(),
    }
}

/// Converts the error of a result into an exception.
#[inline]
pub(super) fn raised<T>(py: Python<'_>, result: nuthatch_snapshot::Result<T>) -> PyResult<T> {
    result.map_err(|error| exception(py, &error))
}

/// Returns the exception for the use of a closed object.
#[cold]
pub(super) fn closed(py: Python<'_>, what: &str) -> PyErr {
    Failure::closed(what).raise(py)
}

/// Returns the exception for an invalid argument.
#[cold]
pub(super) fn argument(py: Python<'_>, message: String) -> PyErr {
    Failure::argument(message).raise(py)
}

/// Returns the exception for an argument of another class than the expected one.
#[cold]
pub(super) fn other_class(what: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let found = found.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what}: expected {expected}, found {found}"))
}
