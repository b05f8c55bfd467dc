//! Python classes for watches: committed changes in order, blocking and asynchronous.

use super::tables::AnyData;
use crate::failure::{Failure, Outcome};
use crate::runtime::{CallMode, Undelivered, Work, begin_object, wait};
use crate::store::engine::{Engine, StoreUser, TableRef};
use crate::store::results::Change;
use crate::store::source_slot::{SourceGuard, SourceSlot};
use futures_core::Stream;
use nuthatch_rpc::WatchStream;
use nuthatch_store::{BatchStream, Range, Start};
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Changes = Vec<nuthatch_store::Change>;

/// The source of the changes of a watch.
struct Source {
    stream: ChangeStream,
    /// Changes that were read and not delivered to a caller.
    undelivered: VecDeque<Changes>,
}

enum ChangeStream {
    Local(BatchStream<Changes>),
    Remote(Box<WatchStream>),
}

impl Source {
    fn new(stream: ChangeStream) -> Self {
        Self { stream, undelivered: VecDeque::new() }
    }

    async fn next(&mut self) -> Outcome<Option<Changes>> {
        if let Some(changes) = self.undelivered.pop_front() {
            return Ok(Some(changes));
        }
        Ok(match &mut self.stream {
            ChangeStream::Local(stream) => {
                poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await.transpose()?
            }
            ChangeStream::Remote(stream) => stream.next().await.transpose()?,
        })
    }
}

/// A read in progress. If it is dropped, it returns the source to the slot unchanged.
struct ReadInProgress(Option<SourceGuard<Source>>);

impl ReadInProgress {
    fn source(&mut self) -> Outcome<&mut Source> {
        self.0.as_mut().ok_or_else(Failure::lost)?.get()
    }

    /// Ends the reading: the stream has no more changes.
    fn end(&mut self) {
        self.0 = None;
    }
}

impl Drop for ReadInProgress {
    fn drop(&mut self) {
        if let Some(source) = self.0.take() {
            source.give_back();
        }
    }
}

/// The tables, keys and beginning of a watch.
#[derive(Clone)]
struct WatchOptions {
    /// `None` for all tables.
    table: Option<TableRef>,
    range: Range,
    start: Start,
}

/// The state of a watch in Python.
struct WatchState {
    engine: Engine,
    slot: Mutex<Option<Arc<SourceSlot<Source>>>>,
    /// Sequence number of the last delivered change, or of the change after which the watch began.
    sequence: AtomicU64,
}

impl WatchState {
    /// Returns work that begins the watch.
    fn begin(self: &Arc<Self>, options: WatchOptions) -> Work<()> {
        let state = Arc::clone(self);
        Work::awaited(async move {
            if state.slot().is_some() {
                return Ok(());
            }
            let (source, sequence) = state.open(options).await?;
            state.sequence.store(sequence, Ordering::Relaxed);
            *state.slot() = Some(Arc::new(SourceSlot::new("watch", source)));
            if let Engine::Local(local) = &state.engine {
                let user: Arc<dyn StoreUser> = Arc::clone(&state) as Arc<dyn StoreUser>;
                local.add_user(Arc::downgrade(&user));
            }
            Ok(())
        })
    }

    async fn open(&self, options: WatchOptions) -> Outcome<(Source, u64)> {
        let WatchOptions { table, range, start } = options;
        match &self.engine {
            Engine::Local(local) => {
                let local = Arc::clone(local);
                let open = Work::blocking(move || {
                    let store = local.store()?;
                    let table = table.map(|table| table.open(&store)).transpose()?;
                    let watch = store.watch(table.as_ref(), range, start)?;
                    let sequence = watch.next_sequence().saturating_sub(1);
                    Ok((Source::new(ChangeStream::Local(watch.into_stream())), sequence))
                });
                open.outcome().await
            }
            Engine::Remote(remote) => {
                let client = remote.client()?;
                let table = table.as_ref().map(TableRef::name);
                let stream = client.watch(table, &range, start).await?;
                let sequence = stream.sequence();
                Ok((Source::new(ChangeStream::Remote(Box::new(stream))), sequence))
            }
        }
    }

    /// Returns work that reads the next changes; `None` after the watch was closed. Changes of a
    /// cancelled call are delivered by the next call.
    fn next(self: &Arc<Self>) -> Work<Undelivered<Option<Changes>>> {
        let source = match self.take_source() {
            Ok(Some(source)) => source,
            Ok(None) => return Work::Done(Ok(Undelivered::new(None, drop))),
            Err(failure) => return Work::Done(Err(failure)),
        };
        let (state, mut read) = (Arc::clone(self), ReadInProgress(Some(source)));
        Work::awaited(async move {
            let next = match read.source() {
                Ok(source) => source.next().await,
                Err(failure) => Err(failure),
            };
            if !matches!(next, Ok(Some(_))) {
                read.end();
            }
            Ok(Undelivered::new(next?, move |lost| {
                if let Some(changes) = lost {
                    state.put_back(changes);
                }
            }))
        })
    }

    /// Returns undelivered changes to the watch, for the next call.
    fn put_back(&self, changes: Changes) {
        if let Some(slot) = &*self.slot()
            && let Ok(Some(mut source)) = slot.take()
        {
            if let Ok(source) = source.get() {
                source.undelivered.push_front(changes);
            }
            source.give_back();
        }
    }

