//! Python class for batches of rows.

use crate::convert::{BufferExporter, BufferSource};
use crate::store::engine::StoreUser;
use crate::store::rows::{RowData, SharedRows};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyMemoryView, PyTuple};
use std::sync::Arc;

/// The exporter of a key or value of a batch to a `memoryview`.
struct RowField {
    data: RowData,
    row: usize,
    is_value: bool,
}

impl BufferSource for RowField {
    fn bytes(&self) -> Option<&[u8]> {
        let (key, value) = self.data.row(self.row)?;
        Some(if self.is_value { value } else { key })
    }
}

/// Rows of a scan: a sequence of `(key, value)`. Each access creates new `bytes`.
///
/// Batches of a scan of a store in this process refer to the memory map of the store and keep the
/// read transaction of the scan open. They are copied when the scan is closed before its end or the
/// store is closed. Batches of other scans are copies.
#[pyclass(frozen, sequence, module = "nuthatch")]
pub(crate) struct RowBatch(Arc<SharedRows>);

impl RowBatch {
    pub(crate) fn new(shared: Arc<SharedRows>) -> Self {
        Self(shared)
    }

    /// Returns the rows and the position for an index; a negative index counts from the end.
    fn at(&self, index: isize) -> PyResult<(RowData, usize)> {
        let data = self.0.data();
        let at = if index < 0 { index + data.len().cast_signed() } else { index };
        match usize::try_from(at) {
            Ok(at) if at < data.len() => Ok((data, at)),
            _ => Err(PyIndexError::new_err("row index out of range")),
        }
    }
}

#[pymethods]
impl RowBatch {
    fn __len__(&self) -> usize {
        self.0.data().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyTuple>> {
        let (data, at) = self.at(index)?;
        let (key, value) = data.row(at).unwrap_or_default();
        PyTuple::new(py, [PyBytes::new(py, key), PyBytes::new(py, value)])
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_list(py)?.try_iter()
    }

    /// Returns all rows as tuples of a key and a value.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let data = self.0.data();
        let list = PyList::empty(py);
        for (key, value) in data.rows() {
            list.append(PyTuple::new(py, [PyBytes::new(py, key), PyBytes::new(py, value)])?)?;
        }
        Ok(list)
    }

    /// Returns the keys.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        self.0.data().rows().try_for_each(|(key, _)| list.append(PyBytes::new(py, key)))?;
        Ok(list)
    }

    /// Returns the values.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        self.0.data().rows().try_for_each(|(_, value)| list.append(PyBytes::new(py, value)))?;
        Ok(list)
    }

    /// Returns a `memoryview` of a key, without a copy.
    ///
    /// The view protects the memory of the rows. For a scan of a store in this process it keeps the
    /// read transaction open, so release it soon.
    ///
    /// Args:
    ///     `index`: The row; a negative index counts from the end.
    fn key_view<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyMemoryView>> {
        let (data, at) = self.at(index)?;
        BufferExporter::view(py, RowField { data, row: at, is_value: false })
    }

    /// Returns a `memoryview` of a value, without a copy.
    ///
    /// The view protects the memory of the rows. For a scan of a store in this process it keeps the
    /// read transaction open, so release it soon.
    ///
    /// Args:
    ///     `index`: The row; a negative index counts from the end.
    fn value_view<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyMemoryView>> {
        let (data, at) = self.at(index)?;
        BufferExporter::view(py, RowField { data, row: at, is_value: true })
    }

    /// Copies the rows if they are in the memory map of the store, so that the batch keeps no
    /// transaction open.
    fn detach(&self, py: Python<'_>) {
        py.detach(|| self.0.release());
    }

    /// Returns whether the rows are in the memory map of the store.
    #[getter]
    fn is_mapped(&self) -> bool {
        matches!(self.0.data(), RowData::Mapped(_))
    }

    /// Returns the number of the last transaction that the scan sees.
    #[getter]
    fn transaction(&self, py: Python<'_>) -> u64 {
        let data = self.0.data();
        py.detach(|| data.transaction())
    }

    /// Returns the sequence number of the last change that the scan sees. A watch can continue
    /// after it.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        let data = self.0.data();
        py.detach(|| data.sequence()).map_err(|failure| failure.raise(py))
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.RowBatch of {} rows>", self.__len__())
    }
}
