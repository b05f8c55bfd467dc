//! What time it is.

use nuthatch_chunks::{Clock, SystemClock};
use std::time::{Duration, SystemTime};

/// The time, to the millisecond that began last: what was just written is never taken for older
/// than it is.
pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(SystemClock.now_ms())
}
