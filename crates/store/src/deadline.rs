//! Ends of waits.

use std::time::{Duration, Instant};

/// The longest wait. Adding `Duration::MAX` to the current time panics.
const MAX_WAIT: Duration = Duration::from_hours(24 * 365 * 100);

/// Returns the time at which a wait that begins now ends. Longer waits are cut to a century.
pub(crate) fn deadline(wait: Duration) -> Instant {
    Instant::now() + wait.min(MAX_WAIT)
}
