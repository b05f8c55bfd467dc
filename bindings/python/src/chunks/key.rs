//! Python class for keys of objects.

use crate::convert::BytesArg;
use crate::failure::Failure;
use nuthatch_chunks::Description;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The key of an object: of a named object, or one that the cache returned for an object with an
/// address.
///
/// Args:
///     `name`: The name, as bytes or as text, which is encoded as UTF-8; or a key.
#[pyclass(frozen, eq, hash, from_py_object, module = "nuthatch.chunks")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(pub(crate) nuthatch_chunks::Key);

impl Key {
    fn described(&self) -> Description {
        self.0.describe()
    }
}

#[pymethods]
impl Key {
    #[new]
    fn new(py: Python<'_>, name: Name<'_>) -> PyResult<Self> {
        name.key().map(Self).map_err(|failure| failure.raise(py))
    }

    /// Returns the kind of the key: `named`, `blocks`, `content` or `unknown`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.described() {
            Description::Named(_) => "named",
            Description::Blocks { .. } => "blocks",
            Description::Content(_) => "content",
            _ => "unknown",
        }
    }

    /// Returns the name of a named object; otherwise `None`.
    #[getter]
    fn name(&self) -> Option<Vec<u8>> {
        match self.described() {
            Description::Named(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the URL or path of an object of blocks; otherwise `None`.
    #[getter]
    fn address(&self) -> Option<String> {
        match self.described() {
            Description::Blocks { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Returns the validator, which distinguishes versions of an object of blocks; otherwise
    /// `None`.
    #[getter]
    fn validator(&self) -> Option<String> {
        match self.described() {
            Description::Blocks { validator, .. } => Some(validator),
            _ => None,
        }
    }

    /// Returns the length of an object of blocks in bytes; otherwise `None`.
    #[getter]
    fn object_len(&self) -> Option<u64> {
        match self.described() {
            Description::Blocks { object_len, .. } => Some(object_len),
            _ => None,
        }
    }

    /// Returns the block length of an object of blocks in bytes; otherwise `None`. The last block
    /// can be shorter.
    #[getter]
    fn block_len(&self) -> Option<u64> {
        match self.described() {
            Description::Blocks { block_len, .. } => Some(block_len),
            _ => None,
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let names: &[&str] = match slf.get().kind() {
            "named" => &["name"],
            "blocks" => &["address", "validator", "object_len", "block_len"],
            _ => &["kind"],
        };
        crate::convert::format_fields(slf.as_any(), names)
    }
}

/// A key argument: a name as bytes or as text, which is encoded as UTF-8, or a [`Key`].
pub(crate) enum Name<'py> {
    Bytes(BytesArg<'py>),
    Text(String),
    Key(Key),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Name<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(key) = object.cast::<Key>() {
            return Ok(Self::Key(key.get().clone()));
        }
        if object.is_instance_of::<PyString>() {
            return object.extract().map(Self::Text);
        }
        object.extract().map(Self::Bytes)
    }
}

impl Name<'_> {
    pub(crate) fn key(&self) -> Result<nuthatch_chunks::Key, Failure> {
        Ok(match self {
            Self::Bytes(name) => nuthatch_chunks::Key::named(&**name)?,
            Self::Text(name) => nuthatch_chunks::Key::named(name)?,
            Self::Key(key) => key.0.clone(),
        })
    }
}
