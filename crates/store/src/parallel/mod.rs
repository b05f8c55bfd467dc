//! Scans by several threads at once, all on one state of the store.

mod queue;
mod split;

use crate::batch::{Batches, SharedTxns};
use crate::error::{Error, Result};
use crate::range::Range;
use crate::read::{Read, ReadTxn};
use crate::rows::Row;
use crate::scan::Scan;
use crate::store::{Shared, Store};
use crate::table::Table;
use queue::Queue;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Parts for each thread: so that one with more rows than others keeps no thread waiting for long.
const PARTS_EACH: usize = 16;
/// How often all transactions are begun anew, because another process committed in between.
const TRIES: usize = 64;

/// How a scan is shared out among threads.
#[derive(Clone, Debug)]
pub struct Parallel {
    threads: usize,
    ordered: bool,
    ranges: Option<Vec<Range>>,
}

impl Parallel {
    /// So many threads, from 1 to 256, each of which takes part after part of the range. The parts
    /// are cut where pages of the table begin, so they have about as many bytes each.
    pub fn split(threads: usize) -> Self {
        Self { threads: threads.clamp(1, 256), ordered: false, ranges: None }
    }

    /// These parts, of each of which the scan reads what is in its own range as well.
    #[must_use]
    pub fn ranges(mut self, ranges: Vec<Range>) -> Self {
        self.ranges = Some(ranges);
        self
    }

    /// Batches come in the order of the scan. Without this they come as they are read, which needs
    /// less memory.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// The scans of the parts, in the order of the whole.
    fn parts(&self, txn: &ReadTxn<'_>, table: &Table, scan: &Scan) -> Result<Vec<Scan>> {
        if scan.limit != u64::MAX {
            let (expected, found) = ("no limit in a parallel scan".to_owned(), scan.limit);
            return Err(Error::Options { option: "limit", expected, found: found.to_string() });
        }
        let mut ranges = match &self.ranges {
            Some(ranges) => ranges.iter().map(|range| range.and(&scan.range)).collect(),
            None => split::split(txn.view(), table, &scan.range, self.threads * PARTS_EACH)?,
        };
        if scan.reverse {
            ranges.reverse();
        }
        Ok(ranges.into_iter().map(|range| Scan { range, ..scan.clone() }).collect())
    }
}

impl Store {
    /// Scans with several threads, each in a transaction of its own, all of which see the same
    /// state of the store. A closure makes something of each row where it lies, or of some.
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
        let queue = Queue::new(parts.len(), parallel.threads, parallel.ordered);
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
                rows.queue.give_up();
                return Err(Error::io(self.path(), "start a thread", error));
            }
        }
        Ok(rows)
    }

    /// Scans with several threads, all on one state of the store, and folds the rows of each part:
    /// from `first`, by `step`. Answers what became of the parts, in the order of the scan.
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
                        let failed = all.is_err();
                        let mut folded = folded.lock().unwrap_or_else(PoisonError::into_inner);
                        folded.push((part, all));
                        if failed {
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

    /// The parts of a parallel scan, in the order of the whole, for threads of the caller: each
    /// is read by one of them at a time. All see the same state of the store. They share as many
    /// transactions as there are threads, and each batch is read in one that no other part is being
    /// read in, so that many threads do not wait for one another. The transactions end when the
    /// last part has been read or dropped.
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

    /// So many transactions that see the same state.
    pub(crate) fn same_state(&self, count: usize) -> Result<Vec<ReadTxn<'static>>> {
        for _ in 0..TRIES {
            let txns = (0..count).map(|_| self.snapshot()).collect::<Result<Vec<_>>>()?;
            if txns.windows(2).all(|two| two[0].id() == two[1].id()) {
                return Ok(txns);
            }
        }
        // While this waits its turn to write, and has it, nobody commits.
        let writing = Shared::write_lock(&self.0)?;
        let txns = (0..count).map(|_| self.snapshot()).collect::<Result<Vec<_>>>()?;
        drop(writing);
        Ok(txns)
    }
}

/// Reads a part, and tells whether anybody wants more.
fn read_part<T: Send>(
    queue: &Queue<T>,
    part: usize,
    batches: Batches,
    map: &impl Fn(Row<'_>) -> Option<T>,
) -> bool {
    for batch in batches {
        let failed = batch.is_err();
        let mapped = batch.map(|batch| batch.iter().filter_map(map).collect::<Vec<_>>());
        let empty = mapped.as_ref().is_ok_and(Vec::is_empty);
        if !empty && !queue.put(part, mapped) || failed {
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

/// What a parallel scan makes of the rows, by the batch. Dropping it ends the scan.
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
        self.queue.give_up();
    }
}

impl<T> fmt::Debug for ParallelRows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelRows").finish_non_exhaustive()
    }
}
