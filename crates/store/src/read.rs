//! Reading: transactions that see one state of the store, and lookups in any transaction.

use crate::environment::{Bare, Pass};
use crate::error::{Error, Result};
use crate::fork::OfProcess;
use crate::gate::Place;
use crate::pages::{Access, Committed, Roots, TableId, Tree};
use crate::range::Range;
use crate::rows::Rows;
use crate::scan::Scan;
use crate::stamp::Stamp;
use crate::store::Shared;
use crate::table::Table;
use heed::{AnyTls, RoTxn, WithoutTls};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// How often a transaction begins again where other processes committed twice before its roots
/// were read. After that, it reads through LMDB.
const RETRIES: usize = 16;

/// A transaction that reads one state of the store, whatever is written meanwhile.
///
/// It keeps pages from being used again, so the file grows while others write: end it soon. It can
/// move to another thread, and is used by one at a time.
pub struct ReadTxn<'s> {
    // Ends before the gate is left: fields go in this order.
    txn: OfProcess<RoTxn<'s, WithoutTls>>,
    shared: Held<'s>,
    now: Cell<Option<u64>>,
    /// Where tables begin. Without it, which is rare, rows are read through LMDB.
    roots: Option<Roots>,
}

/// The store, and the place at its gate.
enum Held<'s> {
    Borrowed(&'s Shared, #[expect(dead_code, reason = "leaves the gate")] Pass<'s>),
    Owned(OwnedPass),
}

struct OwnedPass {
    shared: Arc<Shared>,
    place: Place,
}

impl Drop for OwnedPass {
    fn drop(&mut self) {
        self.shared.environment.leave(self.place);
    }
}

impl<'s> ReadTxn<'s> {
    #[inline]
    pub(crate) fn borrowed(shared: &'s Shared) -> Result<Self> {
        let (txn, pass) = shared.environment.read()?;
        let held = Held::Borrowed(shared, pass);
        let txn = OfProcess::new(txn);
        if let Some(roots) = Roots::known(shared, &txn) {
            return Ok(Self { txn, shared: held, now: Cell::new(None), roots: Some(roots) });
        }
        // In this order: the gate is left when the transaction has ended.
        drop(txn);
        drop(held);
        Self::begin_slowly(|| {
            let (txn, pass) = shared.environment.read()?;
            Ok((OfProcess::new(txn), Held::Borrowed(shared, pass)))
        })
    }

    pub(crate) fn owned(shared: &Arc<Shared>) -> Result<ReadTxn<'static>> {
        ReadTxn::begin_slowly(|| {
            let (txn, place) = shared.environment.read_owned()?;
            let held = Held::Owned(OwnedPass { shared: Arc::clone(shared), place });
            Ok((OfProcess::new(txn), held))
        })
    }

    /// Begins a transaction where the address of the map is not known yet, and begins it again
    /// where other processes committed twice before its roots were read.
    #[inline(never)]
    fn begin_slowly(
        begin: impl Fn() -> Result<(OfProcess<RoTxn<'s, WithoutTls>>, Held<'s>)>,
    ) -> Result<Self> {
        for retries_left in (0..=RETRIES).rev() {
            let (txn, held) = begin()?;
            let mut txn = Self { txn, shared: held, now: Cell::new(None), roots: None };
            txn.roots = Roots::of(txn.shared(), &txn.txn)?;
            if txn.roots.is_some() || retries_left == 0 {
                return Ok(txn);
            }
        }
        Err(Error::Broken)
    }

    pub(crate) fn shared(&self) -> &Shared {
        match &self.shared {
            Held::Borrowed(shared, _) => shared,
            Held::Owned(pass) => &pass.shared,
        }
    }

    /// The number of the last transaction that this one sees.
    pub fn id(&self) -> u64 {
        self.txn.id() as u64
    }
}

