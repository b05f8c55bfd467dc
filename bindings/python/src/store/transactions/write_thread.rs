//! Write transactions of a store in this process.
//!
//! LMDB binds a write transaction to a thread. Python can call from any thread, and asyncio from
//! one that must not block. So each write transaction has a thread of its own, which executes
//! commands in order until the commit or until all senders are dropped. Writes are queued, and the
//! caller does not wait for them.

use super::txn_view::TxnView;
use crate::failure::{Failure, Outcome};
use crate::runtime::Work;
use crate::store::engine::{Local, StoreUser, TableRef, TxnOwner, Writes};
use crate::store::results::Written;
use nuthatch_store::{Durability, Read, Store, WriteTxn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of commands in the queue of the thread.
const MAX_QUEUED_COMMANDS: usize = 4;

/// A command for the thread of the transaction.
enum Command {
    Write(Writes),
    Read(Box<dyn FnOnce(&TxnView<'_>) + Send>),
    Commit(oneshot::Sender<Outcome<Written>>),
}

/// An open write transaction.
#[derive(Clone)]
pub(crate) struct LocalWriteTxn(Arc<Shared>);

struct Shared {
    local: Arc<Local>,
    owner: TxnOwner,
    sender: Mutex<Option<mpsc::Sender<Command>>>,
    /// Why the transaction cannot be committed.
    failed: Arc<Mutex<Option<Failure>>>,
}

impl LocalWriteTxn {
    /// Begins a write transaction after it has acquired the write lock.
    pub(crate) async fn begin(
        local: Arc<Local>,
        table: TableRef,
        durability: Durability,
        owner: TxnOwner,
    ) -> Outcome<Self> {
        let (opening, named) = (Arc::clone(&local), table.clone());
        let opened = Work::blocking(move || {
            let store = opening.store()?;
            // Tables must be opened before the transaction begins.
            named.open(&store)?;
            Ok(store)
        });
        let store = opened.outcome().await?;
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_COMMANDS);
        let (started, start) = oneshot::channel();
        let failed = Arc::new(Mutex::new(None));
        let errors = Arc::clone(&failed);
        let run = move || run(&store, durability, &table, started, receiver, &errors);
        let spawned = thread::Builder::new().name("nuthatch-txn".to_owned()).spawn(run);
        spawned.map_err(|error| Failure::io(local.path(), "start a thread", &error))?;
        let sender = Mutex::new(Some(sender));
        let shared = Arc::new(Shared { local, owner, sender, failed });
        // Registered before the wait: a store that is closed must end this transaction, too.
        let user: Arc<dyn StoreUser> = Arc::clone(&shared) as Arc<dyn StoreUser>;
        shared.local.add_transaction(Arc::downgrade(&user));
        start.await.map_err(|_| Failure::closed("store"))??;
        *shared.local.writing() = Some(owner);
        Ok(Self(shared))
    }

    /// Returns work that sends writes when the queue has room for them.
    pub(crate) fn write(&self, writes: Writes) -> Work<()> {
        let this = self.clone();
        Work::awaited(async move {
            this.check()?;
            this.send(Command::Write(writes)).await
        })
    }

    /// Returns work that reads in the transaction, including its own writes.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&TxnView<'_>) -> Outcome<T> + Send + 'static,
    ) -> Work<T> {
        let this = self.clone();
        Work::awaited(async move {
            let (response, result) = oneshot::channel();
            let read = move |txn: &TxnView<'_>| {
                // The caller may have been cancelled.
                let _ = response.send(job(txn));
            };
            this.send(Command::Read(Box::new(read))).await?;
            let response = result.await.map_err(|_| this.reason())?;
            this.check()?;
            response
        })
    }

    /// Returns work that commits the transaction.
    pub(crate) fn commit(&self) -> Work<Written> {
        let this = self.clone();
        Work::awaited(async move {
            let (response, result) = oneshot::channel();
            this.send(Command::Commit(response)).await?;
            let committed = result.await.map_err(|_| this.reason());
            this.end();
            committed?
        })
    }

    /// Ends the transaction without a commit, unless it was committed.
    pub(crate) fn end(&self) {
        self.0.release();
    }

    async fn send(&self, command: Command) -> Outcome<()> {
        let sender = self.0.lock().clone();
        let sender = sender.ok_or_else(|| Failure::closed("transaction"))?;
        sender.send(command).await.map_err(|_| self.reason())
    }

    /// Fails if an earlier write has failed.
    pub(crate) fn check(&self) -> Outcome<()> {
        lock(&self.0.failed).clone().map_or(Ok(()), Err)
    }

    fn reason(&self) -> Failure {
        let failed = lock(&self.0.failed).clone();
        failed.unwrap_or_else(|| Failure::closed("transaction"))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<Command>>> {
        lock(&self.sender)
    }
}

impl StoreUser for Shared {
    fn release(&self) {
        let sender = self.lock().take();
        drop(sender);
        let mut writing = self.local.writing();
        if *writing == Some(self.owner) {
            *writing = None;
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.release();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic cannot leave the values invalid: each statement completes a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs on the thread of a transaction: acquires the write lock, then executes commands.
fn run(
    store: &Store,
    durability: Durability,
    table: &TableRef,
    started: oneshot::Sender<Outcome<()>>,
    mut commands: mpsc::Receiver<Command>,
    failed: &Mutex<Option<Failure>>,
) {
    let txn = match store.write_with(durability) {
        Ok(txn) => txn,
        Err(error) => {
            let _ = started.send(Err(error.into()));
            return;
        }
    };
    // The caller may have been cancelled while the thread waited for the write lock.
    if started.send(Ok(())).is_ok() {
        execute(txn, table, &mut commands, failed);
    }
}

fn execute(
    mut txn: WriteTxn<'_>,
    table: &TableRef,
    commands: &mut mpsc::Receiver<Command>,
    failed: &Mutex<Option<Failure>>,
) {
    let (mut writes_done, mut deleted) = (0, 0);
    while let Some(command) = commands.blocking_recv() {
        let has_failed = lock(failed).is_some();
        match command {
            Command::Write(_) if has_failed => {}
            Command::Write(writes) => {
                match writes.apply(&mut txn, table, writes_done) {
                    Ok(count) => deleted += count,
                    Err(failure) => *lock(failed) = Some(failure),
                }
                writes_done += writes.len();
            }
            Command::Read(job) => job(&TxnView(txn.view())),
            Command::Commit(response) => {
                let reason = lock(failed).clone();
                let transaction = txn.id();
                let committed = match reason {
                    Some(failure) => Err(failure),
                    None => txn.commit().map_err(Failure::from),
                };
                let written = committed.map(|sequence| {
                    nuthatch_store::Written { transaction, sequence, deleted }.into()
                });
                let _ = response.send(written);
                return;
            }
        }
    }
}
