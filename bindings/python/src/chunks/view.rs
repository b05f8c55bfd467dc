//! Python class for bytes of objects that are read in place.

use super::results::Missing;
use crate::convert::{BufferExporter, BufferSource};
use crate::runtime::ProcessBound;
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
    view: Arc<ProcessBound<nuthatch_chunks::View>>,
}

/// One slice of a view.
struct Slice {
    view: Arc<ProcessBound<nuthatch_chunks::View>>,
    index: usize,
}

impl BufferSource for Slice {
    fn bytes(&self) -> Option<&[u8]> {
        self.view.in_any_process()?.slices().nth(self.index)
    }
}

impl View {
    /// Converts the result of a lookup into a [`View`] or a [`Missing`].
    pub(crate) fn answer(
        py: Python<'_>,
        lookup: Lookup<nuthatch_chunks::View>,
    ) -> PyResult<Bound<'_, PyAny>> {
        match lookup {
            Lookup::Found(view) => {
                Self { view: Arc::new(ProcessBound::new(view)) }.into_bound_py_any(py)
            }
            Lookup::Missing(ranges) => Missing::of(&ranges).into_bound_py_any(py),
        }
    }

    fn slice<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyMemoryView>> {
        BufferExporter::view(py, Slice { view: Arc::clone(&self.view), index })
    }

    fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.view.in_any_process().into_iter().flat_map(nuthatch_chunks::View::slices)
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
        py.detach(|| self.view.in_any_process().is_some_and(nuthatch_chunks::View::is_intact))
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
