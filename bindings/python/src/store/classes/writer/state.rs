//! The state of batch writers in Python.

use crate::convert::KeywordArguments;
use crate::failure::{Failure, Outcome};
use crate::runtime::{Awaited, ProcessBound, Work, check_process, generation};
use crate::store::engine::{Engine, StoreUser, TableRef, Writes, ensure_table, take_durability};
use crate::store::results::Written;
use nuthatch_rpc::BatchWriterOptions;
use nuthatch_store::{BatchOptions, BatchWriter};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Number of dropped acknowledgements from which on those that have arrived are checked and
/// removed.
const MAX_DROPPED_ACKS: usize = 1024;

/// The options of a writer.
#[derive(Clone, Copy)]
pub(super) struct Options {
    local: BatchOptions,
    remote: BatchWriterOptions,
}

impl Options {
    /// Takes `queue_bytes` and, for a store in this process, `durability`, `failure` and `linger`.
    pub(super) fn take(
        py: Python<'_>,
        arguments: &KeywordArguments<'_>,
        engine: &Engine,
    ) -> PyResult<Self> {
        let mut options = Self { local: BatchOptions::new(), remote: BatchWriterOptions::new() };
        if let Engine::Local(local) = engine {
            options.local = options.local.durability(local.durability());
        }
        if let Some(bytes) = arguments.take("queue_bytes")? {
            options.local = options.local.queue_bytes(bytes);
            options.remote = options.remote.bytes(bytes);
        }
        let mut local_only = Vec::new();
        if let Some(wanted) = take_durability(arguments)? {
            options.local = options.local.durability(wanted);
            local_only.push("durability");
        }
        if let Some(word) = arguments.take::<String>("failure")? {
            let failure = match word.as_str() {
                "alone" => nuthatch_store::Failure::Alone,
                "group" => nuthatch_store::Failure::Group,
                _ => {
                    let message = format!("failure: expected alone or group, found {word:?}");
                    return Err(PyValueError::new_err(message));
                }
            };
            options.local = options.local.failure(failure);
            local_only.push("failure");
        }
        if let Some(linger) = arguments.seconds("linger")? {
            options.local = options.local.linger(linger);
            local_only.push("linger");
        }
        if let Some(option) = local_only.first() {
            engine.local(option).map_err(|failure| failure.raise(py))?;
        }
        Ok(options)
    }
}

/// A batch writer of either kind of store.
#[derive(Clone)]
enum AnyBatchWriter {
    Local(BatchWriter),
    Remote(nuthatch_rpc::BatchWriter),
}

/// The state of a writer in Python.
pub(super) struct WriterState {
    pub(super) engine: Engine,
    table: TableRef,
    /// The process that created the writer.
    generation: u32,
    writer: Mutex<Progress>,
    /// Acknowledgements whose objects were dropped before they arrived.
    dropped: Mutex<DroppedAcks>,
}

enum Progress {
    Before,
    Open(ProcessBound<AnyBatchWriter>),
    Ended,
}

#[derive(Default)]
struct DroppedAcks {
    acks: VecDeque<Awaited<Written>>,
    /// The first failure among them.
    failed: Option<Failure>,
}

impl DroppedAcks {
    /// Checks and removes the acknowledgements that have arrived.
    fn poll_arrived(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while let Some(ack) = self.acks.front_mut() {
            let Poll::Ready(outcome) = ack.as_mut().poll(&mut context) else { return };
            self.failed = self.failed.take().or(outcome.err());
            self.acks.pop_front();
        }
    }
}

impl WriterState {
    /// Returns a writer that has not started.
    pub(super) fn new(engine: Engine, table: TableRef) -> Arc<Self> {
        let (writer, dropped) = (Mutex::new(Progress::Before), Mutex::default());
        Arc::new(Self { engine, table, generation: generation(), writer, dropped })
    }

