//! Counters that one thread writes and all may read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread writes and others read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the counter. Only one thread may call it.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        // There is one writer, so no atomic read-modify-write instruction is needed.
        self.set(self.get().wrapping_add(count));
    }

    /// Sets the counter. Only one thread may call it.
    #[inline]
    pub(crate) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    /// Returns the counter.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
