//! Read transactions, and lookups in any transaction.

use crate::environment::{BarrierGuard, Dbi};
use crate::error::{Error, Result};
use crate::fork::OfProcess;
use crate::pages::{Access, Committed, Roots, TableId, Tree};
use crate::range::Range;
use crate::remap_barrier::CounterId;
use crate::rows::Rows;
use crate::scan::Scan;
use crate::stamp::Stamp;
use crate::store::Shared;
use crate::table::Table;
use heed::{AnyTls, RoTxn, WithoutTls};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Number of retries if other processes committed twice before the roots of a transaction were
/// read. After that, the transaction reads through LMDB.
const MAX_RETRIES: usize = 16;

/// A transaction that reads one state of the store, whatever is written meanwhile.
///
/// While it is open, pages that writers replace are not reused, so the file grows: end it soon. It
/// can move to another thread, and is used by one at a time.
pub struct ReadTxn<'s> {
    // Ends before the barrier is left: fields are dropped in this order.
    txn: OfProcess<RoTxn<'s, WithoutTls>>,
    shared: StoreRef<'s>,
    now: Cell<Option<u64>>,
    /// The roots of tables. Without them, which is rare, rows are read through LMDB.
    roots: Option<Roots>,
}

/// The store, and the count at its remap barrier.
enum StoreRef<'s> {
    Borrowed(&'s Shared, #[expect(dead_code, reason = "leaves the barrier")] BarrierGuard<'s>),
    Owned(OwnedBarrierGuard),
}

struct OwnedBarrierGuard {
    shared: Arc<Shared>,
    counter: CounterId,
}

impl Drop for OwnedBarrierGuard {
    fn drop(&mut self) {
        self.shared.environment.leave(self.counter);
    }
}

impl<'s> ReadTxn<'s> {
    #[inline]
    pub(crate) fn borrowed(shared: &'s Shared) -> Result<Self> {
        let (txn, guard) = shared.environment.read()?;
        let store_ref = StoreRef::Borrowed(shared, guard);
        let txn = OfProcess::new(txn);
        if let Some(roots) = Roots::known(shared, &txn) {
            return Ok(Self { txn, shared: store_ref, now: Cell::new(None), roots: Some(roots) });
        }
        // In this order: the barrier is left when the transaction has ended.
        drop(txn);
        drop(store_ref);
        Self::begin_with_retries(|| {
            let (txn, guard) = shared.environment.read()?;
            Ok((OfProcess::new(txn), StoreRef::Borrowed(shared, guard)))
        })
    }

    pub(crate) fn owned(shared: &Arc<Shared>) -> Result<ReadTxn<'static>> {
        ReadTxn::begin_with_retries(|| {
            let (txn, counter) = shared.environment.read_owned()?;
            let store_ref =
                StoreRef::Owned(OwnedBarrierGuard { shared: Arc::clone(shared), counter });
            Ok((OfProcess::new(txn), store_ref))
        })
    }

    /// Begins a transaction if the address of the map is unknown. Begins it again if other
    /// processes committed twice before its roots were read.
    #[inline(never)]
    fn begin_with_retries(
        begin: impl Fn() -> Result<(OfProcess<RoTxn<'s, WithoutTls>>, StoreRef<'s>)>,
    ) -> Result<Self> {
        for retries_left in (0..=MAX_RETRIES).rev() {
            let (txn, store_ref) = begin()?;
            let mut txn = Self { txn, shared: store_ref, now: Cell::new(None), roots: None };
            txn.roots = Roots::of(txn.shared(), &txn.txn)?;
            if txn.roots.is_some() || retries_left == 0 {
                return Ok(txn);
            }
        }
        Err(Error::Broken)
    }

    pub(crate) fn shared(&self) -> &Shared {
        match &self.shared {
            StoreRef::Borrowed(shared, _) => shared,
            StoreRef::Owned(guard) => &guard.shared,
        }
    }

    /// Returns the number of the last transaction that this one sees.
    pub fn id(&self) -> u64 {
        self.txn.id() as u64
    }
}

impl fmt::Debug for ReadTxn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadTxn").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// The state that a transaction sees.
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

