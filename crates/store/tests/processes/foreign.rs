//! Another process writes while this one scans: each scan sees one state, and the pages that it
//! reads are not reused before it ends.

use crate::Place;
use crate::child::Other;
use nuthatch_store::{Durability, Options, Parallel, Read, Scan, Store, Table, WriteTxn};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: u64 = 1_000_000;
/// Rows that always have the same generation.
const BLOCK: u64 = 500;
/// Number of blocks that a transaction rewrites.
const BLOCKS_AT_ONCE: u64 = 40;
/// Minimum number of commits of the other process during the scans.
const COMMITS: u64 = 60;
/// Minimum number of pages reused during scans: about the size of the store.
const REUSED_PAGES: u64 = 20_000;
const PAGE: u64 = 4096;
/// Pages that a commit of the other process writes at least: a row has 38 bytes or more (its
/// offset, a header, its key, the shortest value), and a page has 4080 for rows.
const MIN_PAGES_OF_COMMIT: u64 = BLOCKS_AT_ONCE * BLOCK * 38 / 4080;

fn key(n: u64) -> Vec<u8> {
    format!("row-{n:08}").into_bytes()
}

/// Rows of different generations have different lengths, so that pages are split and merged.
fn value(n: u64, generation: u64) -> Vec<u8> {
    let mut value = vec![generation as u8; 16 + (generation % 11 * 7) as usize];
    value[..8].copy_from_slice(&generation.to_le_bytes());
    value[8..16].copy_from_slice(&(n ^ generation).to_le_bytes());
    value
}

fn put_block(
    txn: &mut WriteTxn<'_>,
    table: &Table,
    block: u64,
    generation: u64,
) -> nuthatch_store::Result<()> {
    let rows = block * BLOCK..(block + 1) * BLOCK;
    rows.into_iter().try_for_each(|n| txn.put(table, &key(n), &value(n, generation)))
}

/// The role of the other process: rewrites blocks until the test stops it.
pub(crate) fn rewrite_blocks(path: &Path, pause: impl FnOnce() + Send, say: impl Fn(u64)) {
    let store = Store::open(path, &Options::new().durability(Durability::None)).expect("a store");
    let table = store.table("rows").expect("a table");
    let (is_ended, mut commits) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pause();
            is_ended.store(true, Ordering::Relaxed);
        });
        while !is_ended.load(Ordering::Relaxed) {
            commits += 1;
            let write = store.update(|txn| {
                (0..BLOCKS_AT_ONCE).try_for_each(|n| {
                    let block = (commits * 7919 + n * 104_729) % (ROWS / BLOCK);
                    put_block(txn, &table, block, commits)
                })
            });
            write.expect("a commit");
        }
    });
    say(commits);
}

/// Checks the rows of one state, in order.
#[derive(Default)]
struct Checked {
    rows: u64,
    generation: u64,
}

impl Checked {
    fn add(&mut self, found: &[u8], bytes: &[u8]) {
        let n = self.rows;
        assert_eq!(found, key(n), "row {n}");
        let generation = u64::from_le_bytes(*bytes.first_chunk().expect("a generation"));
        assert_eq!(bytes, value(n, generation), "row {n}");
        if n.is_multiple_of(BLOCK) {
            self.generation = generation;
        }
        assert_eq!(generation, self.generation, "row {n} is of another state than its block");
        self.rows += 1;
    }
}

/// Counts the pages that commits of the other process reused during a scan: the written pages minus
/// the growth of the file.
struct Reuse<'s> {
    store: &'s Store,
    used_bytes: u64,
    transaction: u64,
}

impl<'s> Reuse<'s> {
    /// Called when the transaction of the scan has begun.
    fn begin(store: &'s Store) -> Self {
        // With this order here, and the opposite one at the end, a commit in between can only
        // reduce the count.
        let used_bytes = store.stat().expect("figures").used_bytes;
        let transaction = store.read().expect("a transaction").id();
        Self { store, used_bytes, transaction }
    }

    /// Returns the minimum number of reused pages. Called before the transaction ends.
    fn pages(&self) -> u64 {
        let commits = self.store.read().expect("a transaction").id() - self.transaction;
        let grown = self.store.stat().expect("figures").used_bytes - self.used_bytes;
        (commits * MIN_PAGES_OF_COMMIT).saturating_sub(grown / PAGE)
    }
}

#[test]
fn leaves_are_read_whole_while_another_process_uses_their_pages_again() {
    let place = Place::new();
    let options = Options::new().durability(Durability::None);
    let store = place.open(&options);
    let table = store.table("rows").expect("a table");
    store
        .update(|txn| (0..ROWS).try_for_each(|n| txn.append(&table, &key(n), &value(n, 0))))
        .expect("rows");
    let mut other = Other::start("rewrite blocks", &place.path());
    let begin = store.read().expect("a transaction").id();
    let most_bytes = store.stat().expect("figures").used_bytes * 30;
    let mut reused = 0;
    for round in 0.. {
        let txn = store.read().expect("a transaction");
        if txn.id() >= begin + COMMITS && round >= 4 && reused >= REUSED_PAGES {
            break;
        }
        let used = store.stat().expect("figures").used_bytes;
        assert!(used < most_bytes, "the file grows to {used} bytes: {reused} pages were reused");
        let reuse = Reuse::begin(&store);
        let mut checked = Checked::default();
        if round % 2 == 0 {
            let scan = txn.scan(&table, &Scan::all()).expect("a scan");
            scan.visit(|key, value| {
                checked.add(key, value);
                true
            })
            .expect("no error");
        } else {
            let mut rows: Vec<_> =
                txn.scan(&table, &Scan::all().reverse()).expect("a scan").collect();
            rows.reverse();
            for row in rows {
                let (key, value) = row.expect("a row");
                checked.add(key, value);
            }
        }
        assert_eq!(checked.rows, ROWS);
        reused += reuse.pages();
        drop(txn);
        let count = |all: &mut u64, _: (&[u8], &[u8])| *all += 1;
        let counts = store.fold_parallel(&table, &Scan::all(), &Parallel::split(2), || 0, count);
        assert_eq!(counts.expect("no error").iter().sum::<u64>(), ROWS);
    }
    other.nudge();
    let commits = other.hear_number().expect("the number of commits");
    other.wait();
    assert!(commits >= COMMITS, "{commits} commits");
}
