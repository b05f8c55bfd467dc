//! A store: opened once in a process, shared by its threads.

use crate::changes::{Follower, Journal};
use crate::clock::Clock;
use crate::environment::{Dbi, Environment};
use crate::error::{Error, Result};
use crate::fork::OfProcess;
use crate::options::{Durability, Options};
use crate::pages::{Access, Committed, TableId};
use crate::pool::Pool;
use crate::range::Range;
use crate::read::{Pages, Read, ReadTxn, View};
use crate::rows::Rows;
use crate::scan::Scan;
use crate::system_tables::{SystemTables, layout, table_key};
use crate::table::{Kind, Table, check_name, check_record};
use crate::write::WriteTxn;
use heed::types::Bytes;
use heed::{CommitOrAbort, MdbError, RwTxn};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// An ordered store: tables of keys and values in one folder, used by any number of threads and
/// processes.
///
/// A handle can be cloned and shared by all threads. A process opens a folder once, whichever path
/// it uses. The folder must be on a local disk. Only this crate may change its files, or LMDB 0.9
/// while no process has them open through this crate.
///
/// In a child made by `fork`, the handles and transactions of the parent fail with
/// [`Error::Forked`], and can be dropped; the child opens the folder itself.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Shared>);

/// The state that all handles of a store share.
pub(crate) struct Shared {
    /// Identifies the store within this process.
    pub(crate) id: u64,
    pub(crate) environment: Environment,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) read_ahead: bool,
    pub(crate) pool: OfProcess<Pool>,
    system_tables: OnceLock<SystemTables>,
    tables: Mutex<HashMap<String, Table>>,
    /// Whether a stamped table was found that this process has not opened.
    has_unopened_tables: AtomicBool,
    /// Wakes watches, while there are some.
    follower: Mutex<Weak<Follower>>,
    watched: AtomicBool,
    /// Number of failed reads for watches that were retried.
    pub(crate) watch_failures: Arc<AtomicU64>,
}

static STORES: AtomicU64 = AtomicU64::new(0);

impl Store {
    /// Opens the store in a folder.
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

    /// Returns the absolute path of the folder, without symbolic links.
    pub fn path(&self) -> &Path {
        self.0.environment.path()
    }

    /// Returns a table. Creates a plain one if it does not exist.
    ///
    /// # Errors
    ///
    /// As for [`table_of`](Self::table_of); an existing table may be of either kind.
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
    /// in it. The names of tables are keys in it, too: scans return them, and they cannot be
    /// written.
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

    /// Begins a read transaction that owns a handle of the store, so it is not bound to a lifetime.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn snapshot(&self) -> Result<ReadTxn<'static>> {
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