/// How the rows of a table are read.
#[derive(Clone, Copy)]
pub(crate) enum Source<'t> {
    /// From its pages, which are checked.
    Pages(Tree<'t>),
    /// Through LMDB, since this transaction has changed the table. The committed pages are checked
    /// before LMDB follows them.
    Changed(Tree<'t>),
    /// Through LMDB.
    Lmdb,
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
            Pages::Read(Some(roots)) => roots.main(self.shared).check_path(name.as_bytes()),
            Pages::Write(committed) => {
                committed.check(self.shared, TableId::MAIN, Some(name.as_bytes()), Access::Read)
            }
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
                Ok(roots.tree(self.shared, table)?.map_or(Source::Lmdb, Source::Pages))
            }
            Pages::Write(committed) => committed.source(self.shared, TableId::of(table)),
        }
    }

    /// Returns how a system table is read.
    pub(crate) fn system_source(&self, table: TableId<'static>) -> Result<Source<'t>> {
        match self.pages {
            Pages::Read(None) => Ok(Source::Lmdb),
            Pages::Read(Some(roots)) => {
                let tree = roots.system_table(self.shared, table.name())?;
                Ok(tree.map_or(Source::Lmdb, Source::Pages))
            }
            Pages::Write(committed) => committed.source(self.shared, table),
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
            Pages::Write(committed) => committed.check(self.shared, table, Some(key), Access::Read),
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
            && let Some(tree) = roots.tree(self.shared, table)?
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

    pub(crate) fn count(&self, table: &Table, range: &Range) -> Result<u64> {
        self.shared.environment.check_process()?;
        if range.is_all() && !table.is_stamped() {
            self.check_path_to(table.name())?;
            let len = table.dbi(self.shared.id)?.len(self.txn);
            return len.map_err(|e| self.shared.table_error(table, "count", e));
        }
        let mut rows = Rows::new(*self, table, &Scan::new(range.clone()).keys_only())?;
        rows.try_fold(0, |count, row| row.map(|_| count + 1))
    }
}

/// A value, with its version and time of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// The value.
    pub value: &'t [u8],
    /// The number of the change that wrote it; `None` in a plain table.
    pub version: Option<u64>,
    /// The time of expiry, in milliseconds since 1970; `None` if the row does not expire.
    pub expires_at_ms: Option<u64>,
}

/// Lookups in read and write transactions. Results are borrowed from the store, until the
/// transaction writes or ends.
///
/// # Errors
///
/// All lookups return [`Error::Corrupt`] if a page is damaged, [`Error::Table`] if the table
/// belongs to another store or was created after the transaction began, and [`Error::Forked`] in a
/// child made by `fork`.
pub trait Read {
    /// Returns the state that this transaction sees.
    fn view(&self) -> View<'_>;

    /// Returns the value of a key; `None` if the key does not exist.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn get(&self, table: &Table, key: &[u8]) -> Result<Option<&[u8]>> {
        self.view().get(table, key)
    }

    /// Returns the value of a key, with its version and time of expiry.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn entry(&self, table: &Table, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.view().entry(table, key)
    }

    /// Returns the values of many keys, in the order of `keys`.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn get_many<K: AsRef<[u8]>>(&self, table: &Table, keys: &[K]) -> Result<Vec<Option<&[u8]>>> {
        let view = self.view();
        keys.iter().map(|key| view.get(table, key.as_ref())).collect()
    }

    /// Returns whether a key exists.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn contains(&self, table: &Table, key: &[u8]) -> Result<bool> {
        Ok(self.get(table, key)?.is_some())
    }

    /// Returns the number of keys in a range. Takes constant time for all keys of a plain table,
    /// otherwise time proportional to the result.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn count(&self, table: &Table, range: &Range) -> Result<u64> {
        self.view().count(table, range)
    }

    /// Returns an iterator over the rows of a scan, without copying.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn scan(&self, table: &Table, scan: &Scan) -> Result<Rows<'_>> {
        let view = self.view();
        view.shared.environment.check_process()?;
        Rows::new(view, table, scan)
    }

    /// Checks that all pages read since the store was opened were readable. They are not if the
    /// file was truncated or the disk failed. If this succeeds, all bytes read before the call are
    /// those of the file.
    ///
    /// With the feature `sigbus`, an unreadable page reads as zeros, so borrowed values may be
    /// zeros without an error: call this after using them. Without the feature, the process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], with the length of the file.
    fn check_readable(&self) -> Result<()> {
        self.view().shared.environment.check_readable()
    }

    /// Returns the number of the last change that this transaction sees. A watch can continue after
    /// it.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn sequence(&self) -> Result<u64> {
        let view = self.view();
        view.shared.system_tables()?.map_or(Ok(0), |system_tables| system_tables.sequence(&view))
    }
}

impl Read for ReadTxn<'_> {
    fn view(&self) -> View<'_> {
        View::new(&self.txn, self.shared(), &self.now, Pages::Read(self.roots.as_ref()))
    }
}
