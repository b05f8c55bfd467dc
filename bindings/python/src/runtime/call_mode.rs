//! Results of calls, with one implementation for blocking and asynchronous callers.

use super::event_loop;
use super::undelivered::Undelivered;
use super::work::Work;
use pyo3::prelude::*;
use pyo3::{Borrowed, IntoPyObjectExt};

/// Whether an object returns values from blocking calls, or futures of asyncio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallMode {
    Sync,
    Async,
}

/// Converts the flag of a function for asynchronous calls.
impl<'py> FromPyObject<'_, 'py> for CallMode {
    type Error = PyErr;

    fn extract(asynchronous: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(if asynchronous.extract()? { Self::Async } else { Self::Sync })
    }
}

impl<T: Send + 'static> Work<T> {
    /// Returns the result converted by `make`, or a future of it.
    pub(crate) fn answer_with(
        self,
        py: Python<'_>,
        mode: CallMode,
        make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Bound<'_, PyAny>> {
        match mode {
            CallMode::Sync => make(py, self.wait(py)?).map(|made| made.into_bound(py)),
            CallMode::Async => event_loop::start(py, self, make),
        }
    }

    /// Returns the result, or a future of it.
    pub(crate) fn answer<'py>(self, py: Python<'py>, mode: CallMode) -> PyResult<Bound<'py, PyAny>>
    where
        T: for<'any> IntoPyObject<'any>,
    {
        self.answer_with(py, mode, |py, outcome| outcome.into_py_any(py))
    }
}

/// Returns a future that begins `object` and results in it, for `async with` and `await`. If the
/// future is cancelled, `end` is called.
pub(crate) fn begin_object(
    py: Python<'_>,
    begin: Work<()>,
    object: Py<PyAny>,
    end: impl FnOnce() + Send + 'static,
) -> PyResult<Bound<'_, PyAny>> {
    let started = begin.map(|()| Undelivered::new((), move |()| end()));
    started.answer_with(py, CallMode::Async, |_, started| {
        started.deliver();
        Ok(object)
    })
}
