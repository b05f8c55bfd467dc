//! The transaction that writes, of a store in this process.
//!
//! LMDB's belongs to its thread, while Python calls from any, and asyncio from one that must not
//! wait. So each has a thread of its own, which does what it is sent, in order, until it is
//! committed or nobody can send any more. Writes come by the thousand; whoever writes goes on
//! meanwhile.

use super::figures::Written;
use super::held::Held;
use super::local::{Holder, Local};
use super::reading::Viewed;
use super::tables::TableRef;
use super::writes::Writes;
use crate::failure::{Failure, Outcome};
use crate::work::Work;
use nuthatch_store::{Durability, Read, Store, WriteTxn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tokio::sync::{mpsc, oneshot};

/// Parcels of writes that may wait for the thread.
const PARCELS: usize = 4;

/// What the thread is sent.
enum Command {
    Write(Writes),
    Read(Box<dyn FnOnce(&Viewed<'_>) + Send>),
    Commit(oneshot::Sender<Outcome<Written>>),
}

/// A transaction that writes, until it ends.
#[derive(Clone)]
pub(crate) struct Writing(Arc<Shared>);

struct Shared {
    local: Arc<Local>,
    holder: Holder,
    sender: Mutex<Option<mpsc::Sender<Command>>>,
    /// Why the transaction cannot be committed any more.
    failed: Arc<Mutex<Option<Failure>>>,
}

impl Writing {
    /// Begins one, when nobody else writes.
    pub(crate) async fn begin(
        local: Arc<Local>,
        table: TableRef,
        durability: Durability,
        holder: Holder,
    ) -> Outcome<Self> {
        let (opening, named) = (Arc::clone(&local), table.clone());
        let opened = Work::blocking(move || {
            let store = opening.store()?;
            // Once the transaction has begun it would be too late.
            named.open(&store)?;
            Ok(store)
        });
        let store = opened.outcome().await?;
        let (sender, receiver) = mpsc::channel(PARCELS);
        let (started, start) = oneshot::channel();
        let failed = Arc::new(Mutex::new(None));
        let errors = Arc::clone(&failed);
        let run = move || run(&store, durability, &table, started, receiver, &errors);
        let spawned = thread::Builder::new().name("nuthatch-txn".to_owned()).spawn(run);
        spawned.map_err(|error| Failure::io(local.path(), "start a thread", &error))?;
        let sender = Mutex::new(Some(sender));
        let shared = Arc::new(Shared { local, holder, sender, failed });
        // Were the store closed while this waits, it would be waited for.
        let held: Arc<dyn Held> = Arc::clone(&shared) as Arc<dyn Held>;
        shared.local.hold_transaction(Arc::downgrade(&held));
        start.await.map_err(|_| Failure::closed("store"))??;
        *shared.local.writing() = Some(holder);
        Ok(Self(shared))
    }

    /// Sends writes, when there is room for them.
    pub(crate) fn write(&self, writes: Writes) -> Work<()> {
        let this = self.clone();
        Work::awaited(async move {
            this.check()?;
            this.send(Command::Write(writes)).await
        })
    }

    /// Reads what was written so far, and what was there before.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Viewed<'_>) -> Outcome<T> + Send + 'static,
    ) -> Work<T> {
        let this = self.clone();
        Work::awaited(async move {
            let (answer, answered) = oneshot::channel();
            let read = move |txn: &Viewed<'_>| {
                // Whoever asked may have gone.
                let _ = answer.send(job(txn));
            };
            this.send(Command::Read(Box::new(read))).await?;
            let answer = answered.await.map_err(|_| this.reason())?;
            this.check()?;
            answer
        })
    }

    /// Makes all that was written count.
    pub(crate) fn commit(&self) -> Work<Written> {
        let this = self.clone();
        Work::awaited(async move {
            let (answer, answered) = oneshot::channel();
            this.send(Command::Commit(answer)).await?;
            let committed = answered.await.map_err(|_| this.reason());
            this.end();
            committed?
        })
    }

    /// Ends the transaction without a trace, unless it is committed.
    pub(crate) fn end(&self) {
        self.0.release();
    }

    async fn send(&self, command: Command) -> Outcome<()> {
        let sender = self.0.lock().clone();
        let sender = sender.ok_or_else(|| Failure::closed("transaction"))?;
        sender.send(command).await.map_err(|_| self.reason())
    }

    /// Fails if something that was sent before has.
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

impl Held for Shared {
    fn release(&self) {
        let sender = self.lock().take();
        drop(sender);
        let mut writing = self.local.writing();
        if *writing == Some(self.holder) {
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
    // What is behind these locks is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread of a transaction.
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
    // Whoever wanted it may have gone while it waited its turn.
    if started.send(Ok(())).is_ok() {
        obey(txn, table, &mut commands, failed);
    }
}

fn obey(
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
            Command::Read(job) => job(&Viewed(txn.view())),
            Command::Commit(answer) => {
                let reason = lock(failed).clone();
                let transaction = txn.id();
                let committed = match reason {
                    Some(failure) => Err(failure),
                    None => txn.commit().map_err(Failure::from),
                };
                let written = committed.map(|sequence| {
                    nuthatch_store::Written { transaction, sequence, deleted }.into()
                });
                let _ = answer.send(written);
                return;
            }
        }
    }
}
