//! Python class for bytes of objects that are read in place.

use super::figures::Missing;
use crate::buffer::{Octets, Shown};
use crate::own::Own;
use nuthatch_chunks::Lookup;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView};
use std::sync::Arc;

/// Bytes of an object, read in place without a copy, as slices. Each slice was stored by one put.
///
/// The bytes remain valid while the view or a `memoryview` of it exists, even if they are evicted.
/// Their disk space is freed afterwards.
#[pyclass(frozen, module = "nuthatch.chunks")]
pub(crate) struct View {
    // A child made by `fork` has the same memory map.
    lent: Arc<Own<nuthatch_chunks::View>>,
}

/// One slice of a view.
struct Slice {
    lent: Arc<Own<nuthatch_chunks::View>>,
    index: usize,
}

impl Shown for Slice {
    fn bytes(&self) -> Option<&[u8]> {
        self.lent.anywhere()?.slices().nth(self.index)
    }
}

impl View {
    /// Converts the result of a lookup into a [`View`] or a [`Missing`].
    pub(crate) fn answer(
        py: Python<'_>,
        lookup: Lookup<nuthatch_chunks::View>,
    ) -> PyResult<Bound<'_, PyAny>> {
        match lookup {
            Lookup::Found(view) => Self { lent: Arc::new(Own::new(view)) }.into_bound_py_any(py),
            Lookup::Missing(ranges) => Missing::of(&ranges).into_bound_py_any(py),
        }
    }

    fn slice<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyMemoryView>> {
        Octets::view(py, Slice { lent: Arc::clone(&self.lent), index })
    }

    fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.lent.anywhere().into_iter().flat_map(nuthatch_chunks::View::slices)
    }
}

#[pymethods]
impl View {
    /// Returns the slices as read-only `memoryview`s, in order and without a copy.
    fn slices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let slices = (0..self.each().count()).map(|index| self.slice(py, index));
        PyList::new(py, slices.collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns whether the bytes are still those that were stored. They are not if a program
    /// truncated a file of the cache; some bytes are zeros then.
    #[getter]
    fn is_intact(&self, py: Python<'_>) -> bool {
        py.detach(|| self.lent.anywhere().is_some_and(nuthatch_chunks::View::is_intact))
    }

    fn __len__(&self) -> usize {
        self.each().map(<[u8]>::len).sum()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.__len__(), |out| {
            py.detach(|| {
                let mut rest = out;
                for slice in self.each() {
                    let (here, later) = rest.split_at_mut(slice.len());
                    here.copy_from_slice(slice);
                    rest = later;
                }
            });
            Ok(())
        })
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.chunks.View of {} bytes>", self.__len__())
    }
}
