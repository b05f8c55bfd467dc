//! Python class for acknowledgements.

use super::state::WriterState;
use crate::failure::{Failure, Outcome};
use crate::runtime::{Awaited, wait};
use crate::store::results::Written;
use pyo3::exceptions::PyTimeoutError;
use pyo3::prelude::*;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The acknowledgement of a write. If it is dropped, `flush` or `close` of the writer reports a
/// failure.
#[pyclass(frozen, module = "nuthatch")]
pub(crate) struct Ack {
    state: Arc<WriterState>,
    progress: Mutex<AckProgress>,
}

enum AckProgress {
    Pending(Awaited<Written>),
    Arrived(Outcome<Written>),
    /// A call waits for it.
    InUse,
}

impl Ack {
    pub(super) fn new(state: Arc<WriterState>, ack: Awaited<Written>) -> Self {
        Self { state, progress: Mutex::new(AckProgress::Pending(ack)) }
    }

    fn lock(&self) -> MutexGuard<'_, AckProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> AckProgress {
        std::mem::replace(&mut *self.lock(), AckProgress::InUse)
    }
}

/// Returns an acknowledgement to its object if the wait for it ended without a result.
struct AckWait<'a> {
    ack: &'a Ack,
    future: Option<Awaited<Written>>,
}

impl Drop for AckWait<'_> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            *self.ack.lock() = AckProgress::Pending(future);
        }
    }
}

#[pymethods]
impl Ack {
    /// Waits for the acknowledgement.
    ///
    /// Args:
    ///     `timeout`: Maximum time to wait in seconds; by default unlimited.
    ///
    /// Returns:
    ///     A `Written` with the transaction and the sequence number.
    ///
    /// Raises:
    ///     `TimeoutError`: No acknowledgement came within `timeout`.
    ///     `Error`: The write failed.
    #[pyo3(signature = (timeout=None))]
    fn result(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Written> {
        let outcome = match self.take() {
            AckProgress::Arrived(outcome) => outcome,
            AckProgress::InUse => {
                let message = "another caller waits for this acknowledgement";
                return Err(Failure::argument(message).raise(py));
            }
            AckProgress::Pending(future) => {
                let limit = timeout.map(|seconds| crate::convert::duration("timeout", seconds));
                let mut waiting = AckWait { ack: self, future: Some(future) };
                let limit = limit.transpose()?.unwrap_or(Duration::MAX);
                let answer = poll_fn(|context| match &mut waiting.future {
                    Some(future) => Pin::new(future).poll(context),
                    None => Poll::Ready(Err(Failure::lost())),
                });
                let Ok(outcome) = wait(py, async { tokio::time::timeout(limit, answer).await })?
                else {
                    return Err(PyTimeoutError::new_err("the write is not acknowledged yet"));
                };
                waiting.future = None;
                outcome
            }
        };
        *self.lock() = AckProgress::Arrived(outcome.clone());
        outcome.map_err(|failure| failure.raise(py))
    }

    /// Returns whether the acknowledgement has arrived.
    fn done(&self) -> bool {
        let mut progress = self.lock();
        if let AckProgress::Pending(future) = &mut *progress {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
                *progress = AckProgress::Arrived(outcome);
            }
        }
        matches!(&*progress, AckProgress::Arrived(_))
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        let AckProgress::Pending(future) = self.take() else { return };
        self.state.add_dropped(future);
    }
}
