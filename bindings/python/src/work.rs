//! How a call is done, whoever waits for it: written once for callers that wait and for asyncio.

use crate::event_loop;
use crate::failure::{Failure, Outcome};
use crate::wait::wait;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::future::Future;
use std::pin::Pin;

/// How an object answers: with values, or with futures of asyncio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Sync,
    Async,
}

/// Work that may wait for other tasks and servers.
pub(crate) type Awaited<T> = Pin<Box<dyn Future<Output = Outcome<T>> + Send>>;

/// What there is to do for a call.
pub(crate) enum Work<T> {
    /// Nothing more.
    Done(Outcome<T>),
    /// To be done by a thread that may wait, such as for the disk.
    Blocking(Box<dyn FnOnce() -> Outcome<T> + Send>),
    /// To be awaited. Whoever gives it up drops it.
    Awaited(Awaited<T>),
}

impl<T: Send + 'static> Work<T> {
    pub(crate) fn blocking(job: impl FnOnce() -> Outcome<T> + Send + 'static) -> Self {
        Self::Blocking(Box::new(job))
    }

    pub(crate) fn awaited(future: impl Future<Output = Outcome<T>> + Send + 'static) -> Self {
        Self::Awaited(Box::pin(future))
    }

    /// The same with something made of what comes out.
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

    /// As a future, for work that is part of other work.
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

    /// Does it, and waits for it.
    pub(crate) fn wait(self, py: Python<'_>) -> PyResult<T> {
        let outcome = match self {
            Self::Done(outcome) => outcome,
            Self::Blocking(job) => py.detach(job),
            Self::Awaited(future) => wait(py, future)?,
        };
        outcome.map_err(|failure| failure.raise(py))
    }

    /// Answers Python: with what `make` makes of the outcome, or with a future of it.
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

    /// Answers Python with the outcome itself.
    pub(crate) fn answer<'py>(self, py: Python<'py>, face: Face) -> PyResult<Bound<'py, PyAny>>
    where
        T: for<'any> IntoPyObject<'any>,
    {
        self.answer_with(py, face, |py, outcome| outcome.into_py_any(py))
    }
}