impl fmt::Debug for ReadTxn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadTxn").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// What a transaction sees, for lookups.
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
    /// Those that a write transaction began from.
    Write(&'t Committed),
}

/// How the rows of a table are read.
#[derive(Clone, Copy)]
pub(crate) enum Source<'t> {
    /// From its pages, which are checked.
    Pages(Tree<'t>),
    /// Through LMDB, since this transaction has changed the table. The pages that it had before
    /// are checked before LMDB follows them.
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
    pub(crate) fn check_way_to(&self, name: &str) -> Result<()> {
        match self.pages {
            Pages::Read(None) => Ok(()),
            Pages::Read(Some(roots)) => roots.main(self.shared).check_way(name.as_bytes()),
            Pages::Write(committed) => {
                committed.check(self.shared, TableId::MAIN, Some(name.as_bytes()), Access::Read)
            }
        }
    }

    /// Returns the pages of a table; `None` if it is to be read through LMDB.
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

    /// Returns how one of the store's own tables is read.
    pub(crate) fn own_source(&self, table: TableId<'static>) -> Result<Source<'t>> {
        match self.pages {
            Pages::Read(None) => Ok(Source::Lmdb),
            Pages::Read(Some(roots)) => {
                let tree = roots.own(self.shared, table.name())?;
                Ok(tree.map_or(Source::Lmdb, Source::Pages))
            }
            Pages::Write(committed) => committed.source(self.shared, table),
        }
    }

    /// Returns a row of one of the store's own tables.
    pub(crate) fn own_row(
        &self,
        table: TableId<'static>,
        bare: Bare,
        key: &[u8],
    ) -> Result<Option<&'t [u8]>> {
        match self.own_source(table)? {
            Source::Pages(tree) => return tree.get(key),
            Source::Changed(_) => self.check_changed(table, key)?,
            Source::Lmdb => {}
        }
        bare.get(self.txn, key).map_err(|e| self.shared.environment.error("settings", e))
    }

    /// Checks the pages that LMDB follows to a key of a table that this transaction has changed.
    #[inline(never)]
    fn check_changed(&self, table: TableId<'_>, key: &[u8]) -> Result<()> {
        match self.pages {
            Pages::Write(committed) => committed.check(self.shared, table, Some(key), Access::Read),
            Pages::Read(_) => Ok(()),
        }
    }

    /// The time that this transaction goes by, taken when it is first asked for.
    pub(crate) fn now_ms(&self) -> u64 {
        let now = self.now.get().unwrap_or_else(|| self.shared.clock.now_ms());
        self.now.set(Some(now));
        now
    }

    /// The row as it lies in the table.
    #[inline]
    pub(crate) fn raw(&self, table: &Table, key: &[u8]) -> Result<Option<&'t [u8]>> {
        let bare = table.bare(self.shared.id)?;
        self.shared.environment.check_process()?;
        if key.is_empty() {
            // LMDB takes no empty keys, so there is none.
            return Ok(None);
        }
        if let Pages::Read(Some(roots)) = self.pages
            && let Some(tree) = roots.tree(self.shared, table)?
        {
            return tree.get(key);
        }
        self.raw_of_write(table, bare, key)
    }

    /// As `raw`, in a transaction that writes, or one that reads through LMDB.
    #[inline(never)]
    fn raw_of_write(&self, table: &Table, bare: Bare, key: &[u8]) -> Result<Option<&'t [u8]>> {
        match self.source(table)? {
            Source::Pages(tree) => return tree.get(key),
            Source::Changed(_) => self.check_changed(TableId::of(table), key)?,
            Source::Lmdb => {}
        }
        bare.get(self.txn, key).map_err(|e| self.shared.table_error(table, "get", e))
    }

    pub(crate) fn get(&self, table: &Table, key: &[u8]) -> Result<Option<&'t [u8]>> {
        if table.is_stamped() {
            return Ok(self.entry(table, key)?.map(|entry| entry.value));
        }
        self.raw(table, key)
    }

    pub(crate) fn entry(&self, table: &Table, key: &[u8]) -> Result<Option<Entry<'t>>> {
        let Some(row) = self.raw(table, key)? else { return Ok(None) };
        if !table.is_stamped() {
            return Ok(Some(Entry { value: row, version: None, expires_at_ms: None }));
        }
        let (stamp, value) = Stamp::split(row)?;
        Ok(stamp.lives(self.now_ms()).then(|| Entry {
            value,
            version: Some(stamp.version),
            expires_at_ms: (stamp.expiry_ms > 0).then_some(stamp.expiry_ms),
        }))
    }

    pub(crate) fn count(&self, table: &Table, range: &Range) -> Result<u64> {
        self.shared.environment.check_process()?;
        if range.is_all() && !table.is_stamped() {
            self.check_way_to(table.name())?;
            let len = table.bare(self.shared.id)?.len(self.txn);
            return len.map_err(|e| self.shared.table_error(table, "count", e));
        }
        let mut rows = Rows::new(*self, table, &Scan::new(range.clone()).keys_only())?;
        rows.try_fold(0, |count, row| row.map(|_| count + 1))
    }
}

