//! The state of a scan of a segment for expired items.

use crate::memory::meta::Segment;
use crate::memory::segments::Segments;
use crate::session::cursor::Cursor;
use std::ops::Range;

/// Number of buckets, one for each power of two of milliseconds up to 2^48.
const BUCKETS: usize = 49;

/// Forecast of when the items that remain after a scan expire.
#[derive(Debug)]
pub(super) struct Forecast {
    /// Bucket n: bytes of the items that expire within 2^n ms and not within half of that; and the
    /// earliest of their expiries.
    buckets: [(u64, u64); BUCKETS],
    pub(super) first_ms: u64,
    last_ms: u64,
}

impl Forecast {
    pub(super) fn new() -> Self {
        Self { buckets: [(0, u64::MAX); BUCKETS], first_ms: u64::MAX, last_ms: 0 }
    }

    /// Adds an item that expires later than `now_ms`.
    pub(super) fn add(&mut self, expires_ms: u64, bytes: usize, now_ms: u64) {
        let bits = u64::BITS - (expires_ms - now_ms).leading_zeros();
        let (total, first_ms) = &mut self.buckets[(bits as usize).min(BUCKETS - 1)];
        *total += bytes as u64;
        *first_ms = (*first_ms).min(expires_ms);
        self.first_ms = self.first_ms.min(expires_ms);
        self.last_ms = self.last_ms.max(expires_ms);
    }

    /// Returns the time from which at least `bytes` have expired. It is a lower bound, exact to a
    /// power of two. If fewer bytes expire at all, returns the time at which all have, or
    /// `u64::MAX` if none does.
    pub(super) fn worthwhile_ms(&self, bytes: u64) -> u64 {
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
    pub(super) segment: Segment,
    pub(super) cursor: Cursor,
    /// Bytes of the segment's items.
    pub(super) len: u64,
    pub(super) is_worthwhile: bool,
    pub(super) forecast: Forecast,
}

impl ExpiryScan {
    pub(super) fn new(segment: Segment, items: Range<u64>, is_worthwhile: bool) -> Box<Self> {
        let len = items.end - items.start;
        let (cursor, forecast) = (Cursor::new(items), Forecast::new());
        Box::new(Self { segment, cursor, len, is_worthwhile, forecast })
    }

    /// Ends the scan before the end of the segment. The segment is scanned again from the start.
    pub(crate) fn abandon(&self, segments: &Segments, now_ms: u64) {
        segments.end_scan(self.segment, now_ms, now_ms);
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
