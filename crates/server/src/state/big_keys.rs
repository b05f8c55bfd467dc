//! Big keys: the longest items in memory, found by a scan in small steps.
//!
//! Each report continues the scan of the index by a bounded number of items, on the thread of the
//! caller. So there is no work while nothing reads reports, and the longest items are known once a
//! scan was completed.

use super::kept_key::KeptKey;
use nuthatch_cache::Cache;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// Items that are examined for a report, and under one epoch guard.
const ITEMS_PER_REPORT: usize = 20_000;
const ITEMS_PER_GUARD: usize = 500;

/// Keys that are kept.
const MAX_KEPT: usize = 20;

/// A long item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BigKey {
    /// Its key.
    pub(crate) key: KeptKey,
    /// Bytes of its key and its value in memory.
    pub(crate) bytes: u64,
    /// Whether the value is compressed.
    pub(crate) is_compressed: bool,
    /// The number of the scan that has found it.
    scan: u64,
}

/// The longest items, the longest one first.
#[derive(Clone, Debug, Default)]
pub(crate) struct BigKeyReport {
    pub(crate) keys: Vec<BigKey>,
    /// Items that the current scan has examined.
    pub(crate) examined: u64,
    /// Complete scans.
    pub(crate) scans: u64,
}

/// The state of the scan.
#[derive(Debug, Default)]
pub(crate) struct BigKeys(Mutex<Scan>);

#[derive(Debug, Default)]
struct Scan {
    cursor: u64,
    hasher: RandomState,
    report: BigKeyReport,
}

impl Scan {
    /// Continues the scan.
    fn step(&mut self, cache: &Cache) {
        // Without a session the report stays as it is.
        let Ok(mut session) = cache.session() else { return };
        let mut left = ITEMS_PER_REPORT;
        while left > 0 {
            let guard = session.guard_without_freeing();
            let (report, hasher) = (&mut self.report, &self.hasher);
            self.cursor = guard.scan_in_memory(self.cursor, ITEMS_PER_GUARD, |item| {
                report.examined += 1;
                let bytes = (item.key().len() + item.value().len()) as u64;
                let hash = || hasher.hash_one(item.key());
                report.note((item.key(), &hash), bytes, item.is_compressed());
            });
            left -= ITEMS_PER_GUARD;
            if self.cursor == 0 {
                // Items that this scan did not find were removed, or are shorter now.
                let scans = report.scans;
                report.keys.retain(|one| one.scan == scans);
                (report.scans, report.examined) = (scans + 1, 0);
                return;
            }
        }
    }
}

impl BigKeyReport {
    /// Adds a key with its hash, if it is one of the longest items.
    fn note(&mut self, (key, hash): (&[u8], &dyn Fn() -> u64), bytes: u64, is_compressed: bool) {
        let is_full = self.keys.len() == MAX_KEPT;
        if is_full && self.keys.last().is_some_and(|last| bytes < last.bytes) {
            return;
        }
        let key = KeptKey::new(key, hash());
        self.keys.retain(|one| one.key != key);
        let at = self.keys.partition_point(|one| one.bytes >= bytes);
        let scan = self.scans;
        self.keys.insert(at, BigKey { key, bytes, is_compressed, scan });
        self.keys.truncate(MAX_KEPT);
    }
}

impl BigKeys {
    /// Creates a scan that did not begin. The hasher tells long keys apart.
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self(Mutex::new(Scan { hasher, ..Scan::default() }))
    }

    /// Continues the scan for the longest items, and returns those that it has found.
    pub(crate) fn report(&self, cache: &Cache) -> BigKeyReport {
        let mut scan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        scan.step(cache);
        scan.report.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_cache::{Options, Write};

    fn cache() -> Cache {
        Cache::new(Options::new().memory(64 << 20)).expect("a small cache")
    }

    fn store(cache: &Cache, key: &str, len: usize) {
        let mut session = cache.session().expect("a session");
        let value = vec![b'x'; len];
        let _ = session.guard().set(key.as_bytes(), &value, &Write::default()).expect("room");
    }

    #[test]
    fn the_longest_items_are_found_and_short_ones_are_forgotten() {
        let (cache, big_keys) = (cache(), BigKeys::default());
        for number in 0..30_000 {
            store(&cache, &format!("k{number}"), 10);
        }
        for number in 0..30 {
            store(&cache, &format!("long{number}"), 1000 + number);
        }
        let scanned =
            |scans| (0..1000).map(|_| big_keys.report(&cache)).find(|report| report.scans == scans);
        let report = scanned(1).expect("a complete scan");
        assert_eq!(report.keys.len(), MAX_KEPT);
        let names: Vec<_> = report.keys.iter().take(2).map(|one| &one.key.start[..]).collect();
        assert_eq!(names, [b"long29", b"long28"]);
        assert_eq!(report.keys[0].bytes, 1029 + 6);
        store(&cache, "long29", 1);
        let report = scanned(2).expect("another scan");
        assert_eq!(report.keys[0].key.start, b"long28");
    }

    #[test]
    fn long_keys_with_the_same_start_are_told_apart() {
        let (cache, big_keys) = (cache(), BigKeys::default());
        let start = "k".repeat(300);
        store(&cache, &format!("{start}1"), 1000);
        store(&cache, &format!("{start}22"), 2000);
        let report = big_keys.report(&cache);
        let lens: Vec<_> = report.keys.iter().map(|one| (one.key.len, one.bytes)).collect();
        assert_eq!(lens, [(302, 2302), (301, 1301)]);
    }

    #[test]
    fn an_empty_cache_has_no_big_keys() {
        assert_eq!(BigKeys::default().report(&cache()).keys, []);
    }
}
