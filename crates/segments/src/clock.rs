//! What time it is.

use std::time::{SystemTime, UNIX_EPOCH};

/// A source of time. Expiry follows it.
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
