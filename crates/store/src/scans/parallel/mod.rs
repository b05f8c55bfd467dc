//! Scans by several threads, all on one state of the store.

mod queue;
mod split;

use crate::error::{Error, Result};
use crate::pages::Row;
use crate::range::Range;
use crate::read::{Read, ReadTxn};
use crate::scan::Scan;
use crate::scans::batch::{Batches, SharedTxns};
use crate::shared::Shared;
use crate::store::Store;
use crate::table::Table;
use queue::Queue;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Number of parts for each thread, so that a part with more rows than others does not delay the
/// scan for long.
const PARTS_PER_THREAD: usize = 16;
/// Maximum number of attempts to begin all transactions without a commit of another process between
/// them.
const MAX_ATTEMPTS: usize = 64;

/// How a scan is distributed among threads.
#[derive(Clone, Debug)]
pub struct Parallel {
    threads: usize,
    is_ordered: bool,
    ranges: Option<Vec<Range>>,
}

impl Parallel {
    /// Returns a scan by this many threads, from 1 to 256. The range is divided at page boundaries
    /// into up to 16 parts for each thread, of about the same number of bytes. Each thread reads
    /// one part after the other.
    pub fn split(threads: usize) -> Self {
        Self { threads: threads.clamp(1, 256), is_ordered: false, ranges: None }
    }

    /// Sets the parts, instead of dividing the range. The scan reads the intersection of each part
    /// with its own range.
    #[must_use]
    pub fn ranges(mut self, ranges: Vec<Range>) -> Self {
        self.ranges = Some(ranges);
        self
    }

    /// Makes the scan return batches in its own order. By default they are returned as they are
    /// read, which needs less memory.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.is_ordered = true;
        self
    }

    /// Returns the scans of the parts, in the order of the whole scan.
    fn parts(&self, txn: &ReadTxn<'_>, table: &Table, scan: &Scan) -> Result<Vec<Scan>> {
        if scan.limit != u64::MAX {
            let (expected, found) = ("no limit in a parallel scan".to_owned(), scan.limit);
            return Err(Error::Options { option: "limit", expected, found: found.to_string() });
        }
        let mut ranges = match &self.ranges {
            Some(ranges) => ranges.iter().map(|range| range.and(&scan.range)).collect(),
            None => split::split(txn.view(), table, &scan.range, self.threads * PARTS_PER_THREAD)?,
        };
        if scan.reverse {
            ranges.reverse();
        }
        Ok(ranges.into_iter().map(|range| Scan { range, ..scan.clone() }).collect())
    }
}

