//! Conversion of times, which are seconds in Python: from now, or since 1970.

use crate::failure::Failure;
use nuthatch_clock::{Clock, SystemClock};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

/// Converts a time in seconds; fails if it is negative or not finite.
pub(crate) fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let message = format!("{name}: expected seconds, found {seconds}");
        PyValueError::new_err(message)
    })
}

/// Returns a time of expiry in milliseconds since 1970: `ttl` seconds from now, or `expires_at`
/// seconds since 1970. `None` if both are absent.
pub(crate) fn expiry(
    py: Python<'_>,
    ttl: Option<f64>,
    expires_at: Option<f64>,
) -> PyResult<Option<u64>> {
    let since = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    match (ttl, expires_at) {
        (None, None) => Ok(None),
        (Some(ttl), None) => {
            let ttl_ms = since(duration("ttl", ttl)?);
            Ok(Some(SystemClock.now_ms().saturating_add(ttl_ms)))
        }
        (None, Some(at)) => Ok(Some(since(duration("expires_at", at)?))),
        (Some(_), Some(_)) => {
            let message = "expected one of ttl and expires_at, found both";
            Err(Failure::argument(message).raise(py))
        }
    }
}

/// Converts milliseconds since 1970 into seconds since 1970, as in `time.time()`.
pub(crate) fn unix_seconds(expires_at_ms: Option<u64>) -> Option<f64> {
    expires_at_ms.map(|ms| ms as f64 / 1000.0)
}
