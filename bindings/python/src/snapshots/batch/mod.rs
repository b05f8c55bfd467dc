//! Lookups of many keys. The keys are found without the interpreter's lock, then the results are
//! created.

mod arrow;
mod column;
mod numpy;

pub(crate) use column::ArrowColumn;

use super::failure::raised;
use super::held::Held;
use super::keys::key_bytes;
use super::typed::{object_of, reads_as, wrong_type};
use nuthatch_snapshot::{Error, StoredValue, ValueType};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::sync::Arc;

/// Number of keys that are found before their objects are created: enough that giving up and taking
/// the interpreter's lock costs little, few enough that the values stay in the processor's caches.
const LIST_CHUNK: usize = 1 << 14;

/// Minimum number of keys for which the interpreter's lock is given up. Waiting for the lock again
/// can take longer than a small batch.
const MIN_DETACHED: usize = 256;

/// The result of a batch.
#[derive(Clone, Copy)]
pub(super) enum Form {
    List,
    NumPy,
    Arrow,
}

impl Form {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "list" => Self::List,
            "numpy" => Self::NumPy,
            "arrow" => Self::Arrow,
            _ => return None,
        })
    }
}

/// The values of some keys, in their order.
struct Batch<'a> {
    held: &'a Arc<Held>,
    keys: &'a [&'a [u8]],
    values: &'a [Option<StoredValue<'a>>],
    /// The type that the values must have.
    requested: Option<ValueType>,
}

/// Why a batch has no column, with the index of a key.
enum Problem {
    Missing(usize),
    WrongType(usize, ValueType, ValueType),
    /// Lists of two lengths.
    Lengths(usize, usize, usize),
    /// No key has a value, and no type is requested.
    NoType,
    Failed(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Batch<'_> {
    /// Returns the type of all values; `None` if there are only missing keys and empty lists.
    fn value_type(&self) -> Option<ValueType> {
        let mut types = self.values.iter().flatten().map(StoredValue::value_type);
        self.requested.or_else(|| types.find(|found| *found != ValueType::EmptyList))
    }

    /// Converts a problem into an exception that names the key.
    fn exception(&self, py: Python<'_>, problem: &Problem) -> PyErr {
        let name = |index: usize| self.keys[index].escape_ascii().to_string();
        match problem {
            Problem::Missing(index) => {
                let key = super::keys::key_object(py, self.keys[*index]);
                PyKeyError::new_err(key.unbind())
            }
            Problem::WrongType(index, requested, found) => {
                wrong_type(py, self.held, self.keys[*index], *requested, *found)
            }
            Problem::Lengths(index, expected, found) => {
                let key = name(*index);
                let message = format!(
                    "key \"{key}\": expected a list of {expected} numbers, as that of the first \
                     key, found {found}; use out=\"list\" or out=\"arrow\""
                );
                super::failure::argument(py, message)
            }
            Problem::NoType => {
                let message =
                    "expected at least one key with a value, found none; give `value_type`";
                super::failure::argument(py, message.to_owned())
            }
            Problem::Failed(error) => super::failure::exception(py, error),
        }
    }
}

/// Checks that the value at an index can be read as a type.
fn check(index: usize, found: ValueType, requested: ValueType) -> Result<(), Problem> {
    if reads_as(found, requested) {
        return Ok(());
    }
    Err(Problem::WrongType(index, requested, found))
}

/// Returns the values of an iterable of keys.
pub(super) fn get_many<'py>(
    keys: &Bound<'py, PyAny>,
    held: &Arc<Held>,
    default: Option<Bound<'py, PyAny>>,
    form: Form,
    requested: Option<ValueType>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let objects = objects(keys)?;
    let bytes = objects.iter().map(key_bytes).collect::<PyResult<Vec<_>>>()?;
    if matches!(form, Form::List) {
        let default = default.unwrap_or_else(|| py.None().into_bound(py));
        return list(py, &bytes, held, &default, requested);
    }
    let mut values = vec![None; bytes.len()];
    find(py, held, &bytes, &mut values)?;
    let batch = Batch { held, keys: &bytes, values: &values, requested };
    match form {
        Form::NumPy => numpy::array(py, &batch, default.as_ref()),
        _ => arrow::column(py, &batch)?.into_bound_py_any(py),
    }
}

/// Returns references to the keys, which keep them alive whatever other threads do with a list
/// meanwhile. A `str` or `bytes` is one key, not an iterable of keys.
fn objects<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = keys.cast_exact::<PyList>() {
        return Ok(list.iter().collect());
    }
    if let Ok(tuple) = keys.cast_exact::<PyTuple>() {
        return Ok(tuple.iter().collect());
    }
    if keys.is_instance_of::<PyString>() || keys.is_instance_of::<PyBytes>() {
        return Err(super::failure::other_class("keys", "an iterable of keys", keys));
    }
    keys.try_iter()?.collect()
}

/// Finds the values of keys, without the interpreter's lock.
fn find<'a>(
    py: Python<'_>,
    held: &'a Held,
    keys: &[&[u8]],
    out: &mut [Option<StoredValue<'a>>],
) -> PyResult<()> {
    let mut find = || held.get().find_many(keys, out);
    let found = if keys.len() < MIN_DETACHED { find() } else { py.detach(find) };
    raised(py, found)?;
    held.check_readable(py)
}

/// Returns the values as a list.
fn list<'py>(
    py: Python<'py>,
    keys: &[&[u8]],
    held: &Arc<Held>,
    default: &Bound<'py, PyAny>,
    requested: Option<ValueType>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut objects = Vec::with_capacity(keys.len());
    let mut values = vec![None; keys.len().min(LIST_CHUNK)];
    for keys in keys.chunks(LIST_CHUNK) {
        find(py, held, keys, &mut values)?;
        for (key, value) in keys.iter().zip(&values) {
            let Some(stored) = value else {
                objects.push(default.clone());
                continue;
            };
            let found = stored.value_type();
            if let Some(requested) = requested
                && !reads_as(found, requested)
            {
                return Err(wrong_type(py, held, key, requested, found));
            }
            objects.push(object_of(py, stored, held)?);
        }
    }
    Ok(PyList::new(py, objects)?.into_any())
}
