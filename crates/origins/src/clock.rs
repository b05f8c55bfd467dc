//! The time of the system.

use nuthatch_chunks::{Clock, SystemClock};
use std::time::{Duration, SystemTime};

/// Returns the time, rounded down to milliseconds: a file that was just written is never taken for
/// older than it is.
pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(SystemClock.now_ms())
}
