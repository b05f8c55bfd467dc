//! Keyword arguments that several calls share.

use crate::convert::{BytesArg, duration};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::time::Duration;

/// Keyword arguments. `None` has the same meaning as an absent argument. An argument that the call
/// does not take is an error.
pub(crate) struct KeywordArguments<'py> {
    call: &'static str,
    unused: Option<Bound<'py, PyDict>>,
}

impl<'py> KeywordArguments<'py> {
    /// Creates the keyword arguments of a call. Arguments are removed from the dictionary when they
    /// are taken.
    pub(crate) fn new(call: &'static str, arguments: Option<&Bound<'py, PyDict>>) -> Self {
        Self { call, unused: arguments.cloned() }
    }

    /// Takes an argument and converts it; returns `None` if it is absent.
    pub(crate) fn take<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(value) = self.take_object(name)? else { return Ok(None) };
        let wrong = |error: PyErr| {
            let py = value.py();
            let text = format!("{}: {}", name, error.value(py));
            if error.is_instance_of::<PyTypeError>(py) {
                PyTypeError::new_err(text)
            } else {
                PyValueError::new_err(text)
            }
        };
        value.extract().map(Some).map_err(|error: T::Error| wrong(error.into()))
    }

    /// Takes a key; returns `None` if it is absent.
    pub(crate) fn key(&self, name: &str) -> PyResult<Option<Vec<u8>>> {
        Ok(self.take::<BytesArg<'_>>(name)?.map(|key| key.to_vec()))
    }

    /// Takes a flag; returns false if it is absent.
    pub(crate) fn flag(&self, name: &str) -> PyResult<bool> {
        Ok(self.take(name)?.unwrap_or(false))
    }

    /// Takes a time in seconds; returns `None` if it is absent.
    pub(crate) fn seconds(&self, name: &str) -> PyResult<Option<Duration>> {
        self.take(name)?.map(|seconds| duration(name, seconds)).transpose()
    }

    /// Fails if an argument is left that the call does not take.
    pub(crate) fn finish(self) -> PyResult<()> {
        let Some(unused) = &self.unused else { return Ok(()) };
        match unused.keys().iter().next() {
            None => Ok(()),
            Some(name) => {
                let name = name.cast_into::<PyString>()?;
                let message =
                    format!("{}() got an unexpected keyword argument '{name}'", self.call);
                Err(PyTypeError::new_err(message))
            }
        }
    }

    fn take_object(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(unused) = &self.unused else { return Ok(None) };
        let found = unused.get_item(name)?;
        if found.is_some() {
            unused.del_item(name)?;
        }
        Ok(found.filter(|value| !value.is_none()))
    }
}
