//! The state that a transaction sees, and lookups in it.

use crate::environment::Dbi;
use crate::error::Result;
use crate::pages::{Access, Committed, Roots, Source, TableId, Tree};
use crate::shared::Shared;
use crate::stamp::Stamp;
use crate::table::Table;
use heed::{AnyTls, RoTxn};
use std::cell::Cell;
use std::fmt;

/// The state of the store that a transaction sees. Opaque outside this crate.
#[derive(Clone, Copy)]
pub struct View<'t> {
    pub(crate) txn: &'t RoTxn<'t, AnyTls>,
    pub(crate) shared: &'t Shared,
    now: &'t Cell<Option<u64>>,
    pages: Pages<'t>,
}

/// The committed pages that a transaction sees.
#[derive(Clone, Copy)]
pub(crate) enum Pages<'t> {
    /// Those of a read transaction; without roots, which is rare, rows are read through LMDB.
    Read(Option<&'t Roots>),
    /// Those that a write transaction is based on.
    Write(&'t Committed),
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

impl<'t> View<'t> {
    pub(crate) fn new(
        txn: &'t RoTxn<'t, AnyTls>,
        shared: &'t Shared,
        now: &'t Cell<Option<u64>>,
        pages: Pages<'t>,
    ) -> Self {
        Self { txn, shared, now, pages }
    }

    /// Checks the pages that LMDB follows when it opens a table.
    pub(crate) fn check_path_to(&self, name: &str) -> Result<()> {
        match self.pages {
            Pages::Read(None) => Ok(()),
            Pages::Read(Some(roots)) => {
                roots.main(&self.shared.environment).check_path(name.as_bytes())
            }
            Pages::Write(committed) => committed.check(
                &self.shared.environment,
                TableId::MAIN,
                Some(name.as_bytes()),
                Access::Read,
            ),
        }
    }

    /// Returns the pages of a table; `None` if it is read through LMDB.
    #[inline]
    pub(crate) fn tree(&self, table: &Table) -> Result<Option<Tree<'t>>> {
        Ok(match self.source(table)? {
            Source::Pages(tree) => Some(tree),
            Source::Changed(_) | Source::Lmdb => None,
        })
    }

    /// Returns how a table is read.
    #[inline]
    pub(crate) fn source(&self, table: &Table) -> Result<Source<'t>> {
        match self.pages {
            Pages::Read(None) => Ok(Source::Lmdb),
            Pages::Read(Some(roots)) => {
                Ok(roots.tree(&self.shared.environment, table)?.map_or(Source::Lmdb, Source::Pages))
            }
            Pages::Write(committed) => {
                committed.source(&self.shared.environment, TableId::of(table))
            }
        }
    }

    /// Returns how a system table is read.
    pub(crate) fn system_source(&self, table: TableId<'static>) -> Result<Source<'t>> {
        match self.pages {
            Pages::Read(None) => Ok(Source::Lmdb),
            Pages::Read(Some(roots)) => {
                let tree = roots.system_table(&self.shared.environment, table.name())?;
                Ok(tree.map_or(Source::Lmdb, Source::Pages))
            }
            Pages::Write(committed) => committed.source(&self.shared.environment, table),
        }
    }

    /// Returns a row of a system table.
    pub(crate) fn system_row(
        &self,
        table: TableId<'static>,
        dbi: Dbi,
        key: &[u8],
    ) -> Result<Option<&'t [u8]>> {
        match self.system_source(table)? {
            Source::Pages(tree) => return tree.get(key),
            Source::Changed(_) => self.check_changed(table, key)?,
            Source::Lmdb => {}
        }
        dbi.get(self.txn, key).map_err(|e| self.shared.environment.error("settings", e))
    }

    /// Checks the pages that LMDB follows to a key of a table that this transaction has changed.
    #[inline(never)]
    fn check_changed(&self, table: TableId<'_>, key: &[u8]) -> Result<()> {
        match self.pages {
            Pages::Write(committed) => {
                committed.check(&self.shared.environment, table, Some(key), Access::Read)
            }
            Pages::Read(_) => Ok(()),
        }
    }

    /// Returns the time of this transaction, which is read from the clock at the first call.
    pub(crate) fn now_ms(&self) -> u64 {
        let now = self.now.get().unwrap_or_else(|| self.shared.clock.now_ms());
        self.now.set(Some(now));
        now
    }

    /// Returns the row as stored in the table, with its stamp.
    #[inline]
    pub(crate) fn stored_row(&self, table: &Table, key: &[u8]) -> Result<Option<&'t [u8]>> {
        let dbi = table.dbi(self.shared.id)?;
        self.shared.environment.check_process()?;
        if key.is_empty() {
            // LMDB has no empty keys.
            return Ok(None);
        }
        if let Pages::Read(Some(roots)) = self.pages
            && let Some(tree) = roots.tree(&self.shared.environment, table)?
        {
            return tree.get(key);
        }
        self.stored_row_with_lmdb(table, dbi, key)
    }

    /// Returns the row as `stored_row` does, in a write transaction or one that reads through LMDB.
    #[inline(never)]
    fn stored_row_with_lmdb(
        &self,
        table: &Table,
        dbi: Dbi,
        key: &[u8],
    ) -> Result<Option<&'t [u8]>> {
        match self.source(table)? {
            Source::Pages(tree) => return tree.get(key),
            Source::Changed(_) => self.check_changed(TableId::of(table), key)?,
            Source::Lmdb => {}
        }
        dbi.get(self.txn, key).map_err(|e| self.shared.table_error(table, "get", e))
    }

    pub(crate) fn get(&self, table: &Table, key: &[u8]) -> Result<Option<&'t [u8]>> {
        if table.is_stamped() {
            return Ok(self.entry(table, key)?.map(|entry| entry.value));
        }
        self.stored_row(table, key)
    }

    pub(crate) fn entry(&self, table: &Table, key: &[u8]) -> Result<Option<Entry<'t>>> {
        let Some(row) = self.stored_row(table, key)? else { return Ok(None) };
        if !table.is_stamped() {
            return Ok(Some(Entry { value: row, version: None, expires_at_ms: None }));
        }
        let (stamp, value) = Stamp::split(row)?;
        Ok(stamp.is_live_at(self.now_ms()).then(|| Entry {
            value,
            version: Some(stamp.version),
            expires_at_ms: (stamp.expiry_ms > 0).then_some(stamp.expiry_ms),
        }))
    }
}

/// A value, with its version and time of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// The value.
    pub value: &'t [u8],
    /// The sequence number of the change that wrote it; `None` in a plain table.
    pub version: Option<u64>,
    /// The time of expiry, in milliseconds since 1970; `None` if the row does not expire.
    pub expires_at_ms: Option<u64>,
}
