//! One fetch for each gap, in Python.

use super::blocks::Blocks;
use super::cache::raised;
use super::figures::{Stored, pairs};
use crate::failure::Failure;
use crate::own::Own;
use crate::work::{Face, Work};
use nuthatch_chunks::{FetchLock, Fetched};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was claimed of a gap.
#[pyclass(frozen, get_all, module = "nuthatch.chunks")]
pub(crate) struct Claim {
    /// What the caller is to fetch.
    pub(crate) mine: Vec<Py<Ticket>>,
    /// What others are fetching already.
    pub(crate) theirs: Vec<Py<Waiting>>,
}

/// Takes what was claimed. The lock is taken while attached to the interpreter alone.
fn take<T>(own: &Mutex<Own<T>>) -> Option<T> {
    own.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The duty to fetch a range. One that goes away tells those who wait that it failed.
#[pyclass(frozen, module = "nuthatch.chunks")]
pub(crate) struct Ticket {
    blocks: Blocks,
    range: (u64, u64),
    own: Mutex<Own<nuthatch_chunks::Flight>>,
    /// The claim among processes, once it is had.
    claimed: Mutex<Option<Own<FetchLock>>>,
}

impl Ticket {
    pub(crate) fn new(
        py: Python<'_>,
        blocks: Blocks,
        ticket: nuthatch_chunks::Flight,
    ) -> PyResult<Py<Self>> {
        let range = (ticket.range().start, ticket.range().end);
        let own = Mutex::new(Own::new(ticket));
        Py::new(py, Self { blocks, range, own, claimed: Mutex::default() })
    }

    fn claimed(&self) -> MutexGuard<'_, Option<Own<FetchLock>>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Ticket {
    /// The range to fetch.
    #[getter]
    fn range(&self) -> (u64, u64) {
        self.range
    }

    /// Claims the range among processes as well, without waiting. False if another process has some
    /// of it: then it may come without being fetched. Whoever has the claim looks once more what is
    /// missing.
    fn claim_among_processes(&self, py: Python<'_>) -> PyResult<bool> {
        let chunks = self.blocks.folder.chunks(py)?;
        let (start, end) = self.range;
        let claim = || chunks.try_fetch_lock(&self.blocks.key, start..end);
        // A folder in which nothing can be claimed is one that others fetch for, too.
        let Ok(claimed) = py.detach(claim) else { return Ok(true) };
        let has = claimed.is_some();
        if has {
            *self.claimed() = claimed.map(Own::new);
        }
        Ok(has)
    }

    /// Puts the bytes of the range, and tells those who wait.
    fn finish(&self, py: Python<'_>, data: PyBackedBytes) -> PyResult<Stored> {
        let Some(ticket) = take(&self.own) else {
            return Err(Failure::closed("ticket").raise(py));
        };
        let (start, end) = self.range;
        if data.len() as u64 != end - start {
            let found = data.len();
            let message =
                format!("a fetch of {start}..{end}: expected {} bytes, found {found}", end - start);
            return Err(Failure::new("buffer", message).raise(py));
        }
        let chunks = self.blocks.folder.chunks_to_change(py)?;
        let outcome = py.detach(|| {
            let stored = self.blocks.of(&chunks)?.put(start, &data)?;
            ticket.finish(match stored.not_kept {
                None => Fetched::Stored,
                Some(_) => Fetched::Bytes((*data).into()),
            });
            Ok(stored)
        });
        self.claimed().take();
        raised(py, outcome).map(Stored::from)
    }

    /// Tells those who wait that it failed, unless it is finished.
    fn give_up(&self) {
        drop(take(&self.own));
        self.claimed().take();
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        crate::shown::fields(slf.as_any(), &["range"])
    }
}

/// Somebody else's fetch: to be waited for by a thread with `wait`, or awaited by a task.
#[pyclass(frozen, module = "nuthatch.chunks")]
pub(crate) struct Waiting {
    range: (u64, u64),
    own: Mutex<Own<nuthatch_chunks::Waiter>>,
}

impl Waiting {
    pub(crate) fn new(py: Python<'_>, waiting: nuthatch_chunks::Waiter) -> PyResult<Py<Self>> {
        let range = (waiting.range().start, waiting.range().end);
        Py::new(py, Self { range, own: Mutex::new(Own::new(waiting)) })
    }

    /// What there is to do, answered with bytes or nothing.
    fn answer<'py>(&self, py: Python<'py>, face: Face) -> PyResult<Bound<'py, PyAny>> {
        let Some(waiting) = take(&self.own) else {
            return Err(Failure::closed("fetch of somebody else").raise(py));
        };
        let work = Work::awaited(async move { Ok(waiting.await) });
        work.answer_with(py, face, |py, fetched| match fetched {
            Fetched::Bytes(bytes) => PyBytes::new(py, &bytes).into_py_any(py),
            Fetched::Stored | Fetched::Failed => Ok(py.None()),
        })
    }
}

#[pymethods]
impl Waiting {
    /// The range that is being fetched.
    #[getter]
    fn range(&self) -> (u64, u64) {
        self.range
    }

    /// Waits until it was fetched, or could not be. Answers the bytes of the range if they could
    /// not be kept; otherwise nothing: look again, and claim what is missing still.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answer(py, Face::Sync)
    }

    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answer(py, Face::Async)?.call_method0("__await__")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        crate::shown::fields(slf.as_any(), &["range"])
    }
}

/// Merges ranges between which there are no more than so many bytes, as long as none becomes longer
/// than `longest`.
#[pyfunction]
#[pyo3(signature = (missing, gap_most, longest, /))]
pub(crate) fn _merge_gaps(
    missing: Vec<(u64, u64)>,
    gap_most: u64,
    longest: u64,
) -> Vec<(u64, u64)> {
    let missing: Vec<_> = missing.into_iter().map(|(start, end)| start..end).collect();
    pairs(&nuthatch_chunks::merge_gaps(&missing, gap_most, longest))
}
