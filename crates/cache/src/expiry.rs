//! Removal of expired items, in bounded steps.
//!
//! Every sealed segment with expiring items has two scheduled scan times. A scan is *worthwhile*
//! when an eighth of the segment's bytes will have expired, and *overdue* one second after its
//! first item expires. A scan removes the expired items from the index and computes both times
//! again for the remaining items. Writes that need memory run the worthwhile scans;
//! [`Turn::expire_step`] runs all due scans, and also scans the segments that its session still
//! writes.
//!
//! A segment of which no item remains is retired. One of which little remains is emptied: the rest
//! moves to another segment.

use crate::gone::{Marks, granule};
use crate::hash::KeyHash;
use crate::item::Item;
use crate::reclaim::Victim;
use crate::segments::{SEALED, Segment, Segments, Shared};
use crate::session::{Open, Session, Turn};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// A scan is worthwhile once one of this many bytes of the segment has expired.
const WORTHWHILE_RATIO: u64 = 8;

/// Milliseconds after its expiry at which an item is overdue for removal.
const OVERDUE_MS: u64 = 1000;

/// A segment is emptied when at most one of this many of its bytes is live after a scan.
const EMPTIED_RATIO: u32 = 8;

/// Number of expired items that are looked up in the index as a group.
const GROUP_LEN: usize = 16;

/// Maximum number of segments that one step scans: each costs a lock, however few items it holds.
const MAX_SEGMENTS_PER_STEP: usize = 16;

/// Bytes of the items that a step moves, for each item that it may examine.
const MOVED_BYTES_PER_ITEM: usize = 64;

/// Lengths of time up to 2^48 ms, by their logarithm.
const BUCKETS: usize = 49;

/// Segments by the times at which they should be scanned. An entry is valid while its time is that
/// of the segment's [`Meta`](crate::segments::Meta); the others are dropped when they are met.
#[derive(Default)]
pub(crate) struct ExpiryQueue {
    worthwhile: BinaryHeap<Reverse<(u64, Segment)>>,
    overdue: BinaryHeap<Reverse<(u64, Segment)>>,
}

impl ExpiryQueue {
    /// Number of entries, invalid ones included.
    pub(crate) fn len(&self) -> usize {
        self.worthwhile.len() + self.overdue.len()
    }
}

/// The items of a segment in the order of their addresses.
#[derive(Debug)]
pub(crate) struct Cursor {
    at: u64,
    end: u64,
    /// Where the item before this one began.
    granule: u64,
}

impl Cursor {
    pub(crate) fn new(items: Range<u64>) -> Self {
        Self { at: items.start, end: items.end, granule: 0 }
    }

    /// Returns the address of the next item.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.end
    }

    /// Returns the next item with its address, and whether it is known to be gone from the index.
    pub(crate) fn next<'t>(
        &mut self,
        guard: &'t Turn<'_>,
        marks: Option<Marks<'_>>,
    ) -> Option<(u64, Item<'t>, bool)> {
        if self.is_at_end() {
            return None;
        }
        let (place, item) = (self.at, guard.item(self.at, 0));
        self.at += item.head.len() as u64;
        // A mark stands for all items that begin in its granule.
        let alone = granule(place) != self.granule && granule(self.at) != granule(place);
        self.granule = granule(place);
        let is_gone = alone && marks.is_some_and(|marks| marks.has(place));
        Some((place, item, is_gone))
    }
}

/// When the items of a segment expire that remain after a scan.
#[derive(Debug)]
struct Forecast {
    /// Bytes of the items that expire in less than 2^n ms, but not in less than half of that; and
    /// when the first of them does.
    buckets: [(u64, u64); BUCKETS],
    first_ms: u64,
    last_ms: u64,
}

impl Forecast {
    fn new() -> Self {
        Self { buckets: [(0, u64::MAX); BUCKETS], first_ms: u64::MAX, last_ms: 0 }
    }

    /// Counts an item that expires later than `now_ms`.
    fn add(&mut self, expires_ms: u64, bytes: usize, now_ms: u64) {
        let bits = u64::BITS - (expires_ms - now_ms).leading_zeros();
        let (total, first_ms) = &mut self.buckets[(bits as usize).min(BUCKETS - 1)];
        *total += bytes as u64;
        *first_ms = (*first_ms).min(expires_ms);
        self.first_ms = self.first_ms.min(expires_ms);
        self.last_ms = self.last_ms.max(expires_ms);
    }

    /// Returns the time from which at least so many bytes have expired, roughly and not later; if
    /// there are fewer, the time at which all have.
    fn worthwhile_ms(&self, bytes: u64) -> u64 {
        let mut total = 0;
        let reached = self.buckets.iter().find(|(more, _)| {
            total += more;
            total >= bytes.max(1)
        });
        match reached {
            Some((_, first_ms)) => *first_ms,
            None if self.last_ms > 0 => self.last_ms,
            None => u64::MAX,
        }
    }
}

/// A scan of a segment for expired items, which may take several steps.
#[derive(Debug)]
pub(crate) struct ExpiryScan {
    segment: Segment,
    cursor: Cursor,
    /// Bytes of the segment's items.
    len: u64,
    is_worthwhile: bool,
    forecast: Forecast,
}

impl ExpiryScan {
    fn new(segment: Segment, items: Range<u64>, is_worthwhile: bool) -> Box<Self> {
        let len = items.end - items.start;
        let (cursor, forecast) = (Cursor::new(items), Forecast::new());
        Box::new(Self { segment, cursor, len, is_worthwhile, forecast })
    }

    /// Ends the scan before its segment's end: it is scanned anew, from the start.
    pub(crate) fn abandon(&self, segments: &Segments, now_ms: u64) {
        segments.end_scan(self.segment, now_ms, now_ms);
    }
}

