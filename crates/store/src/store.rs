//! A store: opened once in a process, shared by its threads.

use crate::changes::{Follower, Journal};
use crate::clock::Clock;
use crate::environment::{Bare, Environment};
use crate::error::{Error, Result};
use crate::fork::OfProcess;
use crate::options::{Durability, Options};
use crate::own::{Own, layout, table_key};
use crate::pages::{Access, Committed, TableId};
use crate::pool::Pool;
use crate::range::Range;
use crate::read::{Pages, Read, ReadTxn, View};
use crate::rows::Rows;
use crate::scan::Scan;
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
/// processes at once.
///
/// A handle can be cloned and shared by all threads. A process opens a folder once, whichever path
/// it uses. The folder must be on a local disk, and its files must be changed by this crate, or by
/// LMDB 0.9 while no process has them open here, and by nothing else.
///
/// In a child made by `fork`, the handles and transactions of the parent fail with
/// [`Error::Forked`], and can be dropped; the child opens the folder itself.
#[derive(Clone)]
pub struct Store(pub(crate) Arc<Shared>);

/// What all handles of a store share.
pub(crate) struct Shared {
    /// Which store of this process it is.
    pub(crate) id: u64,
    pub(crate) environment: Environment,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) read_ahead: bool,
    pub(crate) pool: OfProcess<Pool>,
    own: OnceLock<Own>,
    tables: Mutex<HashMap<String, Table>>,
    /// A stamped table was met that this process has not opened.
    missing: AtomicBool,
    /// What wakes watches, while there are some.
    follower: Mutex<Weak<Follower>>,
    watched: AtomicBool,
    /// Reads of commits for watches that failed and were repeated.
    pub(crate) watch_failures: Arc<AtomicU64>,
}

static STORES: AtomicU64 = AtomicU64::new(0);

