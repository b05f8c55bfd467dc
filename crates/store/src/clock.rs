//! Clocks and deadlines.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest wait. Adding `Duration::MAX` to the current time panics.
const MAX_WAIT: Duration = Duration::from_hours(24 * 365 * 100);

/// Returns the time at which a wait that begins now ends. Longer waits are cut to a century.
pub(crate) fn deadline(wait: Duration) -> Instant {
    Instant::now() + wait.min(MAX_WAIT)
}

/// A source of time for expiry. It may go backwards.
pub trait Clock: Send + Sync {
    /// Returns milliseconds since 1970.
    fn now_ms(&self) -> u64;
}

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}
