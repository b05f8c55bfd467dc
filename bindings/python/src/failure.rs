//! Errors of calls, and their conversion into exceptions of `nuthatch.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::borrow::Cow;
use std::path::PathBuf;

/// The result of work for Python.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Why a call failed. It becomes a `nuthatch.Error` in Python.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// For stores a code of `testdata/store/statuses.csv`, `group`, or `transport` if the server
    /// did not answer; for chunks a code of `testdata/chunks/errors.csv`.
    code: Cow<'static, str>,
    message: String,
    /// Index of the write in its batch whose condition was not met, with the code
    /// `condition-unmet`.
    write: Option<u64>,
    /// Fields of an error of a snapshot, or of a system call.
    fields: Option<Box<Fields>>,
}

/// Fields of an error of a snapshot, or of a system call, besides its code and its message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) path: Option<PathBuf>,
    pub(crate) offset: Option<u64>,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
    /// The `errno` of a system call.
    pub(crate) number: Option<i32>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), message: message.into(), write: None, fields: None }
    }

    /// Adds the fields of an error of a snapshot, or of a system call.
    #[must_use]
    pub(crate) fn with_fields(mut self, fields: Fields) -> Self {
        self.fields = Some(Box::new(fields));
        self
    }

    /// Returns a failure for an invalid argument.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new("argument", message)
    }

    /// Returns a failure for the use of something that is closed.
    pub(crate) fn closed(what: &str) -> Self {
        Self::new("closed", format!("the {what} is closed"))
    }

    /// Returns a failure for a defect of this module, such as a thread that panicked.
    pub(crate) fn lost() -> Self {
        Self::new("internal", "a thread that worked on this was lost")
    }

    pub(crate) fn io(path: &std::path::Path, operation: &str, error: &std::io::Error) -> Self {
        Self::new("io", format!("{}: {operation}: {error}", path.display()))
    }

    /// Returns the failure of a write in a batch, or another failure of an engine.
    pub(crate) fn of_engine(
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
        write: Option<u64>,
    ) -> Self {
        Self { code: code.into(), message: message.into(), write, fields: None }
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// Converts the failure into an exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if let Some(fields) = self.fields {
            return fields.raise(py, &self.code, &self.message);
        }
        let made = MAKE
            .import(py, "nuthatch.errors", "from_code")
            .and_then(|make| make.call1((self.code.as_ref(), self.message.as_str(), self.write)));
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

impl Fields {
    fn raise(self, py: Python<'_>, code: &str, message: &str) -> PyErr {
        static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let Self { path, offset, expected, found, number } = self;
        let made = MAKE.import(py, "nuthatch.errors", "from_snapshot").and_then(|make| {
            make.call1((
                code,
                message,
                path.map(PathBuf::into_os_string),
                offset,
                expected,
                found,
                number,
            ))
        });
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}
