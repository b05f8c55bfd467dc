//! Futures of asyncio, settled by threads that asyncio knows nothing of.
//!
//! A thread that is done leaves its outcome in the queue of the event loop, and wakes the loop if
//! nobody did since the loop last looked: so a burst of outcomes takes the interpreter's lock
//! once. A future that is cancelled drops the work that it waits for.

use crate::failure::{Failure, Outcome};
use crate::runtime;
use crate::work::Work;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// Something to be done on the thread of the loop.
type Settling = Box<dyn FnOnce(Python<'_>) + Send>;

/// An event loop that has futures of this module.
struct Loop {
    event_loop: Py<PyAny>,
    /// What is to be done when the loop looks. Never locked while waiting for the interpreter.
    queue: Mutex<Vec<Settling>>,
}

/// Loops that were seen, those that are closed since among them. Taken while attached alone.
static LOOPS: Mutex<Vec<Arc<Loop>>> = Mutex::new(Vec::new());

impl Loop {
    /// The loop that runs on this thread.
    fn running(py: Python<'_>) -> PyResult<Arc<Self>> {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let running = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
        let mut loops = LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = loops.iter().find(|known| known.event_loop.is(&running)) {
            return Ok(Arc::clone(known));
        }
        let is_open = |known: &Arc<Self>| {
            let closed = known.event_loop.bind(py).call_method0("is_closed");
            !closed.and_then(|closed| closed.is_truthy()).unwrap_or(true)
        };
        loops.retain(is_open);
        let queue = Mutex::new(Vec::new());
        let known = Arc::new(Self { event_loop: running.unbind(), queue });
        loops.push(Arc::clone(&known));
        Ok(known)
    }

    /// Has the loop do something soon.
    fn submit(self: &Arc<Self>, settling: Settling) {
        let mut queue = self.lock();
        queue.push(settling);
        let first = queue.len() == 1;
        drop(queue);
        if first {
            // No interpreter any more: nobody waits.
            Python::try_attach(|py| {
                if self.wake(py).is_err() {
                    // The loop is closed, and its futures with it.
                    let left = std::mem::take(&mut *self.lock());
                    drop(left);
                }
            });
        }
    }

    fn wake(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let known = Arc::clone(self);
        let look = PyCFunction::new_closure(py, None, None, move |args, _| {
            let settlings = std::mem::take(&mut *known.lock());
            for settling in settlings {
                settling(args.py());
            }
        })?;
        self.event_loop.call_method1(py, "call_soon_threadsafe", (look,))?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Settling>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future of asyncio that somebody will settle.
struct Promise {
    known: Arc<Loop>,
    future: Option<Py<PyAny>>,
}

impl Promise {
    fn settle<T: Send + 'static>(
        mut self,
        outcome: Outcome<T>,
        make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) {
        if let Some(future) = self.future.take() {
            self.known.submit(Box::new(move |py| settle(py, future.bind(py), outcome, make)));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        // The work was dropped: because its future was cancelled, or because a thread panicked.
        if let Some(future) = self.future.take() {
            let make = |py: Python<'_>, ()| Ok(py.None());
            let settling = move |py: Python<'_>| {
                settle(py, future.bind(py), Err(Failure::lost()), make);
            };
            self.known.submit(Box::new(settling));
        }
    }
}

fn settle<T>(
    py: Python<'_>,
    future: &Bound<'_, PyAny>,
    outcome: Outcome<T>,
    make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>>,
) {
    let settled = || {
        if future.call_method0("done")?.is_truthy()? {
            return Ok(());
        }
        let value = outcome.map_err(|failure| failure.raise(py)).and_then(|value| make(py, value));
        match value {
            Ok(value) => future.call_method1("set_result", (value,)),
            Err(error) => future.call_method1("set_exception", (error,)),
        }?;
        Ok(())
    };
    if let Err(error) = settled() {
        PyErr::write_unraisable(error, py, Some(future));
    }
}

/// Drops work when the future that waits for it is cancelled.
#[pyclass(frozen, module = "nuthatch._native")]
struct Cancellation(AbortHandle);

#[pymethods]
impl Cancellation {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        if future.call_method0("cancelled")?.is_truthy()? {
            self.0.abort();
        }
        Ok(())
    }
}

/// Has threads do some work, and answers a future of the loop that runs here.
pub(crate) fn start<T: Send + 'static>(
    py: Python<'_>,
    work: Work<T>,
    make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Bound<'_, PyAny>> {
    let known = Loop::running(py)?;
    let future = known.event_loop.bind(py).call_method0("create_future")?;
    let work = match work {
        Work::Done(outcome) => {
            settle(py, &future, outcome, make);
            return Ok(future);
        }
        work => work,
    };
    let promise = Promise { known, future: Some(future.clone().unbind()) };
    let handle = runtime::handle(py)?;
    match work {
        Work::Blocking(job) => {
            handle.spawn_blocking(move || promise.settle(job(), make));
        }
        work => {
            let task = handle.spawn(async move { promise.settle(work.outcome().await, make) });
            let cancellation = Py::new(py, Cancellation(task.abort_handle()))?;
            future.call_method1("add_done_callback", (cancellation,))?;
        }
    }
    Ok(future)
}
