//! Python classes for batch writers: writes of many tasks are committed in groups, and each is
//! acknowledged.

mod ack;
mod state;

pub(crate) use ack::Ack;

use super::batch::Batch;
use super::tables::{AnyData, table_of};
use crate::convert::{BytesArg, KeywordArguments, expiry};
use crate::runtime::{CallMode, Work, begin_object, start};
use crate::store::engine::Writes;
use crate::store::results::Written;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use state::{Options, WriterState};
use std::sync::Arc;

/// Methods that all writers have, blocking and asynchronous.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyWriter {
    state: Arc<WriterState>,
    options: Options,
    mode: CallMode,
}

/// A batch writer: commits writes in groups and acknowledges each one when it is durable. Writes
/// block while the queue is full.
#[pyclass(frozen, extends = AnyWriter, module = "nuthatch")]
pub(crate) struct Writer;

/// A batch writer: commits writes of many tasks in groups and acknowledges each one when it is
/// durable. It starts with `async with` or `await`. Writes wait while the queue is full.
#[pyclass(frozen, extends = AnyWriter, module = "nuthatch")]
pub(crate) struct AsyncWriter;

/// Starts a writer, or creates an asynchronous one that has not started.
pub(crate) fn make(
    py: Python<'_>,
    data: &AnyData,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let arguments = KeywordArguments::new("writer", options);
    let options = Options::take(py, &arguments, &data.engine)?;
    arguments.finish()?;
    let (engine, table, mode) = (data.engine.clone(), data.table.clone(), data.mode);
    let state = WriterState::new(engine, table);
    let begun = Arc::clone(&state);
    let base = PyClassInitializer::from(AnyWriter { state, options, mode });
    match mode {
        CallMode::Sync => {
            begun.begin(options).wait(py)?;
            Ok(Py::new(py, base.add_subclass(Writer))?.into_any())
        }
        CallMode::Async => Ok(Py::new(py, base.add_subclass(AsyncWriter))?.into_any()),
    }
}

impl AnyWriter {
    fn submit_writes<'py>(&self, py: Python<'py>, writes: &Writes) -> PyResult<Bound<'py, PyAny>> {
        self.state.engine.check_not_writing(py, self.mode)?;
        let (state, mode) = (Arc::clone(&self.state), self.mode);
        self.state.submit(writes).answer_with(py, mode, move |py, ack| match mode {
            CallMode::Sync => Ok(Py::new(py, Ack::new(state, ack))?.into_any()),
            CallMode::Async => {
                let make = |py: Python<'_>, written: Written| written.into_py_any(py);
                Ok(start(py, Work::Awaited(ack), make)?.unbind())
            }
        })
    }
}

#[pymethods]
impl AnyWriter {
    /// Writes a value. Replaces the value that the key has. Waits while the queue is full.
    ///
    /// Args:
    ///     `key`: The key, 1 to 511 bytes.
    ///     `value`: The value.
    ///     `ttl`: Seconds from now until the row expires; stamped tables only.
    ///     `expires_at`: Time of expiry in seconds since 1970, instead of `ttl`.
    ///     `table`: The table; by default that of the writer.
    ///
    /// Returns:
    ///     The acknowledgement.
    #[pyo3(signature = (key, value, *, ttl=None, expires_at=None, table=None))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        key: BytesArg<'py>,
        value: BytesArg<'py>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut writes = Writes::default();
        writes.put(table_of(table)?, &key, &value, expiry(py, ttl, expires_at)?);
        self.submit_writes(py, &writes)
    }

    /// Deletes a key. Deleting a missing key has no effect. Waits while the queue is full.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the writer.
    ///
    /// Returns:
    ///     The acknowledgement.
    #[pyo3(signature = (key, *, table=None))]
    fn delete<'py>(
        &self,
        py: Python<'py>,
        key: BytesArg<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut writes = Writes::default();
        writes.delete(table_of(table)?, &key);
        self.submit_writes(py, &writes)
    }

    /// Submits a batch, which is committed as a whole or not at all. Waits while the queue is full.
    ///
    /// Args:
    ///     `batch`: The batch.
    ///
    /// Returns:
    ///     The acknowledgement.
    fn submit<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, Batch>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.submit_writes(py, &batch.get().writes())
    }

    /// Waits until all earlier batches are acknowledged.
    ///
    /// Raises:
    ///     `Error`: A write failed whose acknowledgement was dropped.
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.state.flush().answer(py, self.mode)
    }

    /// Flushes the writer and ends it.
    ///
    /// Raises:
    ///     `Error`: A write failed whose acknowledgement was dropped.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.state.close().answer(py, self.mode)
    }
}

#[pymethods]
impl Writer {
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        slf.as_super().get().state.close().wait(slf.py())
    }
}

#[pymethods]
impl AsyncWriter {
    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::__aenter__(slf)?.call_method0("__await__")
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let begin = base.state.begin(base.options);
        let state = Arc::clone(&base.state);
        begin_object(slf.py(), begin, slf.clone().into_any().unbind(), move || state.end())
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().close(slf.py())
    }
}
