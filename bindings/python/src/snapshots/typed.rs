//! Lookups of values of a known type.

use super::failure::raised;
use super::held::Held;
use super::numbers::{Element, NumPy, Numbers, NumbersOwner};
use super::objects::{object, plain_object};
use nuthatch_snapshot::{Error, StoredValue, Value, ValueType};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Arc;

/// Converts the name of a type, such as `list of f32`.
pub(super) fn type_of_name(name: &str) -> Option<ValueType> {
    ValueType::ALL.into_iter().find(|value_type| value_type.name() == name)
}

/// Returns whether values of a type can be read as the requested one: it is the same, or a list
/// without elements is read as any list.
pub(super) fn reads_as(found: ValueType, requested: ValueType) -> bool {
    let is_list = matches!(
        requested,
        ValueType::I64List | ValueType::F64List | ValueType::F32List | ValueType::StringList
    );
    found == requested || (found == ValueType::EmptyList && is_list)
}

/// Returns the exception for a value of another type than the requested one.
#[cold]
pub(super) fn wrong_type(
    py: Python<'_>,
    held: &Held,
    key: &[u8],
    requested: ValueType,
    found: ValueType,
) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let code = Error::WrongType { requested, found }.code();
    let (path, key) = (held.path.display(), key.escape_ascii());
    let message = format!(
        "{path}: key \"{key}\": expected a value of type {requested}, found {found}; request the \
         type that was found, or correct the writer of the value"
    );
    let made = MAKE
        .import(py, "nuthatch.errors", "wrong_type")
        .and_then(|make| make.call1((code, message, requested.name(), found.name())));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Returns the object for a value as the requested type. Returns `None` for a missing key.
pub(super) fn get_typed<'py>(
    py: Python<'py>,
    held: &Arc<Held>,
    key: &[u8],
    requested: ValueType,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let stored = raised(py, held.get().find(key))?;
    held.check_readable(py)?;
    let Some(stored) = stored else { return Ok(None) };
    let found = stored.value_type();
    if !reads_as(found, requested) {
        return Err(wrong_type(py, held, key, requested, found));
    }
    if found == ValueType::EmptyList {
        // A damaged one is an error.
        let empty = object(py, &stored, held)?;
        return Ok(Some(empty_numbers(py, requested, held)?.unwrap_or(empty)));
    }
    object_of(py, &stored, held).map(Some)
}

/// Returns the object for a stored value.
#[inline(always)]
pub(super) fn object_of<'py>(
    py: Python<'py>,
    stored: &StoredValue<'_>,
    held: &Arc<Held>,
) -> PyResult<Bound<'py, PyAny>> {
    match plain_object(py, stored) {
        Some(object) => {
            held.check_readable(py)?;
            Ok(object)
        }
        None => object(py, stored, held),
    }
}

/// Returns a list of numbers without elements; `None` for other types.
fn empty_numbers<'py>(
    py: Python<'py>,
    requested: ValueType,
    held: &Arc<Held>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (value, element) = match requested {
        ValueType::I64List => (Value::I64List(&[]), Element::I64),
        ValueType::F64List => (Value::F64List(&[]), Element::F64),
        ValueType::F32List => (Value::F32List(&[]), Element::F32),
        _ => return Ok(None),
    };
    if let Some(numpy) = NumPy::get(py)? {
        let module = numpy.module.bind(py);
        return module.call_method1("zeros", (0, numpy.dtype(element))).map(Some);
    }
    let numbers = Numbers::of(value, NumbersOwner::File { _held: Arc::clone(held) });
    numbers.map(|numbers| numbers.into_array(py)).transpose()
}
