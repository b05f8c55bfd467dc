//! Opens, creates and lists the tables of a store, and begins write transactions.

use crate::changes::Journal;
use crate::error::{Error, Result};
use crate::file::layout::tree_record;
use crate::file::tree::check_record;
use crate::options::Durability;
use crate::pages::{Access, Committed, TableId};
use crate::range::Range;
use crate::read::rows::Rows;
use crate::read::view::{Pages, View};
use crate::read::{Read, ReadTxn};
use crate::scan::Scan;
use crate::shared::Shared;
use crate::table::system_tables::{SystemTables, layout, table_key};
use crate::table::{Kind, Table, check_name};
use crate::write::WriteTxn;
use heed::types::Bytes;
use heed::{CommitOrAbort, MdbError, RwTxn};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

impl Shared {
    /// Begins a write transaction that writes nothing: while it is open, no process can commit.
    pub(crate) fn write_lock(&self) -> Result<WriteTxn<'_>> {
        self.begin_write(self.durability)
    }

    pub(crate) fn begin_write(&self, durability: Durability) -> Result<WriteTxn<'_>> {
        if self.has_unopened_tables.swap(false, Ordering::Relaxed) {
            self.open_stamped()?;
        }
        loop {
            let mut write_guard = self.environment.lock_for_writing()?;
            let (txn, guard) = self.environment.write(&mut write_guard, durability)?;
            let committed = Rc::new(Committed::of(&self.environment, &txn)?);
            let system_tables = self.system_tables.get().copied();
            // Another process may have created them meanwhile.
            let made = system_tables.is_none()
                && committed.has_table(&self.environment, layout::SETTINGS)?;
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
    pub(crate) fn open_system_tables(&self) -> Result<()> {
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
        let committed = Committed::of(&self.environment, txn)?;
        for name in names {
            let access = Access::Put { row_len: name.len() + tree_record::LEN };
            committed.check(&self.environment, TableId::MAIN, Some(name.as_bytes()), access)?;
        }
        Ok(committed)
    }

    /// Creates the system tables, if they do not exist.
    pub(crate) fn create_system_tables(&self) -> Result<SystemTables> {
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

    /// Opens a table, if it exists.
    pub(crate) fn open_table(&self, name: &str) -> Result<Option<Table>> {
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

    pub(crate) fn create_table(&self, name: &str, kind: Kind) -> Result<Table> {
        let system_tables =
            if kind == Kind::Stamped { Some(self.create_system_tables()?) } else { None };
        let mut write_guard = self.environment.lock_for_writing()?;
        let (txn, guard) = self.environment.write(&mut write_guard, self.durability)?;
        let committed = self.check_paths_to_create(&txn, &[name])?;
        if system_tables.is_some() {
            let key = table_key(name);
            let access = Access::Put { row_len: key.len() + size_of::<u64>() };
            committed.check(&self.environment, TableId::SETTINGS, Some(&key), access)?;
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

    /// Opens all stamped tables, so that expired rows of any can be swept.
    pub(crate) fn open_stamped(&self) -> Result<()> {
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

    pub(crate) fn table_names(&self) -> Result<Vec<String>> {
        let mut candidates = Vec::new();
        let txn = ReadTxn::borrowed(self)?;
        let main = Table::new(self.id, "", self.environment.main(), Kind::Plain);
        for entry in Rows::new(txn.view(), &main, &Scan::all())? {
            let (key, record) = entry?;
            // Any value of this length could be a table. Only LMDB can tell.
            if record.len() == tree_record::LEN {
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
}
