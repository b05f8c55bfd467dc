//! Big keys: the longest items in memory, found by a scan in small steps.
//!
//! Each report continues the scan of the index by a bounded number of items, on the thread of the
//! caller. So there is no work while nothing reads reports, and the longest items are known once a
//! scan was completed.

use nuthatch_cache::Cache;
use std::sync::{Mutex, PoisonError};

/// Items that are examined for a report, and under one epoch guard.
const ITEMS_PER_REPORT: usize = 20_000;
const ITEMS_PER_GUARD: usize = 500;

/// Keys that are kept.
const MAX_KEPT: usize = 20;

/// Maximum bytes of a key that are kept.
const MAX_KEPT_LEN: usize = 256;

/// A long item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BigKey {
    /// The first bytes of its key.
    pub(crate) key: Vec<u8>,
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
            let report = &mut self.report;
            self.cursor = guard.scan_in_memory(self.cursor, ITEMS_PER_GUARD, |item| {
                report.examined += 1;
                let bytes = (item.key().len() + item.value().len()) as u64;
                report.note(item.key(), bytes, item.is_compressed());
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
    fn note(&mut self, key: &[u8], bytes: u64, is_compressed: bool) {
        let is_full = self.keys.len() == MAX_KEPT;
        if is_full && self.keys.last().is_some_and(|last| bytes < last.bytes) {
            return;
        }
        let key = &key[..key.len().min(MAX_KEPT_LEN)];
        self.keys.retain(|one| one.key != key);
        let at = self.keys.partition_point(|one| one.bytes >= bytes);
        let scan = self.scans;
        self.keys.insert(at, BigKey { key: key.to_vec(), bytes, is_compressed, scan });
        self.keys.truncate(MAX_KEPT);
    }
}

impl BigKeys {
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
        let names: Vec<_> = report.keys.iter().take(2).map(|one| &one.key[..]).collect();
        assert_eq!(names, [b"long29", b"long28"]);
        assert_eq!(report.keys[0].bytes, 1029 + 6);
        store(&cache, "long29", 1);
        let report = scanned(2).expect("another scan");
        assert_eq!(report.keys[0].key, b"long28");
    }

    #[test]
    fn an_empty_cache_has_no_big_keys() {
        assert_eq!(BigKeys::default().report(&cache()).keys, []);
    }
}
