//! Python classes for scans: iterators of batches, blocking and asynchronous.

use super::row_batch::RowBatch;
use crate::runtime::{CallMode, Work};
use crate::store::scan_state::ScanState;
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// Methods that all scans have, blocking and asynchronous.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyScan {
    state: Arc<ScanState>,
    mode: CallMode,
}

/// An iterator of row batches. It reads only the batches that are requested. Its read transaction
/// begins with the first batch. It ends with the last batch, or when the scan is closed or dropped.
#[pyclass(frozen, extends = AnyScan, module = "nuthatch")]
pub(crate) struct Scan;

/// An asynchronous iterator of row batches. It reads a few batches ahead at most. Its read
/// transaction begins with the first batch. It ends with the last batch, or when the scan is
/// closed, dropped or cancelled.
#[pyclass(frozen, extends = AnyScan, module = "nuthatch")]
pub(crate) struct AsyncScan;

impl AnyScan {
    /// Creates the Python object of a scan.
    pub(crate) fn make(
        py: Python<'_>,
        state: Arc<ScanState>,
        mode: CallMode,
    ) -> PyResult<Py<PyAny>> {
        let base = PyClassInitializer::from(Self { state, mode });
        Ok(match mode {
            CallMode::Sync => Py::new(py, base.add_subclass(Scan))?.into_any(),
            CallMode::Async => Py::new(py, base.add_subclass(AsyncScan))?.into_any(),
        })
    }
}

#[pymethods]
impl AnyScan {
    /// Ends the scan and its read transaction at once. Batches that the caller still has are
    /// copied.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.state.close());
    }
}

#[pymethods]
impl Scan {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<RowBatch>> {
        let py = slf.py();
        let next = slf.as_super().get().state.next().wait(py)?;
        Ok(next.deliver().flatten().map(RowBatch::new))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) {
        slf.as_super().get().close(slf.py());
    }
}

#[pymethods]
impl AsyncScan {
    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.state.next().answer_with(slf.py(), base.mode, |py, next| {
            match next.deliver().flatten() {
                Some(shared) => Ok(Py::new(py, RowBatch::new(shared))?.into_any()),
                None => Err(PyStopAsyncIteration::new_err(())),
            }
        })
    }

    fn __aenter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let (py, this) = (slf.py(), slf.unbind());
        Work::Done(Ok(())).answer_with(py, CallMode::Async, |_, ()| Ok(this.into_any()))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.close(slf.py());
        Work::Done(Ok(())).answer(slf.py(), base.mode)
    }
}