impl Store {
    /// Opens the store in a folder.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let environment = Environment::open(path.as_ref(), options)?;
        let shared = Shared {
            id: STORES.fetch_add(1, Ordering::Relaxed),
            environment,
            clock: Arc::clone(&options.clock),
            durability: options.durability,
            read_ahead: options.read_ahead,
            pool: OfProcess::new(Pool::new(options.threads)),
            own: OnceLock::new(),
            tables: Mutex::new(HashMap::new()),
            missing: AtomicBool::new(false),
            follower: Mutex::new(Weak::new()),
            watched: AtomicBool::new(false),
            watch_failures: Arc::default(),
        };
        shared.open_own()?;
        shared.open_stamped()?;
        Ok(Self(Arc::new(shared)))
    }

    /// Returns the absolute path of the folder, without symbolic links.
    pub fn path(&self) -> &Path {
        self.0.environment.path()
    }

    /// A plain table, which is made if it is not there yet.
    pub fn table(&self, name: &str) -> Result<Table> {
        match self.find_table(name)? {
            Some(table) => Ok(table),
            None => self.0.create_table(name, Kind::Plain),
        }
    }

    /// A table of this kind, which is made if it is not there yet. Fails where it is of the other
    /// kind.
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

    /// A table, if it is there.
    pub fn find_table(&self, name: &str) -> Result<Option<Table>> {
        check_name(name)?;
        match self.0.opened(name) {
            Some(table) => Ok(Some(table)),
            None => self.0.open_table(name),
        }
    }

    /// The main table, which every LMDB environment has. Other programs often keep all they have in
    /// it. The names of tables are keys in it, too: they are seen by scans, and cannot be written.
    pub fn main_table(&self) -> Table {
        Table::new(self.0.id, "", self.0.environment.main(), Kind::Plain)
    }

    /// The names of all tables, in order, without the main one and the store's own.
    pub fn table_names(&self) -> Result<Vec<String>> {
        self.0.table_names()
    }

    /// Begins to read.
    pub fn read(&self) -> Result<ReadTxn<'_>> {
        ReadTxn::borrowed(&self.0)
    }

    /// Begins to read, in a transaction that owns a handle of the store and so can go anywhere.
    pub fn snapshot(&self) -> Result<ReadTxn<'static>> {
        ReadTxn::owned(&self.0)
    }

    /// Begins to write, as durably as the store's options say. Waits for whoever writes, in any
    /// process. Fails where this thread has such a transaction already.
    pub fn write(&self) -> Result<WriteTxn<'_>> {
        self.write_with(self.0.durability)
    }

    /// Begins to write, as durably as this says.
    pub fn write_with(&self, durability: Durability) -> Result<WriteTxn<'_>> {
        self.0.begin_write(durability)
    }

    /// Writes in a transaction that is committed when this succeeds and leaves nothing when it
    /// fails. Where the map is full and can grow, it grows and this is done again.
    pub fn update<R>(&self, mut act: impl FnMut(&mut WriteTxn<'_>) -> Result<R>) -> Result<R> {
        loop {
            let mut txn = self.write()?;
            let done = act(&mut txn).and_then(|result| txn.commit().map(|_| result));
            match done {
                Err(Error::Full { .. }) if self.0.environment.grow_after_full()? => {}
                done => return done,
            }
        }
    }

    /// Writes one value, in a transaction of its own.
    pub fn put(&self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.update(|txn| txn.put(table, key, value))
    }

    /// A copy of a key's value.
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let txn = self.read()?;
        let value = txn.get(table, key)?.map(<[u8]>::to_vec);
        txn.check_readable()?;
        Ok(value)
    }

    /// Deletes one key, in a transaction of its own, and answers whether it was there.
    pub fn delete(&self, table: &Table, key: &[u8]) -> Result<bool> {
        self.update(|txn| txn.delete(table, key))
    }

    /// Makes everything that was committed safe from crashes, however it was committed.
    ///
    /// # Errors
    /// Fails if the store's files were removed or replaced: what was written would be lost.
    pub fn sync(&self) -> Result<()> {
        self.0.environment.sync()?;
        self.0.environment.check_linked()
    }

    /// Takes rows out that have expired, in transactions of some thousand rows. Answers how many
    /// times of expiry it went through, those of rows that were written again since among them.
    pub fn sweep(&self) -> Result<u64> {
        const AT_ONCE: u64 = 4096;
        let mut all = 0;
        loop {
            let count = self.update(|txn| crate::expiry::sweep(txn, AT_ONCE))?;
            all += count;
            if count < AT_ONCE {
                return Ok(all);
            }
        }
    }

    /// Keeps the last changes of all tables for watches from now on: at most `most` changes, which
    /// take at most `most_bytes` bytes together. The newest change is kept even if it alone takes
    /// more. This holds for all processes, until it is changed. Each change is then written twice.
    pub fn keep_changes(&self, most: u64, most_bytes: u64) -> Result<()> {
        self.0.make_own()?;
        self.update(|txn| txn.keep_changes(Some((most, most_bytes))))
    }

    /// Keeps no changes from now on, and lets go of those that are kept.
    pub fn keep_no_changes(&self) -> Result<()> {
        if self.0.own()?.is_none() {
            return Ok(());
        }
        self.update(|txn| txn.keep_changes(None))
    }

    /// Whether changes are kept, and which: the number of the oldest. The newest is that of
    /// [`Read::sequence`].
    pub fn oldest_change(&self) -> Result<Option<u64>> {
        self.0.refresh_own()?;
        let txn = self.read()?;
        let Some(own) = self.0.own()? else { return Ok(None) };
        Ok(own.kept(&txn.view())?.map(|kept| kept.oldest))
    }

    /// No new transactions from now on, in this process: they fail, and so does what reads in
    /// batches. The files are closed when the last handle and the last transaction are gone.
    pub fn close(&self) {
        self.0.environment.close();
        // Watches that wait hear of it.
        self.0.committed();
    }
}

impl Store {
    /// Closes the store, drops this handle, and waits until the files are closed: until no handle,
    /// transaction or batch of this process is left. Waits for `patience` at most, and returns
    /// whether the files are closed. Then this process can open the folder again.
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
    /// The file of the data, to be read as bytes.
    pub(crate) fn data(&self) -> (&File, &Path) {
        self.environment.data()
    }

    /// What wakes watches; its thread is started if there is none.
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

