//! Errors of snapshots, and their conversion into exceptions of `nuthatch.errors`.

use crate::failure::Failure;
use nuthatch_snapshot::{Error, IoError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyDictMethods};

/// Converts an error of a snapshot into an exception with the fields of the error.
#[cold]
pub(super) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = fields(py, error).and_then(|fields| {
        let make = MAKE.import(py, "nuthatch.errors", "from_snapshot")?;
        make.call((error.code(), error.to_string()), Some(&fields))
    });
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Returns the fields of an error besides its code and its message.
fn fields<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    match error {
        Error::Io(io) | Error::NotDurable(io) => {
            let IoError { path, source, .. } = &**io;
            fields.set_item("path", path.as_os_str())?;
            fields.set_item("number", source.raw_os_error())?;
        }
        Error::NotASnapshot(damage) | Error::Unsupported(damage) | Error::Corrupt(damage) => {
            fields.set_item("path", damage.path.as_os_str())?;
            fields.set_item("offset", damage.offset)?;
            fields.set_item("expected", &damage.expected)?;
            fields.set_item("found", &damage.found)?;
        }
        Error::WrongType { requested, found } => {
            fields.set_item("expected", requested.name())?;
            fields.set_item("found", found.name())?;
        }
        Error::Unreadable(path) => fields.set_item("path", path.as_os_str())?,
        Error::Limit(limit) => {
            fields.set_item("expected", limit.max.to_string())?;
            fields.set_item("found", limit.found.to_string())?;
        }
        _ => {}
    }
    Ok(fields)
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