impl Store {
    /// Scans with several threads. Each has its own transaction, and all transactions see the same
    /// state of the store. The threads call `map` with each row in place, and the returned iterator
    /// has its results, in batches. Rows for which `map` returns `None` are skipped.
    ///
    /// If `map` panics, the iterator returns [`Error::Lmdb`] and ends.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] if the scan has a limit, [`Error::Io`] if a thread cannot be started, and
    /// errors of read transactions: see [`read`](Self::read).
    pub fn scan_parallel<T, F>(
        &self,
        table: &Table,
        scan: &Scan,
        parallel: &Parallel,
        map: F,
    ) -> Result<ParallelRows<T>>
    where
        T: Send + 'static,
        F: Fn(Row<'_>) -> Option<T> + Send + Sync + 'static,
    {
        let txns = self.same_state(parallel.threads)?;
        let parts = match txns.first() {
            Some(txn) => parallel.parts(txn, table, scan)?,
            None => Vec::new(),
        };
        let queue = Queue::new(parts.len(), parallel.threads, parallel.is_ordered);
        let rows = ParallelRows { queue: Arc::new(queue) };
        let (parts, map) = (Arc::new(parts), Arc::new(map));
        for txn in txns {
            let queue = Arc::clone(&rows.queue);
            let (parts, map) = (Arc::clone(&parts), Arc::clone(&map));
            let (shared, table) = (Arc::clone(&self.0), table.clone());
            let txns: SharedTxns = Arc::new([Arc::new(Mutex::new(txn))]);
            let work = move || {
                let _left = queue.worker();
                while let Some(part) = queue.take() {
                    let scan = parts[part].clone();
                    let batches = Batches::within(
                        Arc::clone(&txns),
                        Arc::clone(&shared),
                        table.clone(),
                        scan,
                    );
                    if !read_part(&queue, part, batches, &*map) {
                        break;
                    }
                }
            };
            rows.queue.expect_worker();
            let thread = thread::Builder::new().name("nuthatch-scan".to_owned()).spawn(work);
            if let Err(error) = thread {
                rows.queue.cancel();
                return Err(Error::io(self.path(), "start a thread", error));
            }
        }
        Ok(rows)
    }

    /// Scans with several threads, all on one state of the store, and folds the rows of each part:
    /// `first` returns the initial value of a part, and `step` adds a row to it. Returns the values
    /// of the parts, in the order of the scan.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] if the scan has a limit, [`Error::Corrupt`] if a page is damaged, and
    /// errors of read transactions: see [`read`](Self::read).
    ///
    /// # Panics
    ///
    /// Panics if `first` or `step` panics, or a thread cannot be started.
    pub fn fold_parallel<A, F, G>(
        &self,
        table: &Table,
        scan: &Scan,
        parallel: &Parallel,
        first: F,
        step: G,
    ) -> Result<Vec<A>>
    where
        A: Send,
        F: Fn() -> A + Sync,
        G: Fn(&mut A, Row<'_>) + Sync,
    {
        let txns = self.same_state(parallel.threads)?;
        let parts = match txns.first() {
            Some(txn) => parallel.parts(txn, table, scan)?,
            None => Vec::new(),
        };
        let next = AtomicUsize::new(0);
        let folded: Mutex<Vec<(usize, Result<A>)>> = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for txn in txns {
                let (parts, next, folded, first, step) = (&parts, &next, &folded, &first, &step);
                scope.spawn(move || {
                    loop {
                        let part = next.fetch_add(1, Ordering::Relaxed);
                        let Some(scan) = parts.get(part) else { break };
                        let all = fold_part(&txn, table, scan, first(), step);
                        let has_failed = all.is_err();
                        let mut folded = folded.lock().unwrap_or_else(PoisonError::into_inner);
                        folded.push((part, all));
                        if has_failed {
                            next.store(parts.len(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let mut folded = folded.into_inner().unwrap_or_else(PoisonError::into_inner);
        folded.sort_by_key(|(part, _)| *part);
        folded.into_iter().map(|(_, all)| all).collect()
    }

    /// Returns the parts of a parallel scan, in order, for threads of the caller. Each part is read
    /// by one thread at a time, and all parts see the same state of the store.
    ///
    /// The parts share as many transactions as there are threads. Each batch is read in a
    /// transaction that no other part is using, so that many threads do not wait for each other.
    /// The transactions end when the last part has been read or dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] if the scan has a limit, and errors of read transactions: see
    /// [`read`](Self::read).
    pub fn parallel_batches(
        &self,
        table: &Table,
        scan: &Scan,
        parallel: &Parallel,
    ) -> Result<Vec<Batches>> {
        let txns = self.same_state(parallel.threads)?;
        let parts = match txns.first() {
            Some(txn) => parallel.parts(txn, table, scan)?,
            None => Vec::new(),
        };
        let txns: SharedTxns = txns.into_iter().map(|txn| Arc::new(Mutex::new(txn))).collect();
        let part =
            |scan| Batches::within(Arc::clone(&txns), Arc::clone(&self.0), table.clone(), scan);
        Ok(parts.into_iter().map(part).collect())
    }

    /// Begins `count` transactions that see the same state.
    pub(crate) fn same_state(&self, count: usize) -> Result<Vec<ReadTxn<'static>>> {
        for _ in 0..MAX_ATTEMPTS {
            let txns = (0..count).map(|_| self.read_owned()).collect::<Result<Vec<_>>>()?;
            if txns.windows(2).all(|two| two[0].id() == two[1].id()) {
                return Ok(txns);
            }
        }
        // While this has the write lock, no process can commit.
        let writing = Shared::write_lock(&self.0)?;
        let txns = (0..count).map(|_| self.read_owned()).collect::<Result<Vec<_>>>()?;
        drop(writing);
        Ok(txns)
    }
}

/// Reads a part. Returns whether to continue with the next part.
fn read_part<T: Send>(
    queue: &Queue<T>,
    part: usize,
    batches: Batches,
    map: &impl Fn(Row<'_>) -> Option<T>,
) -> bool {
    for batch in batches {
        let has_failed = batch.is_err();
        let mapped = batch.map(|batch| batch.iter().filter_map(map).collect::<Vec<_>>());
        let is_empty = mapped.as_ref().is_ok_and(Vec::is_empty);
        if !is_empty && !queue.put(part, mapped) || has_failed {
            return false;
        }
    }
    queue.finish(part);
    true
}

fn fold_part<A>(
    txn: &ReadTxn<'_>,
    table: &Table,
    scan: &Scan,
    mut all: A,
    step: &impl Fn(&mut A, Row<'_>),
) -> Result<A> {
    txn.scan(table, scan)?.visit(|key, value| {
        step(&mut all, (key, value));
        true
    })?;
    Ok(all)
}

/// An iterator over the results of a parallel scan, in batches. Dropping it ends the scan: threads
/// stop after the batch that they are reading.
pub struct ParallelRows<T> {
    queue: Arc<Queue<T>>,
}

impl<T> Iterator for ParallelRows<T> {
    type Item = Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.queue.next()
    }
}

impl<T> Drop for ParallelRows<T> {
    fn drop(&mut self) {
        self.queue.cancel();
    }
}

impl<T> fmt::Debug for ParallelRows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelRows").finish_non_exhaustive()
    }
}
