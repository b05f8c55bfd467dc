//! Conversion of keys and values between Python and Rust.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::ops::Deref;

/// A key or value from Python: borrowed from `bytes`, copied from any other buffer. Text is
/// refused, since the caller must choose its encoding.
pub(crate) enum BytesArg<'py> {
    Borrowed(Bound<'py, PyBytes>),
    Copied(Vec<u8>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for BytesArg<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Borrowed(bytes.to_owned()));
        }
        if object.is_instance_of::<PyString>() {
            let message = "expected bytes, found str: encode it, for example with .encode()";
            return Err(PyTypeError::new_err(message));
        }
        if let Ok(buffer) = PyBuffer::<u8>::get(&object) {
            return Ok(Self::Copied(buffer.to_vec(object.py())?));
        }
        let found = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("expected bytes, found {found}")))
    }
}

impl Deref for BytesArg<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes.as_bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

/// A value to convert for Python.
pub(crate) enum Value {
    Owned(Vec<u8>),
    Shared(bytes::Bytes),
}

impl<'py> IntoPyObject<'py> for Value {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(match self {
            Self::Owned(bytes) => PyBytes::new(py, &bytes),
            Self::Shared(bytes) => PyBytes::new(py, &bytes),
        })
    }
}

/// Converts the keys of an iterable.
pub(crate) fn keys_of(keys: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u8>>> {
    keys.try_iter()?.map(|key| Ok(key?.extract::<BytesArg<'_>>()?.to_vec())).collect()
}
