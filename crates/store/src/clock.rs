//! What time it is.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest wait. Adding `Duration::MAX` to the time of now panics.
const MAX_WAIT: Duration = Duration::from_hours(24 * 365 * 100);

/// Returns when a wait of this length that begins now is over. Longer waits last a century.
pub(crate) fn deadline(wait: Duration) -> Instant {
    Instant::now() + wait.min(MAX_WAIT)
}

/// A source of time. Expiry follows it, forwards and backwards.
pub trait Clock: Send + Sync {
    /// Milliseconds since the beginning of 1970.
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
