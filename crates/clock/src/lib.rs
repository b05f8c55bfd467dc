//! The source of time by which entries of the cache, the store and the chunk cache expire.
//!
//! Programs use [`SystemClock`], the default of all engines. Tests of expiry use [`ManualClock`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of time for expiry. It may be set back: entries then expire later, and an expired entry
/// that was not removed yet is valid again.
pub trait Clock: Send + Sync {
    /// Returns the time in milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that shows the time that was set, for tests of expiry.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Returns a clock that shows `now_ms`, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self(AtomicU64::new(now_ms))
    }

    /// Sets the time, in milliseconds since the Unix epoch. It may be earlier than before.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::Relaxed);
    }

    /// Moves the time forward by `ms` milliseconds.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_shows_the_time_that_was_set() {
        let clock = ManualClock::new(1000);
        clock.advance(5);
        assert_eq!(clock.now_ms(), 1005);
        clock.set(10);
        assert_eq!(clock.now_ms(), 10);
    }
}
