//! What was moved to and from other nodes.

use nuthatch_cluster::slot::SlotSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of transfers since the start.
#[derive(Debug, Default)]
pub(super) struct MoveCounters {
    slots: AtomicU64,
    items: AtomicU64,
    bytes: AtomicU64,
    finished: AtomicU64,
    failed: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
    left_out: AtomicU64,
    items_before: AtomicU64,
}

/// What was moved since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MoveProgress {
    /// Slots whose items are being sent now.
    pub(crate) moving_slots: u64,
    /// Items that were sent. One that was changed meanwhile counts again.
    pub(crate) sent_items: u64,
    /// Bytes that were sent.
    pub(crate) sent_bytes: u64,
    /// Transfers that ended with all items at the target.
    pub(crate) finished: u64,
    /// Transfers that failed.
    pub(crate) failed: u64,
    /// Items that were received.
    pub(crate) received_items: u64,
    /// Bytes that were received.
    pub(crate) received_bytes: u64,
    /// Items that were not moved: they are too long for the target, or have no valid value.
    pub(crate) left_out: u64,
}

impl MoveCounters {
    pub(super) fn begin(&self, slots: &SlotSet) {
        self.slots.store(slots.len() as u64, Ordering::Relaxed);
        self.items_before.store(self.items.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Ends a transfer. Returns the items that it has sent.
    pub(super) fn end(&self, is_finished: bool) -> u64 {
        let ended = if is_finished { &self.finished } else { &self.failed };
        ended.fetch_add(1, Ordering::Relaxed);
        self.slots.store(0, Ordering::Relaxed);
        self.items.load(Ordering::Relaxed) - self.items_before.load(Ordering::Relaxed)
    }

    pub(super) fn add_sent(&self, items: u64, bytes: usize) {
        self.items.fetch_add(items, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn add_left_out(&self, items: u64) {
        self.left_out.fetch_add(items, Ordering::Relaxed);
    }

    pub(super) fn add_received(&self, items: u64, left_out: u64, bytes: usize) {
        self.received.fetch_add(items, Ordering::Relaxed);
        self.add_left_out(left_out);
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn progress(&self) -> MoveProgress {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MoveProgress {
            moving_slots: read(&self.slots),
            sent_items: read(&self.items),
            sent_bytes: read(&self.bytes),
            finished: read(&self.finished),
            failed: read(&self.failed),
            received_items: read(&self.received),
            received_bytes: read(&self.received_bytes),
            left_out: read(&self.left_out),
        }
    }
}
