//! What compression saves, for `INFO` and metrics.

use nuthatch_compress::DictionaryStats;
use std::sync::atomic::{AtomicU64, Ordering};

/// Values that were encoded, and their bytes.
#[derive(Debug, Default)]
pub(super) struct Totals {
    values: AtomicU64,
    raw_bytes: AtomicU64,
    encoded_bytes: AtomicU64,
}

impl Totals {
    #[inline]
    pub(super) fn add(&self, raw_bytes: usize, encoded_bytes: usize) {
        self.values.fetch_add(1, Ordering::Relaxed);
        self.raw_bytes.fetch_add(raw_bytes as u64, Ordering::Relaxed);
        self.encoded_bytes.fetch_add(encoded_bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn saved(&self) -> Saved {
        Saved {
            values: self.values.load(Ordering::Relaxed),
            raw_bytes: self.raw_bytes.load(Ordering::Relaxed),
            encoded_bytes: self.encoded_bytes.load(Ordering::Relaxed),
        }
    }
}

/// Values that were encoded since the server started, whether or not they still exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    /// The number of values.
    pub(crate) values: u64,
    /// Their raw length in bytes.
    pub(crate) raw_bytes: u64,
    /// Their stored length in bytes.
    pub(crate) encoded_bytes: u64,
}

impl Saved {
    /// Returns how many times shorter the values are than they came; 1 without values.
    pub(crate) fn ratio(&self) -> f64 {
        if self.encoded_bytes == 0 {
            1.0
        } else {
            self.raw_bytes as f64 / self.encoded_bytes as f64
        }
    }
}

/// The statistics of a dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedByDictionary {
    /// The id of the dictionary; 0 for values that were compressed without one.
    pub(crate) id: u32,
    /// What it has saved so far.
    pub(crate) saved: Saved,
    /// The memory of the dictionary in bytes.
    pub(crate) memory_bytes: u64,
    /// The names of the groups whose new values are compressed with it.
    pub(crate) groups: Vec<Vec<u8>>,
}

impl From<DictionaryStats> for SavedByDictionary {
    fn from(stats: DictionaryStats) -> Self {
        let saved = Saved {
            values: stats.compressed_values,
            raw_bytes: stats.compressed_raw_bytes,
            encoded_bytes: stats.compressed_encoded_bytes,
        };
        let (id, memory_bytes) = (stats.id.get(), stats.memory_bytes as u64);
        Self { id, saved, memory_bytes, groups: stats.groups }
    }
}
