//! Meaning of HTTP statuses and of `Cache-Control`, for the filesystem in Python, which sends its
//! own requests.

use nuthatch_origins::status::{is_transient, is_unavailable, stale_if_error};
use pyo3::prelude::*;

/// Returns whether a request that was answered with this status may succeed when it is repeated.
#[pyfunction]
#[pyo3(signature = (status, /))]
pub(super) fn _is_transient(status: u16) -> bool {
    is_transient(status)
}

/// Returns whether this status means that the origin is unavailable.
#[pyfunction]
#[pyo3(signature = (status, /))]
pub(super) fn _is_unavailable(status: u16) -> bool {
    is_unavailable(status)
}

/// Returns for how many seconds an origin allows a stale version, by its `Cache-Control`.
#[pyfunction]
#[pyo3(signature = (cache_control, /))]
pub(super) fn _stale_if_error(cache_control: &str) -> Option<u64> {
    stale_if_error(cache_control)
}
