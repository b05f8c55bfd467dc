//! Batches of rows, borrowed from the store while the batch lives. This file has unsafe code: rows
//! are addresses in the memory map, which a transaction keeps from moving.

use crate::error::Result;
use crate::pages::Row;
use crate::range::Range;
use crate::read::{Read, ReadTxn};
use crate::scan::Scan;
use crate::shared::Shared;
use crate::table::Table;
use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// A transaction that a scan and its batches share.
pub(crate) type SharedTxn = Arc<Mutex<ReadTxn<'static>>>;
/// Transactions that see one state of the store. A part of a parallel scan reads each batch in a
/// transaction that no other part is using.
pub(crate) type SharedTxns = Arc<[SharedTxn]>;

/// Number of rows read between two checks for cancellation.
const ROWS_PER_CANCEL_CHECK: usize = 256;
/// Long values are touched once per this many bytes, so that the consumer of a batch does not wait
/// for the disk.
const PAGE: usize = 4096;

/// Distance, in rows, at which memory for rows is prefetched for writing.
const PREFETCH_DISTANCE: usize = 42;

/// The addresses and lengths of a row, in the layout that C and Java read. Valid while the
/// [`RowBatch`] lives.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawRow {
    /// The address of the key.
    pub key: *const u8,
    /// The address of the value. Undefined if `value_len` is zero.
    pub value: *const u8,
    /// The length of the key in bytes.
    pub key_len: u32,
    /// The length of the value in bytes.
    pub value_len: u32,
}

/// Rows of a scan, borrowed from the store without copying. A batch keeps the read transaction of
/// its scan open, so drop it soon.
pub struct RowBatch {
    rows: Vec<RawRow>,
    /// Keeps the addresses valid.
    txn: SharedTxn,
}

// SAFETY: the addresses are only read. The transaction that keeps them valid is behind a lock, and
// any thread may end it, since its reader slot does not belong to a thread.
unsafe impl Send for RowBatch {}
// SAFETY: as above; a shared batch is only read.
unsafe impl Sync for RowBatch {}

impl RowBatch {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether the batch has no rows. Scans return no empty batches.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the row at `index`, or `None` if `index` is out of bounds.
    pub fn get(&self, index: usize) -> Option<Row<'_>> {
        self.rows.get(index).map(|row| self.row(row))
    }

    /// Returns the rows in the order of the scan.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> + DoubleEndedIterator {
        self.rows.iter().map(|row| self.row(row))
    }

    /// Returns the addresses and lengths of the rows, for callers in other languages. They are
    /// valid while the batch lives.
    pub fn raw(&self) -> &[RawRow] {
        &self.rows
    }

    /// Checks that all pages read since the store was opened were readable: see
    /// [`Read::check_readable`].
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a page could not be read.
    pub fn check_readable(&self) -> Result<()> {
        lock(&self.txn).check_readable()
    }

    /// Returns copies of the rows.
    pub fn to_vec(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }

    /// Returns the number of the last transaction that is part of the state that the scan sees.
    pub fn transaction(&self) -> u64 {
        lock(&self.txn).id()
    }

    /// Returns the number of the last change that the scan sees: see [`Read::sequence`].
    ///
    /// # Errors
    ///
    /// As for [`Read::sequence`].
    pub fn sequence(&self) -> Result<u64> {
        lock(&self.txn).sequence()
    }

    #[inline]
    fn row<'b>(&'b self, row: &RawRow) -> Row<'b> {
        debug_assert!(self.rows.as_ptr_range().contains(&std::ptr::from_ref(row)));
        // SAFETY: `fill` took address and length from a row of this batch's transaction, which is
        // open while `self` lives. Until it ends, LMDB does not change its pages, and the map does
        // not move: the remap barrier counts the transaction.
        let key = unsafe { std::slice::from_raw_parts(row.key, row.key_len as usize) };
        // SAFETY: as above.
        let value = unsafe { std::slice::from_raw_parts(row.value, row.value_len as usize) };
        (key, value)
    }
}

impl fmt::Debug for RowBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowBatch").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// An iterator over the batches of a scan, read on the caller's thread. The first call begins a
/// transaction, which ends with the last batch.
pub struct Batches {
    shared: Arc<Shared>,
    table: Table,
    /// The rest of the scan.
    scan: Scan,
    txns: Option<SharedTxns>,
    /// The index of the transaction that the last batch was read in.
    current: usize,
    is_done: bool,
}

impl Batches {
    pub(crate) fn new(shared: Arc<Shared>, table: Table, scan: Scan) -> Self {
        Self { shared, table, scan, txns: None, current: 0, is_done: false }
    }

    /// Creates a scan in open transactions. `txns` must not be empty.
    pub(crate) fn within(txns: SharedTxns, shared: Arc<Shared>, table: Table, scan: Scan) -> Self {
        Self { shared, table, scan, txns: Some(txns), current: 0, is_done: false }
    }

    /// Returns the next batch; `None` after the last one and after an error.
    ///
    /// # Errors
    ///
    /// Errors of a new transaction: see [`Store::read`](crate::Store::read).
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a page is damaged, and
    /// [`Error::Closed`](crate::Error::Closed) if the store was closed.
    pub fn next_batch(&mut self) -> Result<Option<RowBatch>> {
        self.next_until_cancelled(&AtomicBool::new(false))
    }

