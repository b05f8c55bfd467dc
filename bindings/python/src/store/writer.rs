//! Python classes for batch writers: writes of many tasks are committed in groups, and each is
//! acknowledged.

use super::batch::Batch;
use super::data::{AnyData, table_of};
use super::engine::Engine;
use super::figures::Written;
use super::held::Held;
use super::opening::durability;
use super::remote::ready;
use super::snapshot::begun;
use super::tables::TableRef;
use super::writes::Writes;
use crate::event_loop;
use crate::failure::{Failure, Outcome};
use crate::named::Named;
use crate::octets::Octets;
use crate::own::{Own, check_process};
use crate::runtime::generation;
use crate::times::expiry;
use crate::wait::wait;
use crate::work::{Awaited, Face, Work};
use nuthatch_rpc::BatchWriterOptions;
use nuthatch_store::{BatchOptions, BatchWriter};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Number of dropped acknowledgements from which on those that have arrived are checked and
/// removed.
const MAX_UNWATCHED: usize = 1024;

/// The options of a writer.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    here: BatchOptions,
    remote: BatchWriterOptions,
}

impl Options {
    /// Takes `queue_bytes` and, for a store in this process, `durability`, `failure` and `linger`.
    fn take(py: Python<'_>, named: &Named<'_>, engine: &Engine) -> PyResult<Self> {
        let mut options = Self { here: BatchOptions::new(), remote: BatchWriterOptions::new() };
        if let Engine::Local(local) = engine {
            options.here = options.here.durability(local.durability());
        }
        if let Some(bytes) = named.take("queue_bytes")? {
            options.here = options.here.queue_bytes(bytes);
            options.remote = options.remote.bytes(bytes);
        }
        let mut of_a_folder = Vec::new();
        if let Some(wanted) = durability(named)? {
            options.here = options.here.durability(wanted);
            of_a_folder.push("durability");
        }
        if let Some(word) = named.take::<String>("failure")? {
            let failure = match word.as_str() {
                "alone" => nuthatch_store::Failure::Alone,
                "group" => nuthatch_store::Failure::Group,
                _ => {
                    let message = format!("failure: expected alone or group, found {word:?}");
                    return Err(PyValueError::new_err(message));
                }
            };
            options.here = options.here.failure(failure);
            of_a_folder.push("failure");
        }
        if let Some(linger) = named.seconds("linger")? {
            options.here = options.here.linger(linger);
            of_a_folder.push("linger");
        }
        if let Some(option) = of_a_folder.first() {
            engine.local(option).map_err(|failure| failure.raise(py))?;
        }
        Ok(options)
    }
}

/// A batch writer of either kind of store.
#[derive(Clone)]
enum Taker {
    Here(BatchWriter),
    Remote(nuthatch_rpc::BatchWriter),
}

/// The state of a writer in Python.
pub(crate) struct State {
    engine: Engine,
    table: TableRef,
    /// The process that created the writer.
    generation: u32,
    taker: Mutex<Progress>,
    /// Acknowledgements whose objects were dropped before they arrived.
    unwatched: Mutex<Unwatched>,
}

enum Progress {
    Before,
    Open(Own<Taker>),
    Ended,
}

#[derive(Default)]
struct Unwatched {
    acks: VecDeque<Awaited<Written>>,
    /// The first failure among them.
    failed: Option<Failure>,
}

impl Unwatched {
    /// Checks and removes the acknowledgements that have arrived.
    fn look(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while let Some(ack) = self.acks.front_mut() {
            let Poll::Ready(outcome) = ack.as_mut().poll(&mut context) else { return };
            self.failed = self.failed.take().or(outcome.err());
            self.acks.pop_front();
        }
    }
}

impl State {
    fn begin(self: &Arc<Self>, options: Options) -> Work<()> {
        let state = Arc::clone(self);
        Work::awaited(async move {
            let taker = match &state.engine {
                Engine::Local(local) => {
                    let (local, table) = (Arc::clone(local), state.table.clone());
                    let start = Work::blocking(move || {
                        let store = local.store()?;
                        table.open(&store)?;
                        Ok(store.batch_writer(&options.here)?)
                    });
                    Taker::Here(start.outcome().await?)
                }
                Engine::Remote(remote) => {
                    let client = remote.client()?;
                    ready(&client, &state.table).await?;
                    Taker::Remote(client.batch_writer(&options.remote).await?)
                }
            };
            *state.lock() = Progress::Open(Own::new(taker));
            if let Engine::Local(local) = &state.engine {
                let holder: Arc<dyn Held> = Arc::clone(&state) as Arc<dyn Held>;
                local.hold(Arc::downgrade(&holder));
            }
            Ok(())
        })
    }

