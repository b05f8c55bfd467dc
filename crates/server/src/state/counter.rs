//! A count that one thread writes and all may read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that one thread adds to and others read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds; only one thread may.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        // Nobody else writes, so that no locked instruction is needed.
        self.set(self.get().wrapping_add(count));
    }

    /// Replaces the count; only one thread may.
    #[inline]
    pub(crate) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// The count.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
