//! Keys and values: bytes that come from Python and go there.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::ops::Deref;

/// A key or a value from Python: `bytes` as they lie there, anything else that is a buffer copied.
/// Text is refused: which encoding it has in the store is for the caller to say.
pub(crate) enum Octets<'py> {
    Lent(Bound<'py, PyBytes>),
    Copied(Vec<u8>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Octets<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Lent(bytes.to_owned()));
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

impl Deref for Octets<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes.as_bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

/// A value on its way to Python.
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
