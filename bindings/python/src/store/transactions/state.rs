//! The state of transactions in Python.

use super::open_txn::OpenTxn;
use super::write_thread::LocalWriteTxn;
use crate::failure::{Failure, Outcome};
use crate::runtime::{CallMode, Work, check_process, generation};
use crate::store::engine::{Engine, TableRef, Writes, caller};
use nuthatch_store::Durability;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Writes are buffered up to this size in bytes before they are sent to the thread of the
/// transaction.
const MAX_BUFFERED_BYTES: usize = 256 << 10;

/// The state of a transaction in Python.
pub(crate) struct TxnState {
    pub(crate) engine: Engine,
    /// The default table.
    pub(crate) table: TableRef,
    /// Durability of the commit; `None` for a read transaction.
    durability: Option<Durability>,
    /// The process that created the transaction.
    generation: u32,
    progress: Mutex<Progress>,
    /// Writes that were not sent yet.
    pending: Mutex<Writes>,
}

enum Progress {
    Before,
    Open(OpenTxn),
    Ended,
}

impl TxnState {
    /// Creates a transaction that has not begun: a write transaction with a durability, a read
    /// transaction without one.
    pub(crate) fn new(
        engine: Engine,
        table: TableRef,
        durability: Option<Durability>,
    ) -> Arc<Self> {
        let (progress, pending) = (Mutex::new(Progress::Before), Mutex::default());
        let generation = generation();
        Arc::new(Self { engine, table, durability, generation, progress, pending })
    }

    /// Returns work that begins the transaction.
    pub(crate) fn begin(self: &Arc<Self>, py: Python<'_>, mode: CallMode) -> PyResult<Work<()>> {
        let state = Arc::clone(self);
        let begun = match (&self.engine, self.durability) {
            (Engine::Remote(remote), _) => {
                let (remote, table) = (Arc::clone(remote), self.table.clone());
                Work::awaited(async move { OpenTxn::remote(remote, &table).await })
            }
            (Engine::Local(local), None) => {
                let (local, table) = (Arc::clone(local), self.table.clone());
                Work::blocking(move || OpenTxn::local_read(&local, &table))
            }
            (Engine::Local(local), Some(durability)) => {
                self.engine.check_not_writing(py, mode)?;
                let (local, table, owner) =
                    (Arc::clone(local), self.table.clone(), caller(py, mode)?);
                Work::awaited(async move {
                    let local = LocalWriteTxn::begin(local, table, durability, owner).await?;
                    Ok(OpenTxn::LocalWrite(local))
                })
            }
        };
        Ok(begun.map(move |txn| *state.lock() = Progress::Open(txn)))
    }

    /// Returns the open transaction; fails if it has not begun or has ended.
    pub(crate) fn open_txn(&self) -> Outcome<OpenTxn> {
        check_process(self.generation, "transaction")?;
        match &*self.lock() {
            Progress::Open(txn) => Ok(txn.clone()),
            Progress::Ended => Err(Failure::closed("transaction")),
            Progress::Before => {
                let message = "the transaction has not begun: use `async with`, or await it";
                Err(Failure::argument(message))
            }
        }
    }

    /// Ends the transaction without a commit, unless it was committed.
    pub(crate) fn end(&self) {
        if check_process(self.generation, "transaction").is_err() {
            return;
        }
        let before = std::mem::replace(&mut *self.lock(), Progress::Ended);
        if let Progress::Open(txn) = before {
            txn.end();
        }
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, Writes> {
        // A panic cannot leave the writes invalid: each statement completes a change.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds writes to the buffer. Sends the buffer to the transaction if it is full.
    pub(crate) fn write(&self, add: impl FnOnce(&mut Writes)) -> Work<()> {
        if let Err(failure) = check_process(self.generation, "transaction") {
            return Work::Done(Err(failure));
        }
        let mut pending = self.pending();
        if !matches!(&*self.lock(), Progress::Open(_)) {
            return Work::Done(self.open_txn().map(drop));
        }
        add(&mut pending);
        if pending.bytes() < MAX_BUFFERED_BYTES {
            return Work::Done(Ok(()));
        }
        match self.open_txn() {
            Ok(OpenTxn::LocalWrite(local)) => local.write(std::mem::take(&mut *pending)),
            // A server receives all writes with the commit.
            _ => Work::Done(Ok(())),
        }
    }

    /// Returns work that uses the transaction after all earlier writes.
    pub(crate) fn after_writes<T: Send + 'static>(
        &self,
        action: impl FnOnce(&OpenTxn) -> Work<T>,
    ) -> Work<T> {
        let txn = match self.open_txn() {
            Ok(txn) => txn,
            Err(failure) => return Work::Done(Err(failure)),
        };
        let work = action(&txn);
        let OpenTxn::LocalWrite(local) = txn else { return work };
        let pending = std::mem::take(&mut *self.pending());
        if pending.len() == 0 {
            return work;
        }
        Work::awaited(async move {
            local.write(pending).outcome().await?;
            work.outcome().await
        })
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TxnState {
    fn drop(&mut self) {
        self.end();
    }
}