impl Segments {
    /// Schedules scans of a sealed segment.
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

    /// Returns a sealed segment for which a scan is worthwhile, or is overdue if `overdue` is set;
    /// and whether it is worthwhile. No other session gets it before [`end_scan`](Self::end_scan).
    fn take_to_scan(&self, now_ms: u64, overdue: bool) -> Option<(Segment, bool)> {
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
            // The segment's other entry is invalid from here on.
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
        time: impl Fn(&crate::segments::Meta) -> u64,
    ) -> Option<Segment> {
        while let Some(Reverse((at_ms, segment))) = heap.peek().copied() {
            let is_valid = self.lives(segment)
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

    /// Drops the entries of segments that are gone.
    pub(crate) fn purge_expiring(&self, shared: &mut Shared) {
        shared.expiring.worthwhile.retain(|Reverse((_, segment))| self.lives(*segment));
        shared.expiring.overdue.retain(|Reverse((_, segment))| self.lives(*segment));
    }

    /// Ends a scan: of what remains, the first item expires at `first_ms`, and the next scan is
    /// worthwhile from `worthwhile_ms` on.
    fn end_scan(&self, segment: Segment, first_ms: u64, worthwhile_ms: u64) {
        let mut shared = self.lock();
        if !self.lives(segment) {
            return;
        }
        let meta = &self.metas[segment.number as usize];
        // Items that were written meanwhile may expire before those.
        meta.first_expires_ms.fetch_min(first_ms, Ordering::Relaxed);
        if meta.live.load(Ordering::Relaxed) & SEALED != 0 {
            meta.worthwhile_ms.fetch_min(worthwhile_ms, Ordering::Relaxed);
            self.schedule_scan(&mut shared, segment);
        }
    }

    /// Returns whether so little of a sealed, ordinary segment is live that it should be emptied.
    fn should_empty(&self, segment: Segment) -> bool {
        let live = self.metas[segment.number as usize].live.load(Ordering::Relaxed);
        self.lives(segment)
            && !self.is_large(segment.number)
            && live & SEALED != 0
            && live & !SEALED <= self.len() / EMPTIED_RATIO
    }
}

impl Session<'_> {
    /// Returns whether any item has an expiry, so that [`Turn::expire_step`] must be called.
    #[inline]
    pub fn has_expiring(&self) -> bool {
        let segments = &self.cache.segments;
        let open = self.open.borrow();
        let mut tails = open.tails.iter().flatten().flatten();
        segments.has_expiring.load(Ordering::Relaxed)
            || open.expiry.is_some()
            || open.victim.is_some()
            || segments.is_owing()
            || tails.any(|(segment, _)| segments.first_expires_ms(segment.number) != u64::MAX)
    }
}

impl Turn<'_> {
    /// Removes expired items. A step examines about `max_items` items, and takes about 10
    /// microseconds for a hundred.
    ///
    /// Returns `true` if more expired items wait for the next step: call it again soon. After
    /// `false`, call it again later, for example in 100 ms, as long as [`Session::has_expiring`]
    /// returns true. Without these calls, expired items are removed only when writes need their
    /// memory.
    pub fn expire_step(&self, max_items: usize) -> bool {
        let mut open = self.session.open.borrow_mut();
        let open = &mut *open;
        if open.victim.is_some() {
            self.reclaim(open, max_items * MOVED_BYTES_PER_ITEM);
        }
        let (mut left, mut is_worthwhile) = (max_items, false);
        for _ in 0..MAX_SEGMENTS_PER_STEP {
            let Some(scan) = self.next_scan(open, true) else { break };
            is_worthwhile |= scan.is_worthwhile;
            left = left.saturating_sub(self.examine(open, scan, left).0);
            if left == 0 || open.victim.is_some() {
                break;
            }
        }
        is_worthwhile || open.victim.is_some() || self.cache().segments.is_owing()
    }

    /// Runs some of the worthwhile scans. Returns the number of bytes that were examined, or `None`
    /// if no scan is worthwhile.
    pub(crate) fn scan_expired(&self, open: &mut Open, max_items: usize) -> Option<u64> {
        let scan = self.next_scan(open, false)?;
        Some(self.examine(open, scan, max_items).1)
    }

    /// Returns the scan to go on with.
    fn next_scan(&self, open: &mut Open, overdue: bool) -> Option<Box<ExpiryScan>> {
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
    fn examine(
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
                let Some((place, item, is_gone)) = scan.cursor.next(self, marks) else { break };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_worthwhile_when_enough_bytes_have_expired() {
        let mut forecast = Forecast::new();
        assert_eq!(forecast.worthwhile_ms(0), u64::MAX, "nothing expires");
        for ms in 1..=1000 {
            forecast.add(5000 + ms, 10, 5000);
        }
        // An eighth has expired after 125 ms.
        let at_ms = forecast.worthwhile_ms(10_000 / 8) - 5000;
        assert!((63..=125).contains(&at_ms), "{at_ms}");
        assert_eq!(forecast.worthwhile_ms(20_000), 6000, "all have");
        assert_eq!((forecast.first_ms, forecast.last_ms), (5001, 6000));
    }

    #[test]
    fn one_early_item_makes_no_scan_worthwhile() {
        let mut forecast = Forecast::new();
        forecast.add(1010, 10, 1000);
        forecast.add(280_000, 990, 1000);
        assert_eq!(forecast.worthwhile_ms(125), 280_000);
    }

    #[test]
    fn times_at_the_ends_of_the_clock_are_counted() {
        let mut forecast = Forecast::new();
        forecast.add(u64::MAX, 10, 0);
        forecast.add(1, 10, 0);
        assert_eq!((forecast.worthwhile_ms(10), forecast.worthwhile_ms(20)), (1, u64::MAX));
    }
}
