//! Keys from Python: `str`, which stands for its UTF-8 form, or `bytes`.

use super::failure::other_class;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A key that no snapshot has: it is longer than the limit of the format. It stands for a `str`
/// with an unpaired surrogate, which has no UTF-8 form.
pub(super) static NO_KEY: [u8; 1 << 16] = [0; 1 << 16];

/// Returns the bytes of a key, without a copy. Fails for another class.
#[inline(always)]
pub(super) fn key_bytes<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(text) = key.cast_exact::<PyString>() {
        return Ok(text.to_str().map_or(&NO_KEY, str::as_bytes));
    }
    if let Ok(bytes) = key.cast_exact::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    subclass_bytes(key)
}

#[cold]
#[inline(never)]
fn subclass_bytes<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(text.to_str().map_or(&NO_KEY, str::as_bytes));
    }
    match key.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes()),
        Err(_) => Err(other_class("key", "str or bytes", key)),
    }
}

/// Converts a key for Python: `str` if it is UTF-8, otherwise `bytes`.
pub(super) fn key_object<'py>(py: Python<'py>, key: &[u8]) -> Bound<'py, PyAny> {
    match PyString::from_bytes(py, key) {
        Ok(text) => text.into_any(),
        Err(_) => PyBytes::new(py, key).into_any(),
    }
}
