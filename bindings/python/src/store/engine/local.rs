//! A store in this process.

use super::tables::{DEFAULT, TableRef};
use super::users::{StoreUser, StoreUsers};
use super::writes::Writes;
use crate::convert::{Value, unix_seconds};
use crate::failure::{Failure, Outcome};
use crate::runtime::{PerProcess, ProcessBound, Work};
use crate::store::results::{Entry, Stat, TableStat, Verified};
use nuthatch_store::{
    BatchOptions, BatchWriter, Durability, Kind, Options, Range, Read, Store, Written,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::thread::ThreadId;
use std::time::Duration;

/// Maximum time that closing waits for other uses of the store.
const CLOSING: Duration = Duration::from_secs(1);

/// A store, open in each process that uses it. A child made by `fork` opens it again on first use.
/// A closed store stays closed.
pub(crate) struct Local {
    /// The path that the caller gave.
    path: PathBuf,
    /// The absolute path, which does not depend on the working directory.
    folder: PathBuf,
    options: Options,
    durability: Durability,
    closed: AtomicBool,
    opened: PerProcess<Opened>,
}

/// The state of a store in one process.
#[derive(Default)]
struct Opened {
    store: RwLock<Option<ProcessBound<Store>>>,
    /// Groups single writes. Created on first use.
    writer: Mutex<Option<ProcessBound<BatchWriter>>>,
    users: StoreUsers,
    /// Write transactions. They are released before other users, whose writes may wait for them.
    transactions: StoreUsers,
    writing: Mutex<Option<TxnOwner>>,
}

/// The owner of the open write transaction: a thread, and the address of its task in asynchronous
/// calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TxnOwner {
    pub(crate) thread: ThreadId,
    pub(crate) task: usize,
}

impl Local {
    pub(crate) fn open(path: PathBuf, options: &Options, durability: Durability) -> Outcome<Self> {
        let store = Store::open(&path, options)?;
        let folder = store.path().to_owned();
        let store = RwLock::new(Some(ProcessBound::new(store)));
        let opened = PerProcess::new(Opened { store, ..Opened::default() });
        // A child opens the store of its parent, and must not create a new one in its place.
        let options = options.clone().create(false);
        let closed = AtomicBool::new(false);
        Ok(Self { path, folder, options, durability, closed, opened })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// Returns the store. Opens it if this process has not opened it yet.
    pub(crate) fn store(&self) -> Outcome<Store> {
        let opened = self.opened.in_process();
        if let Some(store) = &*opened.store.read().unwrap_or_else(PoisonError::into_inner) {
            return store.in_process().cloned().ok_or_else(|| Failure::closed("store"));
        }
        let mut store = opened.store.write().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::SeqCst) {
            return Err(Failure::closed("store"));
        }
        if store.is_none() {
            *store = Some(ProcessBound::new(Store::open(&self.folder, &self.options)?));
        }
        let store = store.as_ref().and_then(ProcessBound::in_process).cloned();
        store.ok_or_else(|| Failure::closed("store"))
    }

    /// Registers an object that must release the store when it is closed.
    pub(crate) fn add_user(&self, user: Weak<dyn StoreUser>) {
        self.opened.in_process().users.add(user);
    }

    /// Registers a write transaction that must end when the store is closed.
    pub(crate) fn add_transaction(&self, user: Weak<dyn StoreUser>) {
        self.opened.in_process().transactions.add(user);
    }

    pub(crate) fn writing(&self) -> MutexGuard<'_, Option<TxnOwner>> {
        self.opened.in_process().writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the store in this process: ends write transactions, commits submitted writes,
    /// releases all users, and closes the files.
    pub(crate) fn close(&self) {
        let opened = self.opened.in_process();
        let store = {
            let mut store = opened.store.write().unwrap_or_else(PoisonError::into_inner);
            self.closed.store(true, Ordering::SeqCst);
            store.take().and_then(|mut store| store.take())
        };
        let Some(store) = store else { return };
        opened.transactions.release();
        let writer = self.lock_writer().take().and_then(|mut writer| writer.take());
        if let Some(writer) = writer {
            // Each acknowledgement reports its own error.
            let _ = writer.flush();
        }
        opened.users.release();
        // If another thread still uses a batch of rows, the files are closed after that.
        store.close_within(CLOSING);
    }

    pub(crate) fn get(&self, table: &TableRef, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let store = self.store()?;
        let table = table.open(&store)?;
        Ok(store.get(&table, key)?)
    }

    pub(crate) fn get_many(
        &self,
        table: &TableRef,
        keys: &[Vec<u8>],
    ) -> Outcome<Vec<Option<Value>>> {
        let store = self.store()?;
        let table = table.open(&store)?;
        values(&store.read()?, &table, keys)
    }

