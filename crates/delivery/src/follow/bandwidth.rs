//! A limit of bytes per second, which several followers can share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Length of a range in bytes.
const RANGE_BYTES: u64 = 4 << 20;
/// Minimum length of a range in bytes.
const MIN_RANGE_BYTES: u64 = 1 << 10;
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

/// The ranges in which a file is requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeLimits<'a>(pub(super) Option<&'a Bandwidth>);

impl RangeLimits<'_> {
    /// Returns the length of a range: with a limit, what may be fetched in a quarter of a second.
    pub(super) fn range_bytes(self) -> u64 {
        let limited = |limit: &Bandwidth| limit.bytes_per_second / 4;
        self.0.map_or(RANGE_BYTES, |limit| limited(limit).clamp(MIN_RANGE_BYTES, RANGE_BYTES))
    }

    /// Returns how many ranges may be requested at the same time.
    pub(super) fn max_concurrent(self) -> usize {
        if self.0.is_some() { 1 } else { MAX_CONCURRENT_RANGES }
    }

    /// Waits until bytes may be requested.
    pub(super) async fn wait_for(self, bytes: u64) {
        if let Some(limit) = self.0 {
            limit.wait_for(bytes).await;
        }
    }
}
