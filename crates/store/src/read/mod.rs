//! Read transactions, and lookups in any transaction.

pub(crate) mod rows;
mod settings;
pub(crate) mod view;

use crate::environment::BarrierGuard;
use crate::environment::remap_barrier::CounterId;
use crate::error::{Error, Result};
use crate::pages::Roots;
use crate::process::OfProcess;
use crate::range::Range;
use crate::read::rows::Rows;
use crate::read::view::{Entry, Pages, View};
use crate::scan::Scan;
use crate::shared::Shared;
use crate::table::Table;
use heed::{RoTxn, WithoutTls};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Number of retries if other processes committed twice before the roots of a transaction were
/// read. After that, the transaction reads through LMDB.
const MAX_RETRIES: usize = 16;

/// A transaction that reads one state of the store, whatever is written meanwhile.
///
/// While it is open, pages that writers replace cannot be reused, so the file grows: end it soon,
/// by dropping it. It can move to another thread, but only one thread at a time can use it.
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
        if let Some(roots) = Roots::known(&shared.environment, &txn) {
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
            txn.roots = Roots::of(&txn.shared().environment, &txn.txn)?;
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

    /// Returns the number of the last transaction that is part of this state.
    pub fn id(&self) -> u64 {
        self.txn.id() as u64
    }
}

impl fmt::Debug for ReadTxn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadTxn").field("id", &self.id()).finish_non_exhaustive()
    }
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
    /// Returns the state that this transaction sees. Used by the other methods.
    fn view(&self) -> View<'_>;

    /// Returns the value of a key; `None` if the key does not exist.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn get(&self, table: &Table, key: &[u8]) -> Result<Option<&[u8]>> {
        self.view().get(table, key)
    }

    /// Returns the value of a key with its version and time of expiry; `None` if the key does not
    /// exist.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn entry(&self, table: &Table, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.view().entry(table, key)
    }

    /// Returns the values of many keys, in the order of `keys`; `None` for a key that does not
    /// exist.
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

    /// Returns the number of keys in a range. For [`Range::all`] of a plain table it takes constant
    /// time, otherwise time proportional to the number of rows.
    ///
    /// # Errors
    ///
    /// See [`Read`].
    fn count(&self, table: &Table, range: &Range) -> Result<u64> {
        count(self.view(), table, range)
    }

    /// Returns an iterator over the rows of a scan, borrowed from the store.
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

/// Returns the number of keys in a range.
fn count(view: View<'_>, table: &Table, range: &Range) -> Result<u64> {
    view.shared.environment.check_process()?;
    if range.is_all() && !table.is_stamped() {
        view.check_path_to(table.name())?;
        let len = table.dbi(view.shared.id)?.len(view.txn);
        return len.map_err(|e| view.shared.table_error(table, "count", e));
    }
    let mut rows = Rows::new(view, table, &Scan::new(range.clone()).keys_only())?;
    rows.try_fold(0, |count, row| row.map(|_| count + 1))
}
