//! Scans for expired items.

use crate::hash::KeyHash;
use crate::memory::meta::Segment;
use crate::memory::scans::OVERDUE_MS;
use crate::session::expiry_scan::ExpiryScan;
use crate::session::state::{Open, Turn};
use crate::session::victim::Victim;
use std::sync::atomic::Ordering;

/// A scan is worthwhile once one of this many bytes of the segment has expired.
const WORTHWHILE_RATIO: u64 = 8;

/// Number of expired items that are looked up in the index as a group.
const GROUP_LEN: usize = 16;

impl Turn<'_> {
    /// Runs some of the worthwhile scans. Returns the number of bytes that were examined, or `None`
    /// if no scan is worthwhile.
    pub(crate) fn scan_expired(&self, open: &mut Open, max_items: usize) -> Option<u64> {
        let scan = self.next_scan(open, false)?;
        Some(self.examine(open, scan, max_items).1)
    }

    /// Returns the scan to go on with.
    pub(super) fn next_scan(&self, open: &mut Open, overdue: bool) -> Option<Box<ExpiryScan>> {
        let segments = &self.cache().segments;
        // The segment may have been reclaimed since an earlier step.
        if let Some(kept) = open.expiry.take().filter(|kept| segments.lives(kept.segment)) {
            return Some(kept);
        }
        if let Some((segment, is_worthwhile)) = segments.take_to_scan(self.now_ms(), overdue) {
            return Some(ExpiryScan::new(segment, segments.items(segment), is_worthwhile));
        }
        if !overdue {
            return None;
        }
        let is_overdue = |segment: Segment| {
            let first_ms = segments.first_expires_ms(segment.number);
            first_ms.saturating_add(OVERDUE_MS) <= self.now_ms()
        };
        let mut tails = open.tails.iter().flatten().flatten();
        let (segment, tail) = tails.find(|(segment, _)| is_overdue(*segment))?;
        let meta = &segments.metas[segment.number as usize];
        meta.first_expires_ms.store(u64::MAX, Ordering::Relaxed);
        Some(ExpiryScan::new(*segment, tail.written(), false))
    }

    /// Examines up to so many items. Returns how many those were, and their bytes. A scan that is
    /// not at its end is kept in `open`.
    pub(super) fn examine(
        &self,
        open: &mut Open,
        mut scan: Box<ExpiryScan>,
        max_items: usize,
    ) -> (usize, u64) {
        let marks = self.marks(scan.segment.number);
        let (start, now_ms) = (scan.cursor.at(), self.now_ms());
        let mut examined = 0;
        while examined < max_items && !scan.cursor.is_at_end() {
            let mut group = [(0, KeyHash(0)); GROUP_LEN];
            let mut count = 0;
            while count < GROUP_LEN && examined < max_items {
                let Some((place, item, is_gone)) =
                    scan.cursor.next(|place| self.item(place, 0), marks)
                else {
                    break;
                };
                examined += 1;
                match item.expires_ms() {
                    None => {}
                    Some(_) if is_gone => {}
                    Some(at_ms) if at_ms > now_ms => {
                        scan.forecast.add(at_ms, item.head.len(), now_ms);
                    }
                    Some(_) => {
                        group[count] = (place, self.cache().hash(item.key()));
                        self.prefetch(group[count].1);
                        count += 1;
                    }
                }
            }
            for (place, hash) in &group[..count] {
                if self.take_out(*hash, *place, self.item(*place, 0)) {
                    self.session.counters.expired.add(1);
                }
            }
        }
        let bytes = scan.cursor.at() - start;
        if scan.cursor.is_at_end() {
            self.end_scan(open, &scan);
        } else {
            open.expiry = Some(scan);
        }
        (examined, bytes)
    }

    fn end_scan(&self, open: &mut Open, scan: &ExpiryScan) {
        let segments = &self.cache().segments;
        let worthwhile_ms = scan.forecast.worthwhile_ms(scan.len / WORTHWHILE_RATIO);
        segments.end_scan(scan.segment, scan.forecast.first_ms, worthwhile_ms);
        if open.victim.is_none() && segments.should_empty(scan.segment) {
            open.victim = Some(Victim::of_expired(self.cache(), scan.segment));
        }
    }
}
