//! Conditions on a key, and times of expiry, as arguments by name.

use super::named::{Named, duration};
use crate::failure::Failure;
use nuthatch_store::{Clock, Condition, SystemClock};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// What must hold of a key, with a value of its own.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Absent,
    Present,
    Equals(Vec<u8>),
    Version(u64),
}

impl Wanted {
    /// The condition of a call: exactly one of `absent`, `present`, `equals` and `version`.
    pub(crate) fn of(
        py: Python<'_>,
        call: &'static str,
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let named = Named::new(call, given);
        let mut wanted = Vec::new();
        if named.is_wanted("absent")? {
            wanted.push(Self::Absent);
        }
        if named.is_wanted("present")? {
            wanted.push(Self::Present);
        }
        wanted.extend(named.key("equals")?.map(Self::Equals));
        wanted.extend(named.take("version")?.map(Self::Version));
        named.finish()?;
        match (wanted.pop(), wanted.len()) {
            (Some(one), 0) => Ok(one),
            (_, others) => {
                let found = if others == 0 { "none" } else { "several" };
                let message = format!(
                    "expected one of absent=True, present=True, equals and version, found {found}"
                );
                Err(Failure::argument(message).raise(py))
            }
        }
    }

    pub(crate) fn condition(&self) -> Condition<'_> {
        match self {
            Self::Absent => Condition::Absent,
            Self::Present => Condition::Present,
            Self::Equals(value) => Condition::Equals(value),
            Self::Version(version) => Condition::Version(*version),
        }
    }
}

/// When a row expires, in milliseconds since the beginning of 1970: `ttl` seconds from now, or at
/// `expires_at` seconds since then.
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

/// Milliseconds since the beginning of 1970, as Python's `time.time()` counts.
pub(crate) fn unix_seconds(expires_at_ms: Option<u64>) -> Option<f64> {
    expires_at_ms.map(|ms| ms as f64 / 1000.0)
}
