//! Futures of asyncio that threads of the Tokio runtime settle.
//!
//! A thread that has finished appends the result to the queue of the event loop. If the queue was
//! empty, it writes a byte to a socket that the event loop reads from. No Tokio thread ever
//! acquires the interpreter's lock: when the interpreter shuts down, it terminates threads that
//! wait for the lock, and Rust would abort. Cancelling a future drops the work that it waits for.

use crate::failure::{Failure, Outcome};
use crate::runtime;
use crate::runtime::Work;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// A closure that runs on the thread of the event loop.
type Settling = Box<dyn FnOnce(Python<'_>) + Send>;

/// An event loop that has futures of this module.
struct Loop {
    object: Py<PyAny>,
    /// Closures that run when the event loop reads the wake-up.
    queue: Mutex<Vec<Settling>>,
    /// The socket pair that wakes the event loop: threads write to the first, the loop reads from
    /// the second.
    sender: UnixStream,
    receiver: UnixStream,
}

/// Event loops that used this module, including closed ones that were not removed yet.
static LOOPS: Mutex<Vec<Arc<Loop>>> = Mutex::new(Vec::new());

/// Locks the list of event loops. Locked only while attached to the interpreter, and so is `fork`.
/// The caller must not run Python code while it is locked: that could attach another thread that
/// waits for this lock, and deadlock.
fn lock_loops() -> MutexGuard<'static, Vec<Arc<Loop>>> {
    LOOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Loop {
    /// Returns the event loop that runs on this thread.
    fn running(py: Python<'_>) -> PyResult<Arc<Self>> {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let running = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
        let loops = lock_loops().clone();
        if let Some(event_loop) = loops.iter().find(|event_loop| event_loop.object.is(&running)) {
            return Ok(Arc::clone(event_loop));
        }
        // No other thread registers this event loop, since it runs on this thread.
        let (event_loop, closed) = (Self::register(&running)?, Self::closed(py, loops));
        let mut loops = lock_loops();
        loops.retain(|event_loop| !closed.iter().any(|closed| Arc::ptr_eq(event_loop, closed)));
        loops.push(Arc::clone(&event_loop));
        Ok(event_loop)
    }

    /// Returns the event loops of a list that are closed.
    fn closed(py: Python<'_>, mut loops: Vec<Arc<Self>>) -> Vec<Arc<Self>> {
        loops.retain(|event_loop| {
            let closed = event_loop.object.bind(py).call_method0("is_closed");
            closed.and_then(|closed| closed.is_truthy()).unwrap_or(true)
        });
        loops
    }

    /// Registers an event loop: it runs the closures of a queue when it is weak.
    fn register(running: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let (object, queue) = (running.clone().unbind(), Mutex::new(Vec::new()));
        let event_loop = Arc::new(Self { object, queue, sender, receiver });
        let weak = Arc::downgrade(&event_loop);
        let run_queued = PyCFunction::new_closure(running.py(), None, None, move |args, _| {
            if let Some(event_loop) = weak.upgrade() {
                event_loop.run_queued(args.py());
            }
        })?;
        running.call_method1("add_reader", (event_loop.receiver.as_raw_fd(), run_queued))?;
        Ok(event_loop)
    }

    /// Queues a closure for the event loop and wakes the loop.
    fn submit(&self, settling: Settling) {
        let mut queue = self.lock();
        queue.push(settling);
        let first = queue.len() == 1;
        drop(queue);
        if first {
            // If the socket is full, the event loop will wake anyway.
            let _ = (&self.sender).write(&[0]);
        }
    }

    /// Runs the queued closures, on the thread of the event loop.
    fn run_queued(&self, py: Python<'_>) {
        // An earlier wake-up may have consumed the bytes.
        let _ = (&self.receiver).read(&mut [0; 64]);
        let settlings = std::mem::take(&mut *self.lock());
        for settling in settlings {
            settling(py);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Settling>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future of asyncio that will be settled once.
struct Promise {
    event_loop: Arc<Loop>,
    future: Option<Py<PyAny>>,
}

impl Promise {
    fn settle<T: Send + 'static>(
        mut self,
        outcome: Outcome<T>,
        make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) {
        if let Some(future) = self.future.take() {
            self.event_loop.submit(Box::new(move |py| settle(py, future.bind(py), outcome, make)));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        // The work was dropped, because its future was cancelled or because a thread panicked.
        if let Some(future) = self.future.take() {
            let make = |py: Python<'_>, ()| Ok(py.None());
            let settling = move |py: Python<'_>| {
                settle(py, future.bind(py), Err(Failure::lost()), make);
            };
            self.event_loop.submit(Box::new(settling));
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

/// Starts work on threads of the runtime, and returns a future of the event loop that runs on this
/// thread.
pub(crate) fn start<T: Send + 'static>(
    py: Python<'_>,
    work: Work<T>,
    make: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Bound<'_, PyAny>> {
    let event_loop = Loop::running(py)?;
    let future = event_loop.object.bind(py).call_method0("create_future")?;
    let work = match work {
        Work::Done(outcome) => {
            settle(py, &future, outcome, make);
            return Ok(future);
        }
        work => work,
    };
    let promise = Promise { event_loop, future: Some(future.clone().unbind()) };
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
