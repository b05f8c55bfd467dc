//! Running scans for expired items. See `expire_step.rs` for the whole procedure.

use crate::hash::KeyHash;
use crate::memory::meta::Segment;
use crate::memory::scans::OVERDUE_MS;
use crate::session::expiry_scan::ExpiryScan;
use crate::session::state::{Guard, WriteState};
use crate::session::victim::{Reason, Victim};
use std::sync::atomic::Ordering;

/// A scan is worthwhile once one of this many bytes of the segment has expired.
const WORTHWHILE_RATIO: u64 = 8;

/// A segment with at most this many live sixteenths is emptied after a scan.
const NEARLY_EMPTY_SIXTEENTHS: usize = 2;

/// Number of expired items that are looked up in the index as a group, after their lines were
/// prefetched.
const PREFETCH_GROUP: usize = 16;

impl Guard<'_> {
    /// Continues or starts a worthwhile scan and examines up to `max_items` items. Returns the
    /// number of bytes examined, or `None` if no scan is worthwhile.
    pub(crate) fn scan_expired(&self, state: &mut WriteState, max_items: usize) -> Option<u64> {
        let scan = self.next_scan(state, false)?;
        Some(self.examine(state, scan, max_items).1)
    }

    /// Returns the scan to continue, or else the next one that is due.
    pub(super) fn next_scan(
        &self,
        state: &mut WriteState,
        overdue: bool,
    ) -> Option<Box<ExpiryScan>> {
        let segments = &self.cache().segments;
        // The segment may have been reclaimed since an earlier step.
        if let Some(kept) =
            state.expiry_scan.take().filter(|kept| segments.is_current(kept.segment))
        {
            return Some(kept);
        }
        if let Some((segment, is_worthwhile)) = segments.take_to_scan(self.now_ms(), overdue) {
            return Some(ExpiryScan::new(segment, segments.item_range(segment), is_worthwhile));
        }
        if !overdue {
            return None;
        }
        let is_overdue = |segment: Segment| {
            let first_ms = segments.first_expires_ms(segment.number);
            first_ms.saturating_add(OVERDUE_MS) <= self.now_ms()
        };
        let mut tails = state.tails.iter().flatten().flatten();
        let (segment, tail) = tails.find(|(segment, _)| is_overdue(*segment))?;
        let meta = &segments.metas[segment.number as usize];
        meta.first_expires_ms.store(u64::MAX, Ordering::Relaxed);
        Some(ExpiryScan::new(*segment, tail.written(), false))
    }

    /// Examines up to `max_items` items and removes the expired ones. Returns the number of items
    /// and bytes examined. A scan that is not complete is kept in `state`.
    pub(super) fn examine(
        &self,
        state: &mut WriteState,
        mut scan: Box<ExpiryScan>,
        max_items: usize,
    ) -> (usize, u64) {
        let removed = self.removed_bits(scan.segment.number);
        let (start, now_ms) = (scan.cursor.at(), self.now_ms());
        let mut examined = 0;
        while examined < max_items && !scan.cursor.is_at_end() {
            let mut group = [(0, KeyHash(0)); PREFETCH_GROUP];
            let mut count = 0;
            while count < PREFETCH_GROUP && examined < max_items {
                let Some((address, item, is_removed)) =
                    scan.cursor.next(|address| self.item(address, 0), removed)
                else {
                    break;
                };
                examined += 1;
                match item.expires_ms() {
                    None => {}
                    Some(_) if is_removed => {}
                    Some(at_ms) if at_ms > now_ms => {
                        scan.forecast.add(at_ms, item.header.len(), now_ms);
                    }
                    Some(_) => {
                        group[count] = (address, self.cache().hash(item.key()));
                        self.prefetch_line(group[count].1);
                        count += 1;
                    }
                }
            }
            for (address, hash) in &group[..count] {
                if self.remove_at(*hash, *address, self.item(*address, 0)) {
                    self.session.counters.expired.add(1);
                }
            }
        }
        let bytes = scan.cursor.at() - start;
        if scan.cursor.is_at_end() {
            self.end_scan(state, &scan);
        } else {
            state.expiry_scan = Some(scan);
        }
        (examined, bytes)
    }

    /// Ends a scan: schedules the next one, and begins to empty a segment of which little is left.
    fn end_scan(&self, state: &mut WriteState, scan: &ExpiryScan) {
        let segments = &self.cache().segments;
        let worthwhile_ms = scan.forecast.worthwhile_ms(scan.len / WORTHWHILE_RATIO);
        segments.end_scan(scan.segment, scan.forecast.first_ms, worthwhile_ms);
        self.choose_nearly_empty(state);
    }

    /// Makes a segment the victim of which little is left, unless there is a victim.
    pub(super) fn choose_nearly_empty(&self, state: &mut WriteState) {
        if state.victim.is_none()
            && let Some((segment, queue)) =
                self.cache().segments.pop_emptiest(NEARLY_EMPTY_SIXTEENTHS)
        {
            state.victim = Some(Victim::new(self.cache(), segment, Reason::Sparse(queue)));
        }
    }
}