    /// Waits for the acknowledgement of a dropped object in place of its caller.
    pub(super) fn add_dropped(&self, ack: Awaited<Written>) {
        let mut dropped = self.dropped();
        dropped.acks.push_back(ack);
        if dropped.acks.len() >= MAX_DROPPED_ACKS {
            dropped.poll_arrived();
        }
    }

    pub(super) fn begin(self: &Arc<Self>, options: Options) -> Work<()> {
        let state = Arc::clone(self);
        Work::awaited(async move {
            let writer = match &state.engine {
                Engine::Local(local) => {
                    let (local, table) = (Arc::clone(local), state.table.clone());
                    let start = Work::blocking(move || {
                        let store = local.store()?;
                        table.open(&store)?;
                        Ok(store.batch_writer(&options.local)?)
                    });
                    AnyBatchWriter::Local(start.outcome().await?)
                }
                Engine::Remote(remote) => {
                    let client = remote.client()?;
                    ensure_table(&client, &state.table).await?;
                    AnyBatchWriter::Remote(client.batch_writer(&options.remote).await?)
                }
            };
            *state.lock() = Progress::Open(ProcessBound::new(writer));
            if let Engine::Local(local) = &state.engine {
                let user: Arc<dyn StoreUser> = Arc::clone(&state) as Arc<dyn StoreUser>;
                local.add_user(Arc::downgrade(&user));
            }
            Ok(())
        })
    }

    fn writer(&self) -> Outcome<AnyBatchWriter> {
        check_process(self.generation, "writer")?;
        match &*self.lock() {
            Progress::Open(writer) => {
                writer.in_process().cloned().ok_or_else(|| Failure::closed("writer"))
            }
            Progress::Ended => Err(Failure::closed("writer")),
            Progress::Before => {
                let message = "the writer was not started: use `async with`, or await it";
                Err(Failure::argument(message))
            }
        }
    }

    /// Returns work that submits writes when the queue has room for them. It results in their
    /// acknowledgement.
    pub(super) fn submit(&self, writes: &Writes) -> Work<Awaited<Written>> {
        match (self.writer(), &self.engine) {
            (Ok(AnyBatchWriter::Local(local_writer)), Engine::Local(local)) => {
                let batch = local.store().and_then(|store| writes.batch(&store, &self.table));
                Work::awaited(async move {
                    let ack = local_writer.submit_async(batch?).await?;
                    let ack: Awaited<Written> = Box::pin(async move { Ok(ack.await?.into()) });
                    Ok(ack)
                })
            }
            (Ok(AnyBatchWriter::Remote(remote_writer)), _) => {
                let batch = writes.remote_batch(&self.table);
                Work::awaited(async move {
                    let ack = remote_writer.submit(batch?).await?;
                    let ack: Awaited<Written> = Box::pin(async move { Ok(ack.await?.into()) });
                    Ok(ack)
                })
            }
            (Ok(_), _) => Work::Done(Err(Failure::lost())),
            (Err(failure), _) => Work::Done(Err(failure)),
        }
    }

    /// Returns work that waits until all earlier batches are acknowledged.
    pub(super) fn flush(self: &Arc<Self>) -> Work<()> {
        let state = Arc::clone(self);
        Work::awaited(async move {
            match state.writer()? {
                AnyBatchWriter::Local(writer) => {
                    Work::blocking(move || Ok(writer.flush()?)).outcome().await?;
                }
                AnyBatchWriter::Remote(writer) => writer.flush().await?,
            }
            let mut dropped = state.dropped();
            dropped.poll_arrived();
            dropped.failed.take().map_or(Ok(()), Err)
        })
    }

    pub(super) fn close(self: &Arc<Self>) -> Work<()> {
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

    pub(super) fn end(&self) {
        let before = std::mem::replace(&mut *self.lock(), Progress::Ended);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dropped(&self) -> MutexGuard<'_, DroppedAcks> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreUser for WriterState {
    /// Commits submitted writes before the store is closed.
    fn release(&self) {
        if let Ok(AnyBatchWriter::Local(writer)) = self.writer() {
            // Each acknowledgement reports its own error.
            let _ = writer.flush();
        }
        self.end();
    }
}
