//! Time since the machine booted, including the time in which it was suspended.
//!
//! Leases end in etcd while a machine sleeps, so the clock of a node must advance during that time.
//! `CLOCK_MONOTONIC` does not.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A point in time: nanoseconds since the machine booted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootTime(u64);

impl BootTime {
    /// Returns the time `nanos` nanoseconds after the boot.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the boot.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the time that is `by` later, at most the end of the clock's range.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos_of(by)))
    }

    /// Returns the time that is `by` earlier, at least the boot.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(nanos_of(by)))
    }

    /// Returns the time from `earlier` until this one; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A source of the time since boot. It never goes back.
pub trait BootClock: Send + Sync {
    /// Returns the time since the machine booted.
    fn now(&self) -> BootTime;
}

/// The clock of the operating system: `CLOCK_BOOTTIME`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemBootClock;

impl BootClock for SystemBootClock {
    fn now(&self) -> BootTime {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        let nanos = u64::try_from(now.tv_nsec).unwrap_or_default();
        BootTime(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }
}

/// A clock that shows the time that was set, for tests.
#[derive(Debug, Default)]
pub struct ManualBootClock(AtomicU64);

impl ManualBootClock {
    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(nanos_of(by), Ordering::Relaxed);
    }
}

impl BootClock for ManualBootClock {
    fn now(&self) -> BootTime {
        BootTime(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stay_within_the_range_of_the_clock() {
        let second = Duration::from_secs(1);
        assert_eq!(BootTime::from_nanos(5).minus(second), BootTime::default());
        assert_eq!(BootTime::from_nanos(u64::MAX).plus(second).nanos(), u64::MAX);
        assert_eq!(BootTime::default().plus(second).since(BootTime::from_nanos(1)).as_nanos(), {
            1_000_000_000 - 1
        });
        assert_eq!(BootTime::default().since(BootTime::from_nanos(9)), Duration::ZERO);
    }

    #[test]
    fn the_clock_of_the_system_advances() {
        let before = SystemBootClock.now();
        assert!(before.nanos() > 0);
        assert!(SystemBootClock.now() >= before);
    }
}
