//! Lines of log that clients can cause again and again: one a second, and how many were left out.

use crate::engine::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time between lines.
const EVERY: Duration = Duration::from_secs(1);

/// Lets a line through from time to time, and counts the others.
#[derive(Debug, Default)]
pub(super) struct Sparing(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    told: Option<Instant>,
    left_out: u64,
}

impl Sparing {
    /// Whether to log now: then how many lines were left out since the last one.
    pub(super) fn admit(&self, now: Instant) -> Option<u64> {
        let mut last = lock(&self.0);
        if last.told.is_some_and(|told| now.saturating_duration_since(told) < EVERY) {
            last.left_out += 1;
            return None;
        }
        last.told = Some(now);
        Some(std::mem::take(&mut last.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_counted() {
        let (sparing, start) = (Sparing::default(), Instant::now());
        let admitted = [0, 1, 999, 1000, 1001, 5000];
        let admitted = admitted.map(|ms| sparing.admit(start + Duration::from_millis(ms)));
        assert_eq!(admitted, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
