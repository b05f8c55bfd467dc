//! The Tokio runtime for calls from Python. It starts on first use, and again in a child made by
//! `fork`, which has none of its parent's threads.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Worker threads, which do network I/O and pass on results.
const THREADS: usize = 2;
/// Maximum number of threads for blocking work such as disk I/O, and how long an idle one is kept.
const BLOCKING_THREADS: usize = 64;
const BLOCKING_IDLE: Duration = Duration::from_secs(10);

static GENERATION: AtomicU32 = AtomicU32::new(0);
// Locked only while attached to the interpreter, and so is `fork`: a child never inherits it
// locked.
static RUNTIME: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// Returns the number of calls of `fork` between the first process and this one.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Counts a `fork`. Python calls this in the child.
#[pyfunction]
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Returns the runtime of this process. Starts it on first use.
pub(crate) fn handle(_attached: Python<'_>) -> PyResult<Handle> {
    let mut current = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((generation, runtime)) = &*current
        && *generation == self::generation()
    {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_IDLE)
        .thread_name("nuthatch-python")
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    // The runtime of a parent is leaked: dropping it would wait for threads that this process does
    // not have.
    std::mem::forget(current.replace((generation(), runtime)));
    Ok(handle)
}
