//! The remaining work of a call.

use super::wait::wait;
use crate::failure::{Failure, Outcome};
use pyo3::prelude::*;
use std::future::Future;
use std::pin::Pin;

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
}