    fn taker(&self) -> Outcome<Taker> {
        check_process(self.generation, "writer")?;
        match &*self.lock() {
            Progress::Open(taker) => taker.here().cloned().ok_or_else(|| Failure::closed("writer")),
            Progress::Ended => Err(Failure::closed("writer")),
            Progress::Before => {
                let message = "the writer was not started: use `async with`, or await it";
                Err(Failure::argument(message))
            }
        }
    }

    /// Returns work that submits writes when the queue has room for them. It results in their
    /// acknowledgement.
    fn submit(&self, writes: &Writes) -> Work<Awaited<Written>> {
        match (self.taker(), &self.engine) {
            (Ok(Taker::Here(taker)), Engine::Local(local)) => {
                let batch = local.store().and_then(|store| writes.batch(&store, &self.table));
                Work::awaited(async move {
                    let ack = taker.submit_async(batch?).await?;
                    let ack: Awaited<Written> = Box::pin(async move { Ok(ack.await?.into()) });
                    Ok(ack)
                })
            }
            (Ok(Taker::Remote(taker)), _) => {
                let batch = writes.remote_batch(&self.table);
                Work::awaited(async move {
                    let ack = taker.submit(batch?).await?;
                    let ack: Awaited<Written> = Box::pin(async move { Ok(ack.await?.into()) });
                    Ok(ack)
                })
            }
            (Ok(_), _) => Work::Done(Err(Failure::lost())),
            (Err(failure), _) => Work::Done(Err(failure)),
        }
    }

    /// Returns work that waits until all earlier batches are acknowledged.
    fn flush(self: &Arc<Self>) -> Work<()> {
        let state = Arc::clone(self);
        Work::awaited(async move {
            match state.taker()? {
                Taker::Here(writer) => {
                    Work::blocking(move || Ok(writer.flush()?)).outcome().await?;
                }
                Taker::Remote(writer) => writer.flush().await?,
            }
            let mut unwatched = state.unwatched();
            unwatched.look();
            unwatched.failed.take().map_or(Ok(()), Err)
        })
    }

    fn close(self: &Arc<Self>) -> Work<()> {
        let state = Arc::clone(self);
        if matches!(&*self.lock(), Progress::Ended) {
            return Work::Done(Ok(()));
        }
        let flushed = self.flush();
        Work::awaited(async move {
            let flushed = flushed.outcome().await;
            state.end();
            flushed
        })
    }

