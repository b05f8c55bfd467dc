//! The threads that work for Python: started when they are first needed, and again in a child that
//! was made by `fork`, which has none of its parent's threads.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that speak with servers and hand answers over.
const THREADS: usize = 2;
/// Threads that may wait for the disk, at most, and how long one without work stays.
const BLOCKING_THREADS: usize = 64;
const BLOCKING_IDLE: Duration = Duration::from_secs(10);

static GENERATION: AtomicU32 = AtomicU32::new(0);
// Taken while attached to the interpreter alone, as is `fork`: so no child finds it locked.
static RUNTIME: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// Which process this is, counted along `fork`.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Called by Python in a child that was made by `fork`.
#[pyfunction]
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The runtime of this process.
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
    // A parent's runtime is forgotten, not dropped: that would wait for threads that are not here.
    std::mem::forget(current.replace((generation(), runtime)));
    Ok(handle)
}
