//! Execution of calls, with one implementation for blocking and asynchronous callers.

use crate::event_loop;
use crate::failure::{Failure, Outcome};
use crate::wait::wait;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::future::Future;
use std::pin::Pin;

/// Whether an object returns values from blocking calls, or futures of asyncio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Sync,
    Async,
}

/// A future that may wait for other tasks and servers.
pub(crate) type Awaited<T> = Pin<Box<dyn Future<Output = Outcome<T>> + Send>>;

/// The remaining work of a call.
pub(crate) enum Work<T> {
    /// No work remains.
    Done(Outcome<T>),
    /// Work for a thread that may block, for example on disk I/O.
    Blocking(Box<dyn FnOnce() -> Outcome<T> + Send>),
    /// A future to wait for. Cancellation drops it.
    Awaited(Awaited<T>),
}

impl<T: Send + 'static> Work<T> {
    pub(crate) fn blocking(job: impl FnOnce() -> Outcome<T> + Send + 'static) -> Self {
        Self::Blocking(Box::new(job))
    }

    pub(crate) fn awaited(future: impl Future<Output = Outcome<T>> + Send + 'static) -> Self {
        Self::Awaited(Box::pin(future))
    }

    /// Applies a function to the result of the work.
    pub(crate) fn map<U: Send + 'static>(
        self,
        map: impl FnOnce(T) -> U + Send + 'static,
    ) -> Work<U> {
        match self {
            Self::Done(outcome) => Work::Done(outcome.map(map)),
            Self::Blocking(job) => Work::blocking(move || job().map(map)),
            Self::Awaited(future) => Work::awaited(async move { future.await.map(map) }),
        }
    }

    /// Runs the work as a future, as a part of other work.
    pub(crate) async fn outcome(self) -> Outcome<T> {
        match self {
            Self::Done(outcome) => outcome,
            Self::Blocking(job) => {
                let done = tokio::task::spawn_blocking(job).await;
                done.unwrap_or_else(|_| Err(Failure::lost()))
            }
            Self::Awaited(future) => future.await,
        }
    }

    /// Runs the work and waits for it, without the interpreter's lock.
    pub(crate) fn wait(self, py: Python<'_>) -> PyResult<T> {
        let outcome = match self {
            Self::Done(outcome) => outcome,
            Self::Blocking(job) => py.detach(job),
            Self::Awaited(future) => wait(py, future)?,
        };
        outcome.map_err(|failure| failure.raise(py))
    }

    /// Returns the result converted by `make`, or a future of it.
    pub(crate) fn answer_with(
        self,
        py: Python<'_>,
        face: Face,
        make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Bound<'_, PyAny>> {
        match face {
            Face::Sync => make(py, self.wait(py)?).map(|made| made.into_bound(py)),
            Face::Async => event_loop::start(py, self, make),
        }
    }

    /// Returns the result, or a future of it.
    pub(crate) fn answer<'py>(self, py: Python<'py>, face: Face) -> PyResult<Bound<'py, PyAny>>
    where
        T: for<'any> IntoPyObject<'any>,
    {
        self.answer_with(py, face, |py, outcome| outcome.into_py_any(py))
    }
}
