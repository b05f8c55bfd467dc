//! Conversion of request headers from Python.

use crate::failure::Failure;
use nuthatch_origins::Access;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

/// Converts a mapping of headers. Errors give the position of an invalid header but neither its
/// name nor its value, since a caller that swapped the two has a secret in either.
pub(super) fn access(headers: &Bound<'_, PyMapping>) -> PyResult<Access> {
    let mut access = Access::new();
    for (number, header) in headers.items()?.iter().enumerate() {
        let wrong = |expected: &str| {
            let message = format!("headers: number {}: expected {expected}", number + 1);
            Failure::argument(message).raise(headers.py())
        };
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = header.extract()?;
        let name = text(&name)?.filter(|name| !name.contains(':'));
        let name = name.ok_or_else(|| wrong("the name of a header"))?;
        let value = text(&value)?.ok_or_else(|| wrong("a value without control characters"))?;
        access = access.line(&format!("{name}:{value}")).map_err(wrong)?;
    }
    Ok(access)
}

/// Extracts text, or returns `None` if it is not a valid string. Python's error for unpaired
/// surrogates contains the whole text, so it is dropped.
fn text(given: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let Ok(text) = given.cast::<PyString>() else {
        let found = given.get_type().name()?;
        return Err(PyTypeError::new_err(format!("headers: expected text, found {found}")));
    };
    Ok(text.to_str().ok().map(str::to_owned))
}