    /// Returns the scan of the rows that were not returned yet, to continue in another transaction.
    pub fn rest(&self) -> Scan {
        self.scan.clone()
    }

    /// Returns the next batch. If the scan is cancelled meanwhile, the batch has the rows that were
    /// read by then.
    pub(crate) fn next_until_cancelled(
        &mut self,
        cancelled: &AtomicBool,
    ) -> Result<Option<RowBatch>> {
        if self.is_done {
            return Ok(None);
        }
        let filled = self.fill(cancelled);
        if self.is_done || filled.is_err() {
            self.is_done = true;
            self.txns = None;
        }
        filled
    }

    fn fill(&mut self, cancelled: &AtomicBool) -> Result<Option<RowBatch>> {
        self.shared.environment.check()?;
        if self.txns.is_none() {
            self.txns = Some(Arc::new([Arc::new(Mutex::new(ReadTxn::owned(&self.shared)?))]));
        }
        let Some(txns) = self.txns.clone() else { return Ok(None) };
        let (current, reading) = lock_any(&txns, self.current);
        self.current = current;
        let scan = &self.scan;
        let max_rows = scan.batch_rows.min(usize::try_from(scan.limit).unwrap_or(usize::MAX));
        let mut rows: Vec<RawRow> = Vec::with_capacity(max_rows.min(Scan::BATCH_ROWS));
        let (mut bytes, mut is_at_end, mut last) = (0, true, None);
        reading.scan(&self.table, &scan.clone().limit(max_rows as u64))?.visit(|key, value| {
            rows.push(raw(key, value));
            prefetch_for_write(rows.as_ptr().wrapping_add(rows.len() + PREFETCH_DISTANCE));
            bytes += key.len() + value.len();
            let is_full = rows.len() == max_rows || bytes >= scan.batch_bytes;
            let check_now = rows.len().is_multiple_of(ROWS_PER_CANCEL_CHECK);
            let is_complete = is_full || (check_now && cancelled.load(Ordering::Relaxed));
            if is_complete {
                (is_at_end, last) = (false, Some(key.to_vec()));
            }
            !is_complete
        })?;
        drop(reading);
        let left = scan.limit - rows.len() as u64;
        self.is_done = is_at_end || left == 0;
        if let Some(last) = last {
            let range: Range = scan.range.rest(&last, scan.reverse);
            self.scan = Scan { range, limit: left, ..scan.clone() };
        }
        let txn = Arc::clone(&txns[current]);
        Ok((!rows.is_empty()).then_some(RowBatch { rows, txn }))
    }
}

impl Iterator for Batches {
    type Item = Result<RowBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("scan", &self.scan).finish_non_exhaustive()
    }
}

#[inline]
fn raw(key: &[u8], value: &[u8]) -> RawRow {
    if value.len() > PAGE {
        // The read has an effect: it brings the page into memory.
        black_box(value.iter().step_by(PAGE).fold(0_u8, |sum, byte| sum ^ byte));
    }
    // Lengths in the file have 32 bits.
    let (key_len, value_len) = (key.len() as u32, value.len() as u32);
    RawRow { key: key.as_ptr(), value: value.as_ptr(), key_len, value_len }
}

/// Prefetches the cache line of a row for writing. Another processor often has read a batch from
/// the same memory; without this prefetch, a stream is half as fast.
#[inline]
fn prefetch_for_write(row: *const RawRow) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no visible effect. Processors without this instruction
    // ignore it.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) row, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// Locks the transaction at index `first`, or another one if a thread is using that.
fn lock_any(txns: &[SharedTxn], first: usize) -> (usize, MutexGuard<'_, ReadTxn<'static>>) {
    for at in (first..txns.len()).chain(0..first) {
        match txns[at].try_lock() {
            Ok(reading) => return (at, reading),
            Err(TryLockError::Poisoned(poisoned)) => return (at, poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }
    (first, lock(&txns[first]))
}

fn lock(txn: &SharedTxn) -> MutexGuard<'_, ReadTxn<'static>> {
    // A read transaction stays valid if a thread panics.
    txn.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Parallel, Store};

    #[test]
    fn a_part_does_not_wait_for_a_transaction_that_another_part_reads_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), &Options::new()).expect("a store");
        let table = store.table("birds").expect("a table");
        store.put(&table, b"wren", b"1").expect("a put");
        let ranges = vec![Range::all(); 4];
        let parallel = Parallel::split(2).ranges(ranges);
        let parts = store.parallel_batches(&table, &Scan::all(), &parallel).expect("parts");
        let txns = parts[0].txns.clone().expect("transactions");
        assert_eq!(txns.len(), 2);
        // While a thread reads in one of the transactions, all parts use the other one.
        for busy in 0..2 {
            let reading = lock(&txns[busy]);
            let (found, _free) = lock_any(&txns, busy);
            assert_eq!(found, 1 - busy);
            drop(reading);
        }
        let busy = lock(&txns[0]);
        for mut part in parts {
            assert_eq!(part.next_batch().expect("a batch").map(|batch| batch.len()), Some(1));
        }
        drop(busy);
        drop(txns);
        assert_eq!(store.stat().expect("a stat").open_transactions, 0);
    }
}