    /// Delivers changes to the caller and records the sequence number of the last one.
    fn deliver(&self, changes: Undelivered<Option<Changes>>) -> Option<Vec<Change>> {
        let changes = changes.deliver().flatten()?;
        if let Some(last) = changes.last() {
            self.sequence.store(last.sequence, Ordering::Relaxed);
        }
        Some(changes.into_iter().map(Change::from).collect())
    }

    fn take_source(&self) -> Outcome<Option<SourceGuard<Source>>> {
        if let Some(slot) = &*self.slot() {
            slot.take()
        } else {
            let message = "the watch has not begun: use `async with`, or await it";
            Err(Failure::argument(message))
        }
    }

    fn end(&self, reason: Option<Failure>) {
        if let Some(slot) = &*self.slot() {
            slot.end(reason);
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<SourceSlot<Source>>>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreUser for WatchState {
    fn release(&self) {
        self.end(Some(Failure::closed("store")));
    }
}

/// Methods that all watches have, blocking and asynchronous.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyWatch {
    state: Arc<WatchState>,
    options: WatchOptions,
}

/// Committed changes in order: an iterator of lists that waits for more changes. It ends with
/// `close`, with an error, or with a signal whose handler raises.
#[pyclass(frozen, extends = AnyWatch, module = "nuthatch")]
pub(crate) struct Watch;

/// Committed changes in order: an asynchronous iterator of lists that waits for more changes. It
/// begins with `async with` or `await`.
#[pyclass(frozen, extends = AnyWatch, module = "nuthatch")]
pub(crate) struct AsyncWatch;

/// Converts the beginning of a watch: `"now"`, `"oldest"`, or the sequence number of the change
/// before the first.
fn start(py: Python<'_>, since: Option<&Bound<'_, PyAny>>) -> PyResult<Start> {
    let Some(since) = since else { return Ok(Start::Now) };
    if let Ok(word) = since.cast::<PyString>() {
        match word.to_cow()?.as_ref() {
            "now" => return Ok(Start::Now),
            "oldest" => return Ok(Start::Oldest),
            _ => {}
        }
    } else if let Ok(sequence) = since.extract() {
        return Ok(Start::After(sequence));
    }
    let message = format!(
        "since: expected \"now\", \"oldest\" or the number of a change, found {}",
        since.repr()?
    );
    Err(Failure::argument(message).raise(py))
}

/// Begins a watch, or creates an asynchronous one that has not begun.
pub(crate) fn make(
    py: Python<'_>,
    data: &AnyData,
    since: Option<&Bound<'_, PyAny>>,
    table: Option<&TableRef>,
    range: Range,
) -> PyResult<Py<PyAny>> {
    let options = WatchOptions { table: table.cloned(), range, start: start(py, since)? };
    let (engine, slot) = (data.engine.clone(), Mutex::new(None));
    let state = Arc::new(WatchState { engine, slot, sequence: AtomicU64::new(0) });
    let (begun, begins) = (Arc::clone(&state), options.clone());
    let base = PyClassInitializer::from(AnyWatch { state, options });
    match data.mode {
        CallMode::Sync => {
            begun.begin(begins).wait(py)?;
            Ok(Py::new(py, base.add_subclass(Watch))?.into_any())
        }
        CallMode::Async => Ok(Py::new(py, base.add_subclass(AsyncWatch))?.into_any()),
    }
}

#[pymethods]
impl AnyWatch {
    /// Returns the sequence number of the last delivered change, or of the change after which the
    /// watch began. Another watch can continue with it as `since`.
    #[getter]
    fn sequence(&self) -> u64 {
        self.state.sequence.load(Ordering::Relaxed)
    }

    /// Ends the watch.
    fn close(&self) {
        self.state.end(None);
    }
}

#[pymethods]
impl Watch {
    /// Waits for the next changes.
    ///
    /// Args:
    ///     `timeout`: Maximum time to wait in seconds; by default unlimited.
    ///
    /// Returns:
    ///     A list of changes: those of complete transactions, or a part of a long transaction.
    ///     `None` if no change came within `timeout`, or the watch was closed.
    #[pyo3(signature = (timeout=None))]
    fn next(slf: &Bound<'_, Self>, timeout: Option<f64>) -> PyResult<Option<Vec<Change>>> {
        let (py, state) = (slf.py(), &slf.as_super().get().state);
        let Some(seconds) = timeout else {
            return Ok(state.deliver(state.next().wait(py)?));
        };
        let (limit, next) = (crate::convert::duration("timeout", seconds)?, state.next().outcome());
        match wait(py, async { tokio::time::timeout(limit, next).await })? {
            Ok(next) => Ok(state.deliver(next.map_err(|failure| failure.raise(py))?)),
            Err(_) => Ok(None),
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Vec<Change>>> {
        let state = &slf.as_super().get().state;
        Ok(state.deliver(state.next().wait(slf.py())?))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) {
        slf.as_super().get().close();
    }
}

#[pymethods]
impl AsyncWatch {
    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::__aenter__(slf)?.call_method0("__await__")
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let begin = base.state.begin(base.options.clone());
        let state = Arc::clone(&base.state);
        begin_object(slf.py(), begin, slf.clone().into_any().unbind(), move || state.end(None))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().close();
        Work::Done(Ok(())).answer(slf.py(), CallMode::Async)
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        use pyo3::IntoPyObjectExt;
        let state = Arc::clone(&slf.as_super().get().state);
        let next = state.next();
        next.answer_with(slf.py(), CallMode::Async, move |py, next| match state.deliver(next) {
            Some(changes) => changes.into_py_any(py),
            None => Err(PyStopAsyncIteration::new_err(())),
        })
    }
}