/// A value with what a stamped table keeps about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// The value.
    pub value: &'t [u8],
    /// The number of the change that wrote it; `None` in a plain table.
    pub version: Option<u64>,
    /// When it expires, in milliseconds since the beginning of 1970; `None` for never.
    pub expires_at_ms: Option<u64>,
}

/// Lookups, in transactions that read and in those that write. What they answer lies in the store
/// and is lent as long as the transaction is not written to and does not end.
pub trait Read {
    /// What this transaction sees.
    fn view(&self) -> View<'_>;

    /// The value of a key.
    fn get(&self, table: &Table, key: &[u8]) -> Result<Option<&[u8]>> {
        self.view().get(table, key)
    }

    /// The value of a key, with its version and the time it expires.
    fn entry(&self, table: &Table, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.view().entry(table, key)
    }

    /// The values of many keys, in the order of the keys.
    fn get_many<K: AsRef<[u8]>>(&self, table: &Table, keys: &[K]) -> Result<Vec<Option<&[u8]>>> {
        let view = self.view();
        keys.iter().map(|key| view.get(table, key.as_ref())).collect()
    }

    /// Whether a key is there.
    fn contains(&self, table: &Table, key: &[u8]) -> Result<bool> {
        Ok(self.get(table, key)?.is_some())
    }

    /// How many keys of a range are there. All of a plain table are counted at once; for anything
    /// else the keys are passed over.
    fn count(&self, table: &Table, range: &Range) -> Result<u64> {
        self.view().count(table, range)
    }

    /// The rows of a scan, one after the other, where they lie.
    fn scan(&self, table: &Table, scan: &Scan) -> Result<Rows<'_>> {
        let view = self.view();
        view.shared.environment.check_process()?;
        Rows::new(view, table, scan)
    }

    /// Fails if a page of the file could not be read since the store was opened: the file was
    /// truncated, or the disk failed. What was read before a call that succeeds is what the file
    /// has.
    ///
    /// With the feature `sigbus`, such a page reads as zeros, so values that were lent may be zeros
    /// without an error: call this after they were used. Without it the process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], with the length of the file.
    fn check_readable(&self) -> Result<()> {
        self.view().shared.environment.check_readable()
    }

    /// The number of the last change that this transaction sees: where a watch goes on after what
    /// was read here.
    fn sequence(&self) -> Result<u64> {
        let view = self.view();
        view.shared.own()?.map_or(Ok(0), |own| own.sequence(&view))
    }
}

impl Read for ReadTxn<'_> {
    fn view(&self) -> View<'_> {
        View::new(&self.txn, self.shared(), &self.now, Pages::Read(self.roots.as_ref()))
    }
}
