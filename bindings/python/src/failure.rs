//! What goes wrong, from where it happens to an exception of `nuthatch.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::borrow::Cow;

/// The result of work for Python.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Why a call failed: what becomes a `nuthatch.Error` when it reaches Python.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// One of `testdata/store/statuses.csv`, `group`, or `transport` where no server answered; of
    /// `testdata/chunks/errors.csv` for chunks.
    code: Cow<'static, str>,
    message: String,
    /// Which write of a batch it was, with the code `condition-unmet`.
    write: Option<u64>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), message: message.into(), write: None }
    }

    /// Something cannot be asked for in this way.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new("argument", message)
    }

    /// What was asked is over already.
    pub(crate) fn closed(what: &str) -> Self {
        Self::new("closed", format!("the {what} is closed"))
    }

    /// A mistake of this module, such as a thread that panicked.
    pub(crate) fn lost() -> Self {
        Self::new("internal", "a thread that worked on this was lost")
    }

    pub(crate) fn io(path: &std::path::Path, act: &str, error: &std::io::Error) -> Self {
        Self::new("io", format!("{}: {act}: {error}", path.display()))
    }

    /// For whoever knows of no group that was written with: why the group failed.
    pub(crate) fn ungrouped(error: nuthatch_store::Error) -> Self {
        match error {
            nuthatch_store::Error::Group(cause) => {
                Self { code: Cow::Borrowed(cause.code()), message: cause.to_string(), write: None }
            }
            error => error.into(),
        }
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let made = MAKE
            .import(py, "nuthatch.errors", "from_code")
            .and_then(|make| make.call1((self.code.as_ref(), self.message.as_str(), self.write)));
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }
}

impl From<nuthatch_store::Error> for Failure {
    fn from(error: nuthatch_store::Error) -> Self {
        let write = match &error {
            nuthatch_store::Error::ConditionUnmet { write } => Some(*write as u64),
            _ => None,
        };
        Self { code: Cow::Borrowed(error.code()), message: error.to_string(), write }
    }
}

impl From<nuthatch_chunks::Error> for Failure {
    fn from(error: nuthatch_chunks::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<nuthatch_origins::Error> for Failure {
    fn from(error: nuthatch_origins::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<nuthatch_rpc::Error> for Failure {
    fn from(error: nuthatch_rpc::Error) -> Self {
        let code = Cow::Owned(error.code().to_owned());
        Self { code, message: error.message().to_owned(), write: error.write() }
    }
}