    fn end(&self) {
        let before = std::mem::replace(&mut *self.lock(), Progress::Ended);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.taker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unwatched(&self) -> MutexGuard<'_, Unwatched> {
        self.unwatched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held for State {
    /// Commits submitted writes before the store is closed.
    fn release(&self) {
        if let Ok(Taker::Here(writer)) = self.taker() {
            // Each acknowledgement reports its own error.
            let _ = writer.flush();
        }
        self.end();
    }
}

/// Methods that all writers have, blocking and asynchronous.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyWriter {
    state: Arc<State>,
    options: Options,
    face: Face,
}

/// A batch writer: commits writes in groups and acknowledges each one when it is durable. Writes
/// block while the queue is full.
#[pyclass(frozen, extends = AnyWriter, module = "nuthatch")]
pub(crate) struct Writer;

/// A batch writer: commits writes of many tasks in groups and acknowledges each one when it is
/// durable. It starts with `async with` or `await`. Writes wait while the queue is full.
#[pyclass(frozen, extends = AnyWriter, module = "nuthatch")]
pub(crate) struct AsyncWriter;

/// The acknowledgement of a write. If it is dropped, `flush` or `close` of the writer reports a
/// failure.
#[pyclass(frozen, module = "nuthatch")]
pub(crate) struct Ack {
    state: Arc<State>,
    progress: Mutex<AckProgress>,
}

enum AckProgress {
    Waiting(Awaited<Written>),
    There(Outcome<Written>),
    /// A call waits for it.
    Away,
}

/// Starts a writer, or creates an asynchronous one that has not started.
pub(crate) fn make(
    py: Python<'_>,
    data: &AnyData,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let named = Named::new("writer", options);
    let options = Options::take(py, &named, &data.engine)?;
    named.finish()?;
    let (engine, table, face) = (data.engine.clone(), data.table.clone(), data.face);
    let (taker, unwatched) = (Mutex::new(Progress::Before), Mutex::default());
    let state = Arc::new(State { engine, table, generation: generation(), taker, unwatched });
    let begun = Arc::clone(&state);
    let base = PyClassInitializer::from(AnyWriter { state, options, face });
    match face {
        Face::Sync => {
            begun.begin(options).wait(py)?;
            Ok(Py::new(py, base.add_subclass(Writer))?.into_any())
        }
        Face::Async => Ok(Py::new(py, base.add_subclass(AsyncWriter))?.into_any()),
    }
}

impl AnyWriter {
    fn submit_writes<'py>(&self, py: Python<'py>, writes: &Writes) -> PyResult<Bound<'py, PyAny>> {
        self.state.engine.check_not_writing(py, self.face)?;
        let (state, face) = (Arc::clone(&self.state), self.face);
        self.state.submit(writes).answer_with(py, face, move |py, ack| match face {
            Face::Sync => {
                let progress = Mutex::new(AckProgress::Waiting(ack));
                Ok(Py::new(py, Ack { state, progress })?.into_any())
            }
            Face::Async => {
                let make = |py: Python<'_>, written: Written| written.into_py_any(py);
                Ok(event_loop::start(py, Work::Awaited(ack), make)?.unbind())
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
        key: Octets<'py>,
        value: Octets<'py>,
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
        key: Octets<'py>,
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
        self.state.flush().answer(py, self.face)
    }

    /// Flushes the writer and ends it.
    ///
    /// Raises:
    ///     `Error`: A write failed whose acknowledgement was dropped.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.state.close().answer(py, self.face)
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
        begun(slf.py(), begin, slf.clone().into_any().unbind(), move || state.end())
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().close(slf.py())
    }
}

impl Ack {
    fn lock(&self) -> MutexGuard<'_, AckProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> AckProgress {
        std::mem::replace(&mut *self.lock(), AckProgress::Away)
    }
}

/// Returns an acknowledgement to its object if the wait for it ended without a result.
struct Waiting<'a> {
    ack: &'a Ack,
    future: Option<Awaited<Written>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            *self.ack.lock() = AckProgress::Waiting(future);
        }
    }
}

#[pymethods]
impl Ack {
    /// Waits for the acknowledgement.
    ///
    /// Args:
    ///     `timeout`: Maximum time to wait in seconds; by default unlimited.
    ///
    /// Returns:
    ///     A `Written` with the transaction and the sequence number.
    ///
    /// Raises:
    ///     `TimeoutError`: No acknowledgement came within `timeout`.
    ///     `Error`: The write failed.
    #[pyo3(signature = (timeout=None))]
    fn result(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Written> {
        let outcome = match self.take() {
            AckProgress::There(outcome) => outcome,
            AckProgress::Away => {
                let message = "another caller waits for this acknowledgement";
                return Err(Failure::argument(message).raise(py));
            }
            AckProgress::Waiting(future) => {
                let limit = timeout.map(|seconds| crate::times::duration("timeout", seconds));
                let mut waiting = Waiting { ack: self, future: Some(future) };
                let limit = limit.transpose()?.unwrap_or(Duration::MAX);
                let answer = poll_fn(|context| match &mut waiting.future {
                    Some(future) => Pin::new(future).poll(context),
                    None => Poll::Ready(Err(Failure::lost())),
                });
                let Ok(outcome) = wait(py, async { tokio::time::timeout(limit, answer).await })?
                else {
                    return Err(PyTimeoutError::new_err("the write is not acknowledged yet"));
                };
                waiting.future = None;
                outcome
            }
        };
        *self.lock() = AckProgress::There(outcome.clone());
        outcome.map_err(|failure| failure.raise(py))
    }

    /// Returns whether the acknowledgement has arrived.
    fn done(&self) -> bool {
        let mut progress = self.lock();
        if let AckProgress::Waiting(future) = &mut *progress {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
                *progress = AckProgress::There(outcome);
            }
        }
        matches!(&*progress, AckProgress::There(_))
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        let AckProgress::Waiting(future) = self.take() else { return };
        let mut unwatched = self.state.unwatched();
        unwatched.acks.push_back(future);
        if unwatched.acks.len() >= MAX_UNWATCHED {
            unwatched.look();
        }
    }
}
