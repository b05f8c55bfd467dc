//! Python classes for read transactions.

use super::tables::AnyData;
use super::txn_methods::AnyTxn;
use crate::runtime::{CallMode, Work, begin_object};
use crate::store::transactions::TxnState;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A read transaction: one state of the store, which does not change with later writes. It prevents
/// the reuse of pages, so end it soon.
#[pyclass(frozen, extends = AnyTxn, module = "nuthatch")]
pub(crate) struct ReadTransaction;

/// A read transaction: one state of the store, which does not change with later writes. It begins
/// with `async with` or `await`. It prevents the reuse of pages, so end it soon.
#[pyclass(frozen, extends = AnyTxn, module = "nuthatch")]
pub(crate) struct AsyncReadTransaction;

/// Begins a read transaction, or creates an asynchronous one that has not begun.
pub(crate) fn make(py: Python<'_>, data: &AnyData) -> PyResult<Py<PyAny>> {
    let state = TxnState::new(data.engine.clone(), data.table.clone(), None);
    let (begun, mode) = (Arc::clone(&state), data.mode);
    let base = PyClassInitializer::from(AnyTxn { state, mode });
    match mode {
        CallMode::Sync => {
            begun.begin(py, mode)?.wait(py)?;
            Ok(Py::new(py, base.add_subclass(ReadTransaction))?.into_any())
        }
        CallMode::Async => Ok(Py::new(py, base.add_subclass(AsyncReadTransaction))?.into_any()),
    }
}

#[pymethods]
impl ReadTransaction {
    /// Ends the read transaction.
    fn close(slf: &Bound<'_, Self>) {
        let state = &slf.as_super().get().state;
        slf.py().detach(|| state.end());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) {
        Self::close(slf);
    }
}

#[pymethods]
impl AsyncReadTransaction {
    /// Ends the read transaction.
    fn close<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, state) = (slf.py(), &slf.as_super().get().state);
        py.detach(|| state.end());
        Work::Done(Ok(())).answer(py, CallMode::Async)
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::__aenter__(slf)?.call_method0("__await__")
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, base) = (slf.py(), slf.as_super().get());
        let (begin, state) = (base.state.begin(py, base.mode)?, Arc::clone(&base.state));
        begin_object(py, begin, slf.clone().into_any().unbind(), move || state.end())
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::close(slf)
    }
}
