//! Python classes for single-flight fetches of missing ranges.

use super::block_object::BlockObject;
use super::results::{Stored, pairs, raised};
use crate::failure::Failure;
use crate::runtime::{CallMode, ProcessBound, Work};
use nuthatch_chunks::{FetchLock, Fetched};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Missing ranges: those that the caller must fetch, and those that other callers are fetching.
#[pyclass(frozen, get_all, module = "nuthatch.chunks")]
pub(crate) struct SingleFlight {
    /// Ranges that the caller must fetch.
    pub(crate) flights: Vec<Py<Flight>>,
    /// Ranges that another thread or task of this process is fetching.
    pub(crate) waiters: Vec<Py<Waiter>>,
}

/// Takes the value. The lock is held only while attached to the interpreter.
fn take<T>(value: &Mutex<ProcessBound<T>>) -> Option<T> {
    value.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A fetch that the caller must do. If it is dropped before `finish`, its waiters are notified of
/// the failure.
#[pyclass(frozen, module = "nuthatch.chunks")]
pub(crate) struct Flight {
    object: BlockObject,
    range: (u64, u64),
    unfinished: Mutex<ProcessBound<nuthatch_chunks::Flight>>,
    /// The fetch lock of the range among processes, after it was acquired.
    fetch_lock: Mutex<Option<ProcessBound<FetchLock>>>,
}

impl Flight {
    pub(crate) fn new(
        py: Python<'_>,
        object: BlockObject,
        flight: nuthatch_chunks::Flight,
    ) -> PyResult<Py<Self>> {
        let range = (flight.range().start, flight.range().end);
        let unfinished = Mutex::new(ProcessBound::new(flight));
        Py::new(py, Self { object, range, unfinished, fetch_lock: Mutex::default() })
    }

    fn fetch_lock(&self) -> MutexGuard<'_, Option<ProcessBound<FetchLock>>> {
        self.fetch_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Flight {
    /// Returns the range to fetch, as a pair of a start and an end in bytes.
    #[getter]
    fn range(&self) -> (u64, u64) {
        self.range
    }

    /// Tries to acquire the fetch lock of the range among processes, without waiting. A caller that
    /// acquires it must check again what is missing.
    ///
    /// Returns:
    ///     False if another process is fetching a part of the range, which may soon be in the
    ///     cache. True otherwise, also if the fetch lock cannot be used.
    fn try_fetch_lock(&self, py: Python<'_>) -> PyResult<bool> {
        let chunks = self.object.folder.chunks(py)?;
        let (start, end) = self.range;
        let lock = || chunks.try_fetch_lock(&self.object.key, start..end);
        // If the fetch lock cannot be used, each process fetches by itself.
        let Ok(fetch_lock) = py.detach(lock) else { return Ok(true) };
        let has = fetch_lock.is_some();
        if has {
            *self.fetch_lock() = fetch_lock.map(ProcessBound::new);
        }
        Ok(has)
    }

    /// Stores the bytes of the range and wakes the waiters.
    ///
    /// Args:
    ///     `data`: All bytes of the range.
    ///
    /// Returns:
    ///     A `Stored`. Bytes that the cache does not keep are passed to the waiters.
    ///
    /// Raises:
    ///     `ArgumentError`: The length of `data` differs from that of the range.
    ///     `ClosedError`: The flight is finished already.
    fn finish(&self, py: Python<'_>, data: PyBackedBytes) -> PyResult<Stored> {
        let Some(flight) = take(&self.unfinished) else {
            return Err(Failure::closed("flight").raise(py));
        };
        let (start, end) = self.range;
        if data.len() as u64 != end - start {
            let found = data.len();
            let message =
                format!("a fetch of {start}..{end}: expected {} bytes, found {found}", end - start);
            return Err(Failure::new("buffer", message).raise(py));
        }
        let chunks = self.object.folder.chunks_to_change(py)?;
        let outcome = py.detach(|| {
            let stored = self.object.of(&chunks)?.put(start, &data)?;
            flight.finish(match stored.not_kept {
                None => Fetched::Stored,
                Some(_) => Fetched::Bytes((*data).into()),
            });
            Ok(stored)
        });
        self.fetch_lock().take();
        raised(py, outcome).map(Stored::from)
    }

    /// Notifies the waiters that the fetch failed. Has no effect on a finished flight.
    fn give_up(&self) {
        drop(take(&self.unfinished));
        self.fetch_lock().take();
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        crate::convert::format_fields(slf.as_any(), &["range"])
    }
}

/// A fetch in progress by another thread or task of this process. A thread waits for it with
/// `wait`, a task with `await`.
#[pyclass(frozen, module = "nuthatch.chunks")]
pub(crate) struct Waiter {
    range: (u64, u64),
    waiter: Mutex<ProcessBound<nuthatch_chunks::Waiter>>,
}

impl Waiter {
    pub(crate) fn new(py: Python<'_>, waiter: nuthatch_chunks::Waiter) -> PyResult<Py<Self>> {
        let range = (waiter.range().start, waiter.range().end);
        Py::new(py, Self { range, waiter: Mutex::new(ProcessBound::new(waiter)) })
    }

    /// Waits for the fetch, or returns a future of it. The result is the bytes that the cache did
    /// not keep, or `None`.
    fn answer<'py>(&self, py: Python<'py>, mode: CallMode) -> PyResult<Bound<'py, PyAny>> {
        let Some(waiter) = take(&self.waiter) else {
            return Err(Failure::closed("fetch of another caller").raise(py));
        };
        let work = Work::awaited(async move { Ok(waiter.await) });
        work.answer_with(py, mode, |py, fetched| match fetched {
            Fetched::Bytes(bytes) => PyBytes::new(py, &bytes).into_py_any(py),
            Fetched::Stored | Fetched::Failed => Ok(py.None()),
        })
    }
}

#[pymethods]
impl Waiter {
    /// Returns the range that is being fetched, as a pair of a start and an end in bytes.
    #[getter]
    fn range(&self) -> (u64, u64) {
        self.range
    }

    /// Waits until the fetch succeeded or failed.
    ///
    /// Returns:
    ///     The bytes of the range if the cache did not keep them; otherwise `None`, and the caller
    ///     must look up again what is missing.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answer(py, CallMode::Sync)
    }

    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answer(py, CallMode::Async)?.call_method0("__await__")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        crate::convert::format_fields(slf.as_any(), &["range"])
    }
}

/// Merges ranges with gaps of at most `max_gap` bytes between them, as long as no merged range
/// exceeds `max_len` bytes.
#[pyfunction]
#[pyo3(signature = (missing, max_gap, max_len, /))]
pub(crate) fn _merge_gaps(missing: Vec<(u64, u64)>, max_gap: u64, max_len: u64) -> Vec<(u64, u64)> {
    let missing: Vec<_> = missing.into_iter().map(|(start, end)| start..end).collect();
    pairs(&nuthatch_chunks::merge_gaps(&missing, max_gap, max_len))
}
