//! Rows of a scan by the batch, lent from the store as long as the batch lives. This file holds
//! unsafe code: the rows are addresses into the map, kept from moving by a transaction.

use crate::error::Result;
use crate::range::Range;
use crate::read::{Read, ReadTxn};
use crate::rows::Row;
use crate::scan::Scan;
use crate::store::Shared;
use crate::table::Table;
use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// A transaction that a scan and its batches share.
pub(crate) type SharedTxn = Arc<Mutex<ReadTxn<'static>>>;
/// Transactions of one state of the store. A part of a scan reads each batch in one of them that no
/// other part reads in.
pub(crate) type SharedTxns = Arc<[SharedTxn]>;

/// Between two looks at whether the scan was given up, rows that are read.
const LOOK_EVERY: usize = 256;
/// Values are touched at every so many bytes, so that whoever takes a batch does not wait for the
/// disk.
const PAGE: usize = 4096;

/// So many rows ahead, memory for them is claimed.
const CLAIMED_AHEAD: usize = 42;

/// Where a row lies. What C and Java read: two addresses and two lengths.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawRow {
    /// The address of the key.
    pub key: *const u8,
    /// The address of the value; whatever it is where the length is zero.
    pub value: *const u8,
    /// The length of the key in bytes.
    pub key_len: u32,
    /// The length of the value in bytes.
    pub value_len: u32,
}

/// Rows of a scan, where they lie in the store. A batch keeps the transaction of its scan open: let
/// it go soon.
pub struct RowBatch {
    rows: Vec<RawRow>,
    /// What keeps the addresses valid.
    txn: SharedTxn,
}

// SAFETY: the addresses are read and never written through, by any thread; the transaction behind
// its lock, which keeps them valid, can be ended by any thread, since it has no slot of a thread.
unsafe impl Send for RowBatch {}
// SAFETY: as above; a shared batch is only read.
unsafe impl Sync for RowBatch {}

impl RowBatch {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none. A scan gives no such batch.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row.
    pub fn get(&self, index: usize) -> Option<Row<'_>> {
        self.rows.get(index).map(|row| self.row(row))
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> + DoubleEndedIterator {
        self.rows.iter().map(|row| self.row(row))
    }

    /// Where the rows lie, for callers in other languages: valid as long as the batch lives.
    pub fn raw(&self) -> &[RawRow] {
        &self.rows
    }

    /// Fails if the file could not be read since the store was opened: see
    /// [`Read::check_readable`].
    pub fn check_readable(&self) -> Result<()> {
        lock(&self.txn).check_readable()
    }

    /// The rows, copied.
    pub fn to_vec(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    }

    /// The number of the last transaction that the scan sees.
    pub fn snapshot_id(&self) -> u64 {
        lock(&self.txn).id()
    }

    /// The number of the last change that the scan sees: see [`Read::sequence`].
    pub fn sequence(&self) -> Result<u64> {
        lock(&self.txn).sequence()
    }

    #[inline]
    fn row<'b>(&'b self, row: &RawRow) -> Row<'b> {
        debug_assert!(self.rows.as_ptr_range().contains(&std::ptr::from_ref(row)));
        // SAFETY: `fill` took address and length from a row of this batch's transaction, which is
        // open as long as `self` is there. While it is, LMDB leaves its pages alone, and the map
        // does not move: the transaction is counted at the gate.
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

/// A scan that is read batch by batch, on the caller's thread. It begins with the first batch, in a
/// transaction of its own that ends with the last one.
pub struct Batches {
    shared: Arc<Shared>,
    table: Table,
    /// What is left of the scan.
    scan: Scan,
    txns: Option<SharedTxns>,
    /// The transaction that the last batch was read in.
    current: usize,
    done: bool,
}

impl Batches {
    pub(crate) fn new(shared: Arc<Shared>, table: Table, scan: Scan) -> Self {
        Self { shared, table, scan, txns: None, current: 0, done: false }
    }

    /// A scan in transactions that are open already, of which there is one at least.
    pub(crate) fn within(txns: SharedTxns, shared: Arc<Shared>, table: Table, scan: Scan) -> Self {
        Self { shared, table, scan, txns: Some(txns), current: 0, done: false }
    }

    /// The next rows; `None` after the last.
    pub fn next_batch(&mut self) -> Result<Option<RowBatch>> {
        self.next_unless(&AtomicBool::new(false))
    }

    /// Where a scan would go on after the rows that came: what to ask for in another transaction.
    pub fn rest(&self) -> Scan {
        self.scan.clone()
    }

    /// The next rows. When the scan is given up meanwhile, those that were read by then.
    pub(crate) fn next_unless(&mut self, given_up: &AtomicBool) -> Result<Option<RowBatch>> {
        if self.done {
            return Ok(None);
        }
        let filled = self.fill(given_up);
        if self.done || filled.is_err() {
            self.done = true;
            self.txns = None;
        }
        filled
    }

    fn fill(&mut self, given_up: &AtomicBool) -> Result<Option<RowBatch>> {
        self.shared.environment.check()?;
        if self.txns.is_none() {
            self.txns = Some(Arc::new([Arc::new(Mutex::new(ReadTxn::owned(&self.shared)?))]));
        }
        let Some(txns) = self.txns.clone() else { return Ok(None) };
        let (current, reading) = lock_any(&txns, self.current);
        self.current = current;
        let scan = &self.scan;
        let most = scan.batch_rows.min(usize::try_from(scan.limit).unwrap_or(usize::MAX));
        let mut rows: Vec<RawRow> = Vec::with_capacity(most.min(Scan::BATCH_ROWS));
        let (mut bytes, mut ended, mut last) = (0, true, None);
        reading.scan(&self.table, &scan.clone().limit(most as u64))?.visit(|key, value| {
            rows.push(raw(key, value));
            claim(rows.as_ptr().wrapping_add(rows.len() + CLAIMED_AHEAD));
            bytes += key.len() + value.len();
            let full = rows.len() == most || bytes >= scan.batch_bytes;
            let look = rows.len().is_multiple_of(LOOK_EVERY);
            let enough = full || (look && given_up.load(Ordering::Relaxed));
            if enough {
                (ended, last) = (false, Some(key.to_vec()));
            }
            !enough
        })?;
        drop(reading);
        let left = scan.limit - rows.len() as u64;
        self.done = ended || left == 0;
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
        // The read counts: it brings the page in.
        black_box(value.iter().step_by(PAGE).fold(0_u8, |sum, byte| sum ^ byte));
    }
    // Lengths in the file have 32 bits.
    let (key_len, value_len) = (key.len() as u32, value.len() as u32);
    RawRow { key: key.as_ptr(), value: value.as_ptr(), key_len, value_len }
}

/// Asks for the line of a row that will be written. The memory was often that of a batch which
/// another processor has read: to take a line from it only when it is written makes a stream half
/// as fast.
#[inline]
fn claim(row: *const RawRow) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address does nothing that can be seen. Processors that do not know
    // this one take it for nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) row, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// Locks the transaction of this number, or another one if a thread reads in that at the moment.
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
    // A transaction that reads is whole, whatever panics.
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
        // As long as a thread reads in the first, all parts read in the second, whichever it is.
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
