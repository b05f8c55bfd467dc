//! The Python class of iterators over a snapshot.
//!
//! This file contains unsafe code: an iterator has the snapshot that it borrows from.

use super::failure::raised;
use super::held::Held;
use super::keys::key_object;
use super::typed::object_of;
use nuthatch_snapshot::Iter;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex, PoisonError};

/// What an iterator returns of each entry.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Keys,
    Values,
    Entries,
}

/// Fails if the snapshot of an iterator is closed.
type CheckOpen = Box<dyn Fn(Python<'_>) -> PyResult<()> + Send + Sync>;

/// An iterator over a snapshot, in the order of the file.
#[pyclass(frozen, module = "nuthatch._native")]
pub(super) struct Entries {
    /// Borrows from `held`, which lives as long as `self`. The lock is held for the step to the
    /// next entry only, without running Python code.
    iter: Mutex<Iter<'static>>,
    held: Arc<Held>,
    check_open: CheckOpen,
    part: Part,
}

impl Entries {
    /// Returns an iterator over an open snapshot. `check_open` fails if it was closed.
    pub(super) fn new(
        held: Arc<Held>,
        part: Part,
        check_open: impl Fn(Python<'_>) -> PyResult<()> + Send + Sync + 'static,
    ) -> Self {
        // SAFETY: `held` is kept as long as the iterator.
        let unbounded = unsafe { held.get_unbounded() };
        let iter = Mutex::new(unbounded.iter());
        Self { iter, held, check_open: Box::new(check_open), part }
    }
}

#[pymethods]
impl Entries {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        (self.check_open)(py)?;
        let next = self.iter.lock().unwrap_or_else(PoisonError::into_inner).next();
        let entry = next.map(|entry| raised(py, entry)).transpose()?;
        self.held.check_readable(py)?;
        let Some(entry) = entry else { return Ok(None) };
        let key = || key_object(py, entry.key);
        let value = || object_of(py, &entry.value, &self.held);
        Ok(Some(match self.part {
            Part::Keys => key(),
            Part::Values => value()?,
            Part::Entries => PyTuple::new(py, [key(), value()?])?.into_any(),
        }))
    }
}
