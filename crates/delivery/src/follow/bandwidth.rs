//! A limit of bytes per second, which several followers can share, and the lengths of ranges.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Length of a range in bytes.
const RANGE_BYTES: u64 = 4 << 20;
/// Minimum length of a range in bytes.
const MIN_RANGE_BYTES: u64 = 1 << 10;
/// Minimum length of a range on a slow connection.
const MIN_PACE_BYTES: u64 = 64 << 10;
/// Ranges become longer while one takes less than this.
const SHORT_TIME: Duration = Duration::from_secs(5);
/// Ranges of a file that are requested at the same time.
const MAX_CONCURRENT_RANGES: usize = 4;

/// A limit of bytes per second. Clones share it.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    bytes_per_second: u64,
    /// The time at which the next range may be requested; `None` before the first one.
    next: Arc<Mutex<Option<Instant>>>,
}

impl Bandwidth {
    /// Creates a limit; 0 counts as 1.
    #[must_use]
    pub fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), next: Arc::default() }
    }

    /// Waits until bytes may be requested. Requests are in the order of the calls.
    async fn wait_for(&self, bytes: u64) {
        let seconds = bytes as f64 / self.bytes_per_second as f64;
        let start = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let start = next.map_or(now, |next| next.max(now));
            *next = Some(start + Duration::from_secs_f64(seconds));
            start
        };
        tokio::time::sleep_until(start).await;
    }
}

/// The length of ranges that suits the connection to a source. A response must end within a minute,
/// so ranges are shorter on a slow one.
#[derive(Debug)]
pub(super) struct Pace(AtomicU64);

impl Default for Pace {
    fn default() -> Self {
        Self(AtomicU64::new(RANGE_BYTES))
    }
}

impl Pace {
    /// Makes ranges half as long, as one has failed.
    pub(super) fn slow_down(&self) {
        let halved = self.0.load(Ordering::Relaxed) / 2;
        self.0.store(halved.max(MIN_PACE_BYTES), Ordering::Relaxed);
    }

    /// Makes ranges twice as long if one took little time.
    pub(super) fn received(&self, time: Duration) {
        if time < SHORT_TIME {
            let doubled = self.0.load(Ordering::Relaxed) * 2;
            self.0.store(doubled.min(RANGE_BYTES), Ordering::Relaxed);
        }
    }
}

/// The ranges in which a file is requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeLimits<'a> {
    pub(super) bandwidth: Option<&'a Bandwidth>,
    pub(super) pace: &'a Pace,
}

impl RangeLimits<'_> {
    /// Returns the length of a range: with a limit, what may be fetched in a quarter of a second.
    pub(super) fn range_bytes(self) -> u64 {
        let pace = self.pace.0.load(Ordering::Relaxed);
        let limited = |limit: &Bandwidth| limit.bytes_per_second / 4;
        self.bandwidth.map_or(pace, |limit| limited(limit).clamp(MIN_RANGE_BYTES, pace))
    }

    /// Returns how many ranges may be requested at the same time: several only of the full length,
    /// since they share the connection.
    pub(super) fn max_concurrent(self) -> usize {
        let is_slow = self.pace.0.load(Ordering::Relaxed) < RANGE_BYTES;
        if is_slow || self.bandwidth.is_some() { 1 } else { MAX_CONCURRENT_RANGES }
    }

    /// Waits until bytes may be requested.
    pub(super) async fn wait_for(self, bytes: u64) {
        if let Some(limit) = self.bandwidth {
            limit.wait_for(bytes).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_shorter_and_alone_on_a_slow_connection() {
        let pace = Pace::default();
        let limits = RangeLimits { bandwidth: None, pace: &pace };
        assert_eq!((limits.range_bytes(), limits.max_concurrent()), (4 << 20, 4));
        pace.slow_down();
        assert_eq!((limits.range_bytes(), limits.max_concurrent()), (2 << 20, 1));
        pace.received(Duration::from_secs(20));
        assert_eq!(limits.range_bytes(), 2 << 20, "it took long");
        (0..20).for_each(|_| pace.slow_down());
        assert_eq!(limits.range_bytes(), MIN_PACE_BYTES);
        (0..20).for_each(|_| pace.received(Duration::from_secs(1)));
        assert_eq!((limits.range_bytes(), limits.max_concurrent()), (4 << 20, 4));
    }
}
