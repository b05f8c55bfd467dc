//! Schedules scans of segments for expired items.

use crate::memory::meta::{SEALED, Segment};
use crate::memory::segments::{Segments, Shared};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

/// Milliseconds after its expiry at which an item is overdue for removal.
pub(crate) const OVERDUE_MS: u64 = 1000;

/// Minimum number of entries for a purge. After a purge, the next one happens when
/// there are twice as many entries as it left.
const MIN_PURGE_LEN: usize = 64;

impl Segments {
    /// Schedules scans of a sealed segment at the times in its state.
    pub(crate) fn schedule_scan(&self, shared: &mut Shared, segment: Segment) {
        let meta = &self.metas[segment.number as usize];
        let due_ms = meta.worthwhile_ms.load(Ordering::Relaxed);
        let first_ms = meta.first_expires_ms.load(Ordering::Relaxed);
        if first_ms != u64::MAX {
            let overdue_ms = first_ms.saturating_add(OVERDUE_MS);
            shared.expiring.worthwhile.push(Reverse((due_ms, segment)));
            shared.expiring.overdue.push(Reverse((overdue_ms, segment)));
        }
        self.has_expiring.store(shared.expiring.len() > 0, Ordering::Relaxed);
    }

    /// Takes a sealed segment for which a scan is worthwhile, or is overdue if `overdue` is set.
    /// The flag returned says whether it is worthwhile. No other session gets the segment before
    /// [`end_scan`](Self::end_scan).
    pub(crate) fn take_to_scan(&self, now_ms: u64, overdue: bool) -> Option<(Segment, bool)> {
        let mut shared = self.lock();
        let found = self.pop_valid(&mut shared.expiring.worthwhile, now_ms, |meta| {
            meta.worthwhile_ms.load(Ordering::Relaxed)
        });
        let found = match found {
            Some(segment) => Some((segment, true)),
            None if overdue => self
                .pop_valid(&mut shared.expiring.overdue, now_ms, |meta| {
                    meta.first_expires_ms.load(Ordering::Relaxed).saturating_add(OVERDUE_MS)
                })
                .map(|segment| (segment, false)),
            None => None,
        };
        if let Some((segment, _)) = found {
            // Makes the segment's other entry invalid.
            let meta = &self.metas[segment.number as usize];
            meta.worthwhile_ms.store(u64::MAX, Ordering::Relaxed);
            meta.first_expires_ms.store(u64::MAX, Ordering::Relaxed);
        }
        self.has_expiring.store(shared.expiring.len() > 0, Ordering::Relaxed);
        found
    }

    /// Pops entries up to the first valid one whose time has come.
    fn pop_valid(
        &self,
        heap: &mut BinaryHeap<Reverse<(u64, Segment)>>,
        now_ms: u64,
        time: impl Fn(&crate::memory::meta::Meta) -> u64,
    ) -> Option<Segment> {
        while let Some(Reverse((at_ms, segment))) = heap.peek().copied() {
            let is_valid = self.is_current(segment)
                && time(&self.metas[segment.number as usize]) == at_ms
                && at_ms != u64::MAX;
            if is_valid && at_ms > now_ms {
                return None;
            }
            heap.pop();
            if is_valid {
                return Some(segment);
            }
        }
        None
    }

    /// Ends a scan. The earliest expiry of the remaining items is `first_ms`, and the next scan is
    /// worthwhile from `worthwhile_ms` on.
    pub(crate) fn end_scan(&self, segment: Segment, first_ms: u64, worthwhile_ms: u64) {
        let mut shared = self.lock();
        if !self.is_current(segment) {
            return;
        }
        let meta = &self.metas[segment.number as usize];
        // Items written meanwhile may expire earlier.
        meta.first_expires_ms.fetch_min(first_ms, Ordering::Relaxed);
        if meta.live.load(Ordering::Relaxed) & SEALED != 0 {
            meta.worthwhile_ms.fetch_min(worthwhile_ms, Ordering::Relaxed);
            self.schedule_scan(&mut shared, segment);
        }
    }

    /// Removes outdated entries from the expiry queue once there are many.
    pub(super) fn purge(&self, shared: &mut Shared) {
        if shared.expiring.len() > shared.purge_at.max(MIN_PURGE_LEN) {
            self.purge_expiring(shared);
            shared.purge_at = 2 * shared.expiring.len();
        }
    }

    /// Removes the outdated entries of the expiry queue.
    pub(crate) fn purge_expiring(&self, shared: &mut Shared) {
        shared.expiring.worthwhile.retain(|Reverse((_, segment))| self.is_current(*segment));
        shared.expiring.overdue.retain(|Reverse((_, segment))| self.is_current(*segment));
    }
}