    pub(crate) fn entry(&self, table: &TableRef, key: &[u8]) -> Outcome<Option<Entry>> {
        let store = self.store()?;
        let table = table.open(&store)?;
        entry(&store.read()?, &table, key)
    }

    pub(crate) fn count(&self, table: &TableRef, range: &Range) -> Outcome<u64> {
        let store = self.store()?;
        let table = table.open(&store)?;
        Ok(store.read()?.count(&table, range)?)
    }

    /// Commits the writes as a whole or not at all, in a group with writes of other threads.
    pub(crate) fn write(self: &Arc<Self>, table: &TableRef, writes: Writes) -> Work<Written> {
        let (this, table) = (Arc::clone(self), table.clone());
        Work::awaited(async move {
            // This may create tables, which waits for the disk.
            let prepared = Work::blocking(move || {
                let store = this.store()?;
                Ok((this.writer(&store)?, writes.batch(&store, &table)?))
            });
            let (taker, batch) = prepared.outcome().await?;
            taker.submit_async(batch).await?.await.map_err(Failure::ungrouped)
        })
    }

    fn writer(&self, store: &Store) -> Outcome<BatchWriter> {
        let mut writer = self.lock_writer();
        if let Some(writer) = writer.as_ref().and_then(ProcessBound::in_process) {
            return Ok(writer.clone());
        }
        let started = store.batch_writer(&BatchOptions::new().durability(self.durability))?;
        *writer = Some(ProcessBound::new(started.clone()));
        Ok(started)
    }

    fn lock_writer(&self) -> MutexGuard<'_, Option<ProcessBound<BatchWriter>>> {
        self.opened.in_process().writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a table; creates it if `create` is true.
    pub(crate) fn table(&self, table: &TableRef, create: bool) -> Outcome<()> {
        let store = self.store()?;
        if create { table.open(&store) } else { table.find(&store) }.map(drop)
    }

    /// Returns the names of the tables without the main one, and whether each is stamped.
    pub(crate) fn tables(&self) -> Outcome<Vec<(String, bool)>> {
        let store = self.store()?;
        let mut tables = Vec::new();
        for name in store.table_names()? {
            if let Some(table) = store.find_table(&name)? {
                tables.push((name, table.kind() == Kind::Stamped));
            }
        }
        Ok(tables)
    }

    pub(crate) fn stat(&self) -> Outcome<Stat> {
        let store = self.store()?;
        let mut tables =
            vec![TableStat::of(String::new(), false, store.table_stat(&store.main_table())?)];
        for name in store.table_names()? {
            if let Some(table) = store.find_table(&name)? {
                let stamped = table.kind() == Kind::Stamped;
                tables.push(TableStat::of(name, stamped, store.table_stat(&table)?));
            }
        }
        Ok(Stat::of(store.stat()?, store.oldest_change()?, tables))
    }

    pub(crate) fn verify(&self) -> Outcome<Verified> {
        Ok(self.store()?.verify(|_, _| ())?.into())
    }

    pub(crate) fn backup(&self, folder: &Path, compact: bool) -> Outcome<()> {
        Ok(self.store()?.backup(folder, compact)?)
    }

    pub(crate) fn keep_changes(&self, limits: Option<(u64, u64)>) -> Outcome<()> {
        let store = self.store()?;
        let _: () = match limits {
            Some((changes, bytes)) => store.keep_changes(changes, bytes)?,
            None => store.keep_no_changes()?,
        };
        Ok(())
    }

    pub(crate) fn sync(&self) -> Outcome<()> {
        Ok(self.store()?.sync()?)
    }

    pub(crate) fn sweep(&self) -> Outcome<u64> {
        Ok(self.store()?.sweep()?)
    }

    /// Returns a reference to the default table.
    pub(crate) fn default_table() -> TableRef {
        TableRef::new(DEFAULT.to_owned(), None)
    }
}

/// Returns the values of several keys in a transaction.
pub(crate) fn values(
    txn: &impl Read,
    table: &nuthatch_store::Table,
    keys: &[Vec<u8>],
) -> Outcome<Vec<Option<Value>>> {
    let found = txn.get_many(table, keys)?.into_iter();
    Ok(found.map(|value| value.map(|value| Value::Owned(value.to_vec()))).collect())
}

/// Returns a value with its metadata in a transaction.
pub(crate) fn entry(
    txn: &impl Read,
    table: &nuthatch_store::Table,
    key: &[u8],
) -> Outcome<Option<Entry>> {
    Ok(txn.entry(table, key)?.map(|found| Entry {
        value: found.value.to_vec(),
        version: found.version,
        expires_at: unix_seconds(found.expires_at_ms),
    }))
}
