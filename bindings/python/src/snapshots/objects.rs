//! Python objects for values.

use super::failure::raised;
use super::held::Held;
use super::numbers::{Numbers, NumbersOwner};
use nuthatch_snapshot::{CowValue, StoredValue, Value, ValueType};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString};
use std::sync::Arc;

/// Returns the object for a value that is not a list and not compressed, without running Python
/// code. Returns `None` for all others, and for invalid ones.
#[inline(always)]
pub(super) fn plain_object<'py>(
    py: Python<'py>,
    stored: &StoredValue<'_>,
) -> Option<Bound<'py, PyAny>> {
    if stored.is_compressed() {
        return None;
    }
    let bytes = stored.bytes();
    match stored.value_type() {
        // Python checks UTF-8.
        ValueType::String => PyString::from_bytes(py, bytes).ok().map(Bound::into_any),
        ValueType::Bytes => Some(PyBytes::new(py, bytes).into_any()),
        ValueType::Bool => match bytes {
            [truth @ (0 | 1)] => Some(PyBool::new(py, *truth == 1).to_owned().into_any()),
            _ => None,
        },
        ValueType::I64 => {
            let number = i64::from_le_bytes(bytes.try_into().ok()?);
            let Ok(number) = number.into_pyobject(py);
            Some(Bound::<PyInt>::into_any(number))
        }
        ValueType::F64 => {
            let number = f64::from_le_bytes(bytes.try_into().ok()?);
            Some(PyFloat::new(py, number).into_any())
        }
        _ => None,
    }
}

/// Returns the object for a value of `held`.
#[cold]
#[inline(never)]
pub(super) fn object<'py>(
    py: Python<'py>,
    stored: &StoredValue<'_>,
    held: &Arc<Held>,
) -> PyResult<Bound<'py, PyAny>> {
    let value = raised(py, stored.value())?;
    held.check_readable(py)?;
    let owner = |value: &CowValue<'_>| match value {
        CowValue::Borrowed(_) => NumbersOwner::File { _held: Arc::clone(held) },
        CowValue::Owned(owned) => NumbersOwner::Memory { _value: Arc::clone(owned) },
    };
    match value.as_value() {
        Value::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Value::String(text) => Ok(PyString::new(py, text).into_any()),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::I64(number) => number.into_bound_py_any(py),
        Value::F64(number) => number.into_bound_py_any(py),
        Value::StringList(list) => {
            Ok(PyList::new(py, list.iter().map(|text| PyString::new(py, text)))?.into_any())
        }
        list => match Numbers::of(list, owner(&value)) {
            Some(numbers) => numbers.into_array(py),
            None => Ok(PyList::empty(py).into_any()),
        },
    }
}
