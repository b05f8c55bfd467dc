//! A store: opened once in a process, shared by its threads.

pub(crate) mod backup;
#[cfg(test)]
mod compact_tests;
pub(crate) mod stat;
mod tables;
mod verify;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::options::{Durability, Options};
use crate::pool::Pool;
use crate::process::OfProcess;
use crate::read::{Read, ReadTxn};
use crate::shared::Shared;
use crate::table::{Kind, Table, check_name};
use crate::write::{WriteTxn, expiry};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// An ordered store: tables of keys and values in one folder, used by any number of threads and
/// processes.
///
/// A handle can be cloned and shared by all threads. A process can open a folder only once,
/// whichever path it uses. The folder must be on a local disk. Only this crate may open or change
/// the files; other programs with LMDB 0.9 may do so only while no process has them open through
/// this crate.
///
/// In a child made by `fork`, the handles and transactions of the parent fail with
/// [`Error::Forked`], and can be dropped; the child opens the folder itself.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Shared>);

static STORES: AtomicU64 = AtomicU64::new(0);

impl Store {
    /// Opens the store in a folder. Waits while another process compacts the store.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there is no store and the options do not create one, or a file cannot be
    /// opened, [`Error::AlreadyOpen`] if this process has it open, [`Error::Options`] if an option
    /// is out of range or the folder is on a network filesystem, [`Error::NotAStore`] or
    /// [`Error::Corrupt`] if the file is of another kind or damaged, and [`Error::OtherLocks`] if a
    /// program with another version of LMDB has it open.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let environment = Environment::open(path.as_ref(), options)?;
        let shared = Shared {
            id: STORES.fetch_add(1, Ordering::Relaxed),
            environment,
            clock: Arc::clone(&options.clock),
            durability: options.durability,
            read_ahead: options.read_ahead,
            pool: OfProcess::new(Pool::new(options.threads)),
            system_tables: OnceLock::new(),
            tables: Mutex::new(HashMap::new()),
            has_unopened_tables: AtomicBool::new(false),
            follower: Mutex::new(Weak::new()),
            watched: AtomicBool::new(false),
            watch_failures: Arc::default(),
        };
        shared.open_system_tables()?;
        shared.open_stamped()?;
        Ok(Self(Arc::new(shared)))
    }

    /// Returns the absolute path of the folder, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        self.0.environment.path()
    }

    /// Returns a table of either kind. Creates a plain one if it does not exist.
    ///
    /// # Errors
    ///
    /// As for [`table_of`](Self::table_of), except that an existing table may have either kind.
    pub fn table(&self, name: &str) -> Result<Table> {
        match self.find_table(name)? {
            Some(table) => Ok(table),
            None => self.0.create_table(name, Kind::Plain),
        }
    }

    /// Returns a table of this kind. Creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] or [`Error::Table`] if the name is not allowed, [`Error::Table`] if the
    /// table is of the other kind or too many tables are open, [`Error::ReadOnly`] if it would have
    /// to be created and the store is read-only, and errors of a transaction: see
    /// [`write`](Self::write).
    pub fn table_of(&self, name: &str, kind: Kind) -> Result<Table> {
        let table = match self.find_table(name)? {
            Some(table) => table,
            None => self.0.create_table(name, kind)?,
        };
        if table.kind() == kind {
            return Ok(table);
        }
        let expected = match kind {
            Kind::Plain => "a plain table",
            Kind::Stamped => "a stamped table",
        };
        Err(Error::table(name, expected, format!("a {} one", table.kind().name())))
    }

    /// Returns a table; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] or [`Error::Table`] if the name is not allowed, [`Error::Table`] if this
    /// crate does not support the table or too many tables are open, and errors of a read
    /// transaction: see [`read`](Self::read).
    pub fn find_table(&self, name: &str) -> Result<Option<Table>> {
        check_name(name)?;
        match self.0.opened(name) {
            Some(table) => Ok(Some(table)),
            None => self.0.open_table(name),
        }
    }

    /// Returns the main table, which every LMDB environment has. Other programs often keep all rows
    /// in it. The names of all other tables are keys of the main table: scans return them, and
    /// writing them is an error.
    pub fn main_table(&self) -> Table {
        Table::new(self.0.id, "", self.0.environment.main(), Kind::Plain)
    }

    /// Returns the names of all tables, in order, without the main table and system tables.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the main table is damaged, and errors of a read transaction: see
    /// [`read`](Self::read).
    pub fn table_names(&self) -> Result<Vec<String>> {
        self.0.table_names()
    }

    /// Begins a read transaction.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], [`Error::Forked`] or [`Error::Broken`] if the store cannot be used any
    /// more, [`Error::ReadersFull`] if all reader slots are in use, [`Error::Full`] if another
    /// process enlarged the store and this map cannot grow, and [`Error::Corrupt`] if a page is
    /// damaged.
    pub fn read(&self) -> Result<ReadTxn<'_>> {
        ReadTxn::borrowed(&self.0)
    }

    /// Begins a read transaction that owns a handle of the store, so it has no lifetime.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn read_owned(&self) -> Result<ReadTxn<'static>> {
        ReadTxn::owned(&self.0)
    }

    /// Begins a write transaction with the durability of the store's options. Waits for other write
    /// transactions of all processes.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`] if the store is read-only, [`Error::Lmdb`] if this thread has a write
    /// transaction open, [`Error::Full`] if the map is too small and cannot grow,
    /// [`Error::Closed`], [`Error::Forked`] or [`Error::Broken`] if the store cannot be used any
    /// more, and [`Error::Corrupt`] if a page is damaged.
    pub fn write(&self) -> Result<WriteTxn<'_>> {
        self.write_with(self.0.durability)
    }

    /// Begins a write transaction, as [`write`](Self::write) does, with this durability instead of
    /// that of the store's options.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn write_with(&self, durability: Durability) -> Result<WriteTxn<'_>> {
        self.0.begin_write(durability)
    }

    /// Calls `action` with a write transaction. Commits the transaction if `action` succeeds,
    /// otherwise drops it. If the map is full and can grow, enlarges it and calls `action` again,
    /// in a new transaction.
    ///
    /// # Errors
    ///
    /// The error of `action`, and those of [`write`](Self::write) and [`WriteTxn::commit`].
    pub fn update<R>(&self, mut action: impl FnMut(&mut WriteTxn<'_>) -> Result<R>) -> Result<R> {
        loop {
            let mut txn = self.write()?;
            let result = action(&mut txn).and_then(|value| txn.commit().map(|_| value));
            match result {
                Err(Error::Full { .. }) if self.0.environment.grow_after_full()? => {}
                result => return result,
            }
        }
    }

    /// Writes a value in a transaction of its own.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update) and [`WriteTxn::put`].
    pub fn put(&self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.update(|txn| txn.put(table, key, value))
    }

    /// Returns a copy of a key's value; `None` if the key does not exist.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read), [`Read::get`] and [`Read::check_readable`].
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let txn = self.read()?;
        let value = txn.get(table, key)?.map(<[u8]>::to_vec);
        txn.check_readable()?;
        Ok(value)
    }

    /// Deletes a key in a transaction of its own. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update) and [`WriteTxn::delete`].
    pub fn delete(&self, table: &Table, key: &[u8]) -> Result<bool> {
        self.update(|txn| txn.delete(table, key))
    }

    /// Makes all earlier commits durable, whatever their durability.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the sync fails, or if the store's files were removed or replaced, so that
    /// the data would be lost. [`Error::ReadOnly`] if the store is read-only.
    pub fn sync(&self) -> Result<()> {
        self.0.environment.sync()?;
        self.0.environment.check_linked()
    }

    /// Removes expired rows, in transactions of up to 4096 rows. Returns the number of processed
    /// entries of the expiry table. Earlier builds left entries of rows that were replaced or
    /// deleted; these are counted, too.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub fn sweep(&self) -> Result<u64> {
        const SWEEP_BATCH: u64 = 4096;
        let (mut all, mut opens_tables) = (0, true);
        loop {
            let swept = self.update(|txn| expiry::sweep(txn, SWEEP_BATCH))?;
            all += swept.removed;
            // The tables of other processes are opened before the next transaction, once.
            let retries = swept.unopened > 0 && std::mem::take(&mut opens_tables);
            if swept.removed < SWEEP_BATCH && !retries {
                return Ok(all);
            }
        }
    }

    /// Keeps the newest changes of all tables for watches, from now on: at most `max_changes` with
    /// at most `max_bytes` bytes in total. The newest change is kept even if it alone is longer.
    /// The limits apply to all processes until they are changed.
    ///
    /// A store that keeps changes writes each value twice: to its table and to the kept changes.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub fn keep_changes(&self, max_changes: u64, max_bytes: u64) -> Result<()> {
        self.0.create_system_tables()?;
        self.update(|txn| txn.keep_changes(Some((max_changes, max_bytes))))
    }

    /// Stops keeping changes, and drops those that are kept.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub fn keep_no_changes(&self) -> Result<()> {
        if self.0.system_tables()?.is_none() {
            return Ok(());
        }
        self.update(|txn| txn.keep_changes(None))
    }

    /// Returns the sequence number of the oldest kept change; `None` if no changes are kept. If
    /// none was made yet, returns the number of the next change. The newest one is
    /// [`Read::sequence`].
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn oldest_change(&self) -> Result<Option<u64>> {
        self.0.refresh_system_tables()?;
        let txn = self.read()?;
        let Some(system_tables) = self.0.system_tables()? else { return Ok(None) };
        Ok(system_tables.kept(&txn.view())?.map(|kept| kept.oldest))
    }

    /// Closes the store for this process: new transactions, scans in batches, streams, watches and
    /// batch writers fail with [`Error::Closed`]. Open transactions continue. The files are closed
    /// when the last handle and the last transaction have been dropped.
    pub fn close(&self) {
        self.0.environment.close();
        // Wakes waiting watches, which then fail.
        self.0.notify_watches();
    }
}

impl Store {
    /// Closes the store, drops this handle, and waits until the files are closed: until no handle,
    /// transaction or batch of this process is left. Then this process can open the folder again.
    /// Waits at most for `patience`, and returns whether the files are closed.
    pub fn close_within(self, patience: Duration) -> bool {
        self.close();
        let waiter = self.0.environment.waiter();
        drop(self);
        waiter.wait(patience)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path()).finish_non_exhaustive()
    }
}