    /// Begins a write transaction with a durability.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub fn write_with(&self, durability: Durability) -> Result<WriteTxn<'_>> {
        self.0.begin_write(durability)
    }

    /// Calls `action` with a write transaction. Commits the transaction if `action` succeeds,
    /// otherwise drops it. If the map is full and can grow, it is enlarged, and `action` is called
    /// again.
    ///
    /// # Errors
    ///
    /// The error of `action`, and those of [`write`](Self::write) and [`WriteTxn::commit`].
    pub fn update<R>(&self, mut action: impl FnMut(&mut WriteTxn<'_>) -> Result<R>) -> Result<R> {
        loop {
            let mut txn = self.write()?;
            let done = action(&mut txn).and_then(|result| txn.commit().map(|_| result));
            match done {
                Err(Error::Full { .. }) if self.0.environment.grow_after_full()? => {}
                done => return done,
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

    /// Removes expired rows, in transactions of some thousand rows. Returns the number of entries
    /// of the expiry table that were removed, including those of rows that were written again
    /// since.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub fn sweep(&self) -> Result<u64> {
        const SWEEP_BATCH: u64 = 4096;
        let mut all = 0;
        loop {
            let count = self.update(|txn| crate::expiry::sweep(txn, SWEEP_BATCH))?;
            all += count;
            if count < SWEEP_BATCH {
                return Ok(all);
            }
        }
    }

    /// Keeps the last changes of all tables for watches from now on: at most `max` changes, which
    /// take at most `max_bytes` bytes together. The newest change is kept even if it alone takes
    /// more. The setting applies to all processes, until it is changed. Each change is written
    /// twice then.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub fn keep_changes(&self, max: u64, max_bytes: u64) -> Result<()> {
        self.0.create_system_tables()?;
        self.update(|txn| txn.keep_changes(Some((max, max_bytes))))
    }

    /// Keeps no changes from now on, and drops those that are kept.
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

    /// Returns the number of the oldest kept change; `None` if no changes are kept. The newest one
    /// is [`Read::sequence`].
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

    /// Makes new transactions of this process fail, and scans that read in batches. The files are
    /// closed when the last handle and the last transaction have been dropped.
    pub fn close(&self) {
        self.0.environment.close();
        // Wakes waiting watches, which then fail.
        self.0.notify_watches();
    }
}

impl Store {
    /// Closes the store, drops this handle, and waits until the files are closed, so that this
    /// process can open the folder again: until no handle, transaction or batch of this process is
    /// left. Waits at most for `patience`, and returns whether the files are closed.
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

impl Shared {
    /// Returns the data file and its path, for reading it without LMDB.
    pub(crate) fn data(&self) -> (&File, &Path) {
        self.environment.data()
    }

    /// Returns the follower, which wakes watches. Starts its thread if there is none.
    pub(crate) fn follower(self: &Arc<Self>) -> Result<Arc<Follower>> {
        let mut current = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(follower) = current.upgrade().filter(|follower| follower.check().is_ok()) {
            return Ok(follower);
        }
        let follower = Follower::start(self)?;
        *current = Arc::downgrade(&follower);
        self.watched.store(true, Ordering::Relaxed);
        Ok(follower)
    }

    /// Returns the follower, if there are watches.
    #[cfg(test)]
    pub(crate) fn current_follower(&self) -> Option<Arc<Follower>> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Makes watches check for commits.
    pub(crate) fn notify_watches(&self) {
        if self.watched.load(Ordering::Relaxed) {
            let current = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
            match current.upgrade() {
                Some(follower) => follower.notify(),
                None => self.watched.store(false, Ordering::Relaxed),
            }
        }
    }

    /// Returns the last transaction that new transactions see, and the last one whose root is
    /// written.
    pub(crate) fn last_transaction(&self) -> Result<(u64, u64)> {
        let written = self.environment.info()?.last_txn_id as u64;
        let (txn, _guard) = self.environment.read()?;
        Ok((txn.id() as u64, written))
    }

    /// Returns the system tables, if they exist.
    pub(crate) fn system_tables(&self) -> Result<Option<SystemTables>> {
        self.environment.check()?;
        Ok(self.system_tables.get().copied())
    }

    /// Begins a write transaction that writes nothing: while it is open, no process can commit.
    pub(crate) fn write_lock(&self) -> Result<WriteTxn<'_>> {
        self.begin_write(self.durability)
    }

    fn begin_write(&self, durability: Durability) -> Result<WriteTxn<'_>> {
        if self.has_unopened_tables.swap(false, Ordering::Relaxed) {
            self.open_stamped()?;
        }
        loop {
            let mut write_guard = self.environment.lock_for_writing()?;
            let (txn, guard) = self.environment.write(&mut write_guard, durability)?;
            let committed = Rc::new(Committed::of(self, &txn)?);
            let system_tables = self.system_tables.get().copied();
            // Another process may have created them meanwhile.
            let made = system_tables.is_none() && committed.has_table(self, layout::SETTINGS)?;
            if !made {
                let now = Cell::new(None);
                let view = View::new(&txn, self, &now, Pages::Write(&committed));
                let journal = Journal::open(system_tables, Rc::clone(&committed), &view)?;
                return Ok(WriteTxn::new(self, txn, committed, journal, guard, write_guard));
            }
            drop((txn, guard, write_guard));
            self.open_system_tables()?;
        }
    }

    /// Opens the system tables, if they were not open yet and exist.
    pub(crate) fn refresh_system_tables(&self) -> Result<()> {
        if self.system_tables.get().is_none() { self.open_system_tables() } else { Ok(()) }
    }

    /// Opens the system tables, if they exist.
    fn open_system_tables(&self) -> Result<()> {
        let names = [layout::SETTINGS, layout::CHANGES, layout::EXPIRY];
        self.check_paths_to(&names)?;
        let (txn, _guard) = self.environment.read()?;
        let opened = self.environment.heed().open_databases_and_commit(txn, |opener, txn| {
            let opened = names.map(|name| opener.open_database::<Bytes, Bytes>(txn, Some(name)));
            let [settings, changes, expiry] = opened;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit([settings?, changes?, expiry?]))
        });
        let opened = opened.map_err(|e| self.environment.error("open settings", e))?;
        if let Some([Some(settings), Some(changes), Some(expiry)]) = opened.commit() {
            // If another thread was first, it opened the same tables.
            let _ = self.system_tables.set(SystemTables { settings, changes, expiry });
        }
        Ok(())
    }

    /// Checks the pages that LMDB follows when it opens these tables.
    fn check_paths_to(&self, names: &[&str]) -> Result<()> {
        let txn = ReadTxn::borrowed(self)?;
        names.iter().try_for_each(|name| txn.view().check_path_to(name))
    }

    /// Checks the pages that LMDB changes when it creates these tables.
    fn check_paths_to_create(&self, txn: &RwTxn<'_>, names: &[&str]) -> Result<Committed> {
        let committed = Committed::of(self, txn)?;
        for name in names {
            let access = Access::Put { row_len: name.len() + crate::file::layout::tree::LEN };
            committed.check(self, TableId::MAIN, Some(name.as_bytes()), access)?;
        }
        Ok(committed)
    }

    /// Creates the system tables, if they do not exist.
    fn create_system_tables(&self) -> Result<SystemTables> {
        self.refresh_system_tables()?;
        if let Some(system_tables) = self.system_tables.get() {
            return Ok(*system_tables);
        }
        let names = [layout::SETTINGS, layout::CHANGES, layout::EXPIRY];
        let mut write_guard = self.environment.lock_for_writing()?;
        let (txn, _guard) = self.environment.write(&mut write_guard, self.durability)?;
        self.check_paths_to_create(&txn, &names)?;
        self.environment.check_linked()?;
        let made = self.environment.heed().create_databases_and_commit(txn, |opener, txn| {
            let made = names.map(|name| opener.create_database::<Bytes, Bytes>(txn, Some(name)));
            let [settings, changes, expiry] = made;
            let (settings, changes, expiry) = (settings?, changes?, expiry?);
            settings.put(txn, layout::FORMAT_KEY, &layout::FORMAT.to_le_bytes())?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit([settings, changes, expiry]))
        });
        let made = made.map_err(|e| self.environment.error("make settings", e))?;
        if let Some([settings, changes, expiry]) = made.commit() {
            let _ = self.system_tables.set(SystemTables { settings, changes, expiry });
        }
        self.system_tables.get().copied().ok_or(Error::Closed)
    }

    /// Returns a table that this process has open.
    pub(crate) fn opened(&self, name: &str) -> Option<Table> {
        self.lock_tables().get(name).cloned()
    }

    /// Records that there is a stamped table that this process has not opened.
    pub(crate) fn record_unopened_table(&self) {
        self.has_unopened_tables.store(true, Ordering::Relaxed);
    }

    fn lock_tables(&self) -> MutexGuard<'_, HashMap<String, Table>> {
        // The map is consistent after each statement.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a table, if it exists.
    fn open_table(&self, name: &str) -> Result<Option<Table>> {
        self.refresh_system_tables()?;
        let kind = {
            self.check_paths_to(&[name])?;
            let txn = ReadTxn::borrowed(self)?;
            let main = Table::new(self.id, "", self.environment.main(), Kind::Plain);
            let Some(record) = txn.get(&main, name.as_bytes())? else { return Ok(None) };
            check_record(name, record)?;
            self.system_tables
                .get()
                .map_or(Ok(Kind::Plain), |system_tables| system_tables.kind(&txn.view(), name))?
        };
        let (txn, _guard) = self.environment.read()?;
        let opened = self.environment.heed().open_databases_and_commit(txn, |opener, txn| {
            opener
                .open_database::<Bytes, Bytes>(txn, Some(name))
                .map(CommitOrAbort::<_, ()>::Commit)
        });
        let opened = opened.map_err(|e| self.opening_error(name, e))?;
        Ok(opened.commit().flatten().map(|dbi| self.register(name, dbi, kind)))
    }

    fn create_table(&self, name: &str, kind: Kind) -> Result<Table> {
        let system_tables =
            if kind == Kind::Stamped { Some(self.create_system_tables()?) } else { None };
        let mut write_guard = self.environment.lock_for_writing()?;
        let (txn, guard) = self.environment.write(&mut write_guard, self.durability)?;
        let committed = self.check_paths_to_create(&txn, &[name])?;
        if system_tables.is_some() {
            let key = table_key(name);
            let access = Access::Put { row_len: key.len() + size_of::<u64>() };
            committed.check(self, TableId::SETTINGS, Some(&key), access)?;
        }
        self.environment.check_linked()?;
        let made = self.environment.heed().create_databases_and_commit(txn, |opener, txn| {
            // Another process may have created it meanwhile.
            let there = self.environment.main().get(txn, name.as_bytes())?.is_some();
            if there {
                return Ok(CommitOrAbort::Abort(()));
            }
            let dbi = opener.create_database::<Bytes, Bytes>(txn, Some(name))?;
            if let Some(system_tables) = system_tables {
                system_tables.put_kind(txn, name, kind)?;
            }
            Ok::<_, heed::Error>(CommitOrAbort::Commit(dbi))
        });
        drop((guard, write_guard));
        match made.map_err(|e| self.opening_error(name, e))?.commit() {
            Some(dbi) => Ok(self.register(name, dbi, kind)),
            None => self.open_table(name)?.ok_or_else(|| Error::table(name, "a table", "none")),
        }
    }

    fn register(&self, name: &str, dbi: Dbi, kind: Kind) -> Table {
        let table = Table::new(self.id, name, dbi, kind);
        self.lock_tables().entry(name.to_owned()).or_insert(table).clone()
    }

    /// Opens all stamped tables, so that expired rows of any can be swept.
    fn open_stamped(&self) -> Result<()> {
        let Some(system_tables) = self.system_tables()? else { return Ok(()) };
        let names = {
            let txn = ReadTxn::borrowed(self)?;
            let scan = Scan::new(Range::prefix(layout::TABLE_PREFIX));
            let rows = Rows::of_system_table(
                txn.view(),
                TableId::SETTINGS,
                system_tables.settings,
                &scan,
            )?;
            let names = rows.map(|row| {
                let name = row?.0.strip_prefix(layout::TABLE_PREFIX).unwrap_or_default();
                Ok(String::from_utf8_lossy(name).into_owned())
            });
            names.collect::<Result<Vec<_>>>()?
        };
        for name in names {
            if self.opened(&name).is_none() {
                self.open_table(&name)?;
            }
        }
        Ok(())
    }

    fn table_names(&self) -> Result<Vec<String>> {
        let mut candidates = Vec::new();
        let txn = ReadTxn::borrowed(self)?;
        let main = Table::new(self.id, "", self.environment.main(), Kind::Plain);
        for entry in Rows::new(txn.view(), &main, &Scan::all())? {
            let (key, record) = entry?;
            // Any value of this length could be a table. Only LMDB can tell.
            if record.len() == crate::file::layout::tree::LEN {
                candidates.extend(String::from_utf8(key.to_vec()));
            }
        }
        drop(txn);
        let mut names = Vec::new();
        for name in candidates {
            if check_name(&name).is_ok()
                && (self.opened(&name).is_some() || self.is_table(&name)?)
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Returns whether a key of the main table is the name of a table.
    fn is_table(&self, name: &str) -> Result<bool> {
        self.check_paths_to(&[name])?;
        let (txn, _guard) = self.environment.read()?;
        let opened = self.environment.heed().open_databases_and_commit(txn, |opener, txn| {
            let opened = opener.open_database::<Bytes, Bytes>(txn, Some(name))?;
            // Aborted, so that its handle is free again.
            Ok(CommitOrAbort::<(), _>::Abort(opened.is_some()))
        });
        match opened {
            Ok(opened) => Ok(opened.abort().unwrap_or(false)),
            Err(heed::Error::Mdb(MdbError::Incompatible)) => Ok(false),
            Err(error) => Err(self.opening_error(name, error)),
        }
    }

    #[cold]
    fn opening_error(&self, name: &str, error: heed::Error) -> Error {
        match error {
            heed::Error::Mdb(MdbError::DbsFull) => {
                let expected = "fewer open tables, or a larger `Options::tables`";
                Error::table(name, expected, "as many as can be open")
            }
            heed::Error::Mdb(MdbError::Incompatible) => {
                Error::table(name, "a table", "a value in the main table")
            }
            error => self.environment.error("open a table", error),
        }
    }

    #[cold]
    pub(crate) fn table_error(
        &self,
        table: &Table,
        operation: &'static str,
        error: heed::Error,
    ) -> Error {
        match error {
            heed::Error::Io(e) if e.kind() == std::io::ErrorKind::InvalidInput => {
                let expected = "a transaction that began after the table was opened";
                Error::table(table.name(), expected, "an older one")
            }
            heed::Error::Mdb(MdbError::Incompatible) => {
                Error::table(table.name(), "a key of your own", "the name of a table")
            }
            heed::Error::Mdb(MdbError::BadDbi) => {
                Error::table(table.name(), "a table that is there", "one that was dropped")
            }
            error => self.environment.error(operation, error),
        }
    }
}
