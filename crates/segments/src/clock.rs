//! The source of the time of expiry.

use std::time::{SystemTime, UNIX_EPOCH};

/// A source of time, which decides when records expire.
pub trait Clock: Send + Sync {
    /// Returns the time in milliseconds since 1970.
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