    /// Returns what wakes watches, if there are any.
    #[cfg(test)]
    pub(crate) fn current_follower(&self) -> Option<Arc<Follower>> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Tells watches that something was committed.
    pub(crate) fn committed(&self) {
        if self.watched.load(Ordering::Relaxed) {
            let current = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
            match current.upgrade() {
                Some(follower) => follower.ring(),
                None => self.watched.store(false, Ordering::Relaxed),
            }
        }
    }

    /// The last transaction that new ones see, and the last whose root is written.
    pub(crate) fn last_transaction(&self) -> Result<(u64, u64)> {
        let written = self.environment.info()?.last_txn_id as u64;
        let (txn, _pass) = self.environment.read()?;
        Ok((txn.id() as u64, written))
    }

    /// The store's own tables, if they are there.
    pub(crate) fn own(&self) -> Result<Option<Own>> {
        self.environment.check()?;
        Ok(self.own.get().copied())
    }

    /// A write transaction that writes nothing: while it is open, nobody commits.
    pub(crate) fn write_lock(&self) -> Result<WriteTxn<'_>> {
        self.begin_write(self.durability)
    }

    fn begin_write(&self, durability: Durability) -> Result<WriteTxn<'_>> {
        if self.missing.swap(false, Ordering::Relaxed) {
            self.open_stamped()?;
        }
        loop {
            let mut turn = self.environment.turn()?;
            let (txn, pass) = self.environment.write(&mut turn, durability)?;
            let committed = Rc::new(Committed::of(self, &txn)?);
            let own = self.own.get().copied();
            // Another process may have made them since they were last looked for.
            let made = own.is_none() && committed.has_table(self, layout::SETTINGS)?;
            if !made {
                let now = Cell::new(None);
                let view = View::new(&txn, self, &now, Pages::Write(&committed));
                let journal = Journal::open(own, Rc::clone(&committed), &view)?;
                return Ok(WriteTxn::new(self, txn, committed, journal, pass, turn));
            }
            drop((txn, pass, turn));
            self.open_own()?;
        }
    }

    /// Looks for the store's own tables, if they were not there so far.
    pub(crate) fn refresh_own(&self) -> Result<()> {
        if self.own.get().is_none() { self.open_own() } else { Ok(()) }
    }

    /// Opens the store's own tables, if they are there.
    fn open_own(&self) -> Result<()> {
        let names = [layout::SETTINGS, layout::CHANGES, layout::EXPIRY];
        self.check_ways_to(&names)?;
        let (txn, _pass) = self.environment.read()?;
        let opened = self.environment.heed().open_databases_and_commit(txn, |opener, txn| {
            let opened = names.map(|name| opener.open_database::<Bytes, Bytes>(txn, Some(name)));
            let [settings, changes, expiry] = opened;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit([settings?, changes?, expiry?]))
        });
        let opened = opened.map_err(|e| self.environment.error("open settings", e))?;
        if let Some([Some(settings), Some(changes), Some(expiry)]) = opened.commit() {
            // Whoever was here first opened the same.
            let _ = self.own.set(Own { settings, changes, expiry });
        }
        Ok(())
    }

    /// Checks the pages that LMDB follows when it opens these tables, because LMDB does not.
    fn check_ways_to(&self, names: &[&str]) -> Result<()> {
        let txn = ReadTxn::borrowed(self)?;
        names.iter().try_for_each(|name| txn.view().check_way_to(name))
    }

    /// Checks the pages that LMDB changes when it makes these tables.
    fn check_ways_to_make(&self, txn: &RwTxn<'_>, names: &[&str]) -> Result<Committed> {
        let committed = Committed::of(self, txn)?;
        for name in names {
            let access = Access::Put { row_len: name.len() + crate::file::layout::tree::LEN };
            committed.check(self, TableId::MAIN, Some(name.as_bytes()), access)?;
        }
        Ok(committed)
    }

    /// Makes the store's own tables, if they are not there.
    fn make_own(&self) -> Result<Own> {
        self.refresh_own()?;
        if let Some(own) = self.own.get() {
            return Ok(*own);
        }
        let names = [layout::SETTINGS, layout::CHANGES, layout::EXPIRY];
        let mut turn = self.environment.turn()?;
        let (txn, _pass) = self.environment.write(&mut turn, self.durability)?;
        self.check_ways_to_make(&txn, &names)?;
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
            let _ = self.own.set(Own { settings, changes, expiry });
        }
        self.own.get().copied().ok_or(Error::Closed)
    }

    /// A table that this process has open.
    pub(crate) fn opened(&self, name: &str) -> Option<Table> {
        self.lock_tables().get(name).cloned()
    }

    /// A stamped table was met that this process has not opened.
    pub(crate) fn tables_missing(&self) {
        self.missing.store(true, Ordering::Relaxed);
    }

    fn lock_tables(&self) -> MutexGuard<'_, HashMap<String, Table>> {
        // The map is whole after each statement.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a table, if it is there.
    fn open_table(&self, name: &str) -> Result<Option<Table>> {
        self.refresh_own()?;
        let kind = {
            self.check_ways_to(&[name])?;
            let txn = ReadTxn::borrowed(self)?;
            let main = Table::new(self.id, "", self.environment.main(), Kind::Plain);
            let Some(record) = txn.get(&main, name.as_bytes())? else { return Ok(None) };
            check_record(name, record)?;
            self.own.get().map_or(Ok(Kind::Plain), |own| own.kind(&txn.view(), name))?
        };
        let (txn, _pass) = self.environment.read()?;
        let opened = self.environment.heed().open_databases_and_commit(txn, |opener, txn| {
            opener
                .open_database::<Bytes, Bytes>(txn, Some(name))
                .map(CommitOrAbort::<_, ()>::Commit)
        });
        let opened = opened.map_err(|e| self.opening_error(name, e))?;
        Ok(opened.commit().flatten().map(|bare| self.register(name, bare, kind)))
    }

    fn create_table(&self, name: &str, kind: Kind) -> Result<Table> {
        let own = if kind == Kind::Stamped { Some(self.make_own()?) } else { None };
        let mut turn = self.environment.turn()?;
        let (txn, pass) = self.environment.write(&mut turn, self.durability)?;
        let committed = self.check_ways_to_make(&txn, &[name])?;
        if own.is_some() {
            let key = table_key(name);
            let access = Access::Put { row_len: key.len() + size_of::<u64>() };
            committed.check(self, TableId::SETTINGS, Some(&key), access)?;
        }
        self.environment.check_linked()?;
        let made = self.environment.heed().create_databases_and_commit(txn, |opener, txn| {
            // Another process may have made it since it was looked for.
            let there = self.environment.main().get(txn, name.as_bytes())?.is_some();
            if there {
                return Ok(CommitOrAbort::Abort(()));
            }
            let bare = opener.create_database::<Bytes, Bytes>(txn, Some(name))?;
            if let Some(own) = own {
                own.put_kind(txn, name, kind)?;
            }
            Ok::<_, heed::Error>(CommitOrAbort::Commit(bare))
        });
        drop((pass, turn));
        match made.map_err(|e| self.opening_error(name, e))?.commit() {
            Some(bare) => Ok(self.register(name, bare, kind)),
            None => self.open_table(name)?.ok_or_else(|| Error::table(name, "a table", "none")),
        }
    }

    fn register(&self, name: &str, bare: Bare, kind: Kind) -> Table {
        let table = Table::new(self.id, name, bare, kind);
        self.lock_tables().entry(name.to_owned()).or_insert(table).clone()
    }

    /// Opens all stamped tables, so that expired rows of any can be swept.
    fn open_stamped(&self) -> Result<()> {
        let Some(own) = self.own()? else { return Ok(()) };
        let names = {
            let txn = ReadTxn::borrowed(self)?;
            let scan = Scan::new(Range::prefix(layout::TABLE_PREFIX));
            let rows = Rows::of_own(txn.view(), TableId::SETTINGS, own.settings, &scan)?;
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
            // Any value of this length could be a table: LMDB knows.
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

    /// Whether LMDB takes a key of the main table for a table.
    fn is_table(&self, name: &str) -> Result<bool> {
        self.check_ways_to(&[name])?;
        let (txn, _pass) = self.environment.read()?;
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
        act: &'static str,
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
            error => self.environment.error(act, error),
        }
    }
}
