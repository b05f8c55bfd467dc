//! The progress of restoring.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress of restoring the items of the last run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreProgress {
    /// Whether items are being restored.
    pub is_running: bool,
    /// The number of items in the dump, without those of files whose header is damaged.
    pub items: u64,
    /// The number of items that were restored.
    pub restored: u64,
    /// The number of these items that were not: they have expired, clients changed their keys
    /// meanwhile, their records are damaged, they did not fit into the memory, or the server
    /// stopped before.
    pub skipped: u64,
}

/// The counters of a restore. Only its thread writes them.
pub(super) struct Counters {
    items: u64,
    pub(super) restored: AtomicU64,
    pub(super) skipped: AtomicU64,
    is_running: AtomicBool,
}

impl Counters {
    /// Creates the counters for a dump with this many items.
    pub(super) fn new(items: u64) -> Self {
        Self {
            items,
            restored: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            is_running: AtomicBool::new(false),
        }
    }

    /// Begins to restore. Returns `false` if the dump has no items.
    pub(super) fn begin(&self) -> bool {
        self.is_running.store(self.items > 0, Ordering::Relaxed);
        self.items > 0
    }

    /// Ends restoring. Items that were not examined count as skipped.
    pub(super) fn end(&self) {
        let restored = self.restored.load(Ordering::Relaxed);
        self.skipped.store(self.items.saturating_sub(restored), Ordering::Relaxed);
        self.is_running.store(false, Ordering::Release);
    }

    pub(super) fn progress(&self) -> RestoreProgress {
        RestoreProgress {
            is_running: self.is_running.load(Ordering::Acquire),
            items: self.items,
            restored: self.restored.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
        }
    }
}
