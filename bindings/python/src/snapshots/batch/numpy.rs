//! The values of a batch as a NumPy array.

use super::{Batch, Problem, check};
use crate::convert::write_into;
use crate::snapshots::failure::argument;
use crate::snapshots::numbers::NumPy;
use nuthatch_snapshot::{CowValue, StoredValue, Value, ValueType};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// The rows of an array: its type in NumPy, the length of an element in bytes, the number of
/// elements of a row, and whether a row is a list.
struct Shape {
    dtype: &'static str,
    item: usize,
    columns: usize,
    is_matrix: bool,
    value_type: ValueType,
}

/// Returns the values as an array, or lists of numbers as the rows of a matrix.
pub(super) fn array<'py>(
    py: Python<'py>,
    batch: &Batch<'_>,
    default: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(numpy) = NumPy::get(py)? else {
        let message = "out=\"numpy\": NumPy is not installed; install it, or use another form";
        return Err(argument(py, message.to_owned()));
    };
    let shape = shape(py, batch)?;
    let missing = default.map(|default| fill(default, &shape)).transpose()?;
    let (rows, row_len) = (batch.keys.len(), shape.item * shape.columns);
    let array = numpy.module.bind(py).call_method1("empty", (rows * row_len, "uint8"))?;
    let write = |out: &mut [u8]| {
        for (index, value) in batch.values.iter().enumerate() {
            let out = &mut out[index * row_len..][..row_len];
            match (value, &missing) {
                (Some(stored), _) => write_row(index, stored, &shape, out)?,
                (None, Some(missing)) => out.copy_from_slice(missing),
                (None, None) => return Err(Problem::Missing(index)),
            }
        }
        Ok(())
    };
    let buffer = PyBuffer::<u8>::get(&array)?;
    let written = write_into(py, &buffer, write)?;
    drop(buffer);
    written.map_err(|problem| batch.exception(py, &problem))?;
    batch.held.check_readable(py)?;
    let array = array.call_method1("view", (shape.dtype,))?;
    if !shape.is_matrix {
        return Ok(array);
    }
    array.call_method1("reshape", (rows, shape.columns))
}

/// Returns the shape of the rows, which follows from the first value.
fn shape(py: Python<'_>, batch: &Batch<'_>) -> PyResult<Shape> {
    let value_type = batch.value_type().ok_or_else(|| batch.exception(py, &Problem::NoType))?;
    let (dtype, item, is_matrix) = match value_type {
        ValueType::Bool => ("bool", 1, false),
        ValueType::I64 => ("int64", 8, false),
        ValueType::F64 => ("float64", 8, false),
        ValueType::I64List => ("int64", 8, true),
        ValueType::F64List => ("float64", 8, true),
        ValueType::F32List => ("float32", 4, true),
        other => {
            let expected = "out=\"numpy\": expected bools, numbers or lists of numbers, found";
            let message = format!("{expected} {other}; use out=\"list\" or out=\"arrow\"");
            return Err(argument(py, message));
        }
    };
    let mut columns = 1;
    if is_matrix {
        let mut lists = batch.values.iter().flatten().filter(|s| s.value_type() == value_type);
        let first = lists.next().map(StoredValue::value).transpose();
        let first = first.map_err(|error| batch.exception(py, &Problem::Failed(error)))?;
        columns = first.map_or(0, |value| list_len(&value.as_value()));
    }
    Ok(Shape { dtype, item, columns, is_matrix, value_type })
}

fn list_len(value: &Value<'_>) -> usize {
    match value {
        Value::I64List(list) => list.len(),
        Value::F64List(list) => list.len(),
        Value::F32List(list) => list.len(),
        _ => 0,
    }
}

/// Returns a row of the default.
fn fill(default: &Bound<'_, PyAny>, shape: &Shape) -> PyResult<Vec<u8>> {
    let element = match shape.value_type {
        ValueType::Bool => vec![u8::from(default.extract::<bool>()?)],
        ValueType::I64 | ValueType::I64List => default.extract::<i64>()?.to_le_bytes().to_vec(),
        ValueType::F32List => (default.extract::<f64>()? as f32).to_le_bytes().to_vec(),
        _ => default.extract::<f64>()?.to_le_bytes().to_vec(),
    };
    Ok(element.repeat(shape.columns))
}

/// Writes the value at an index as a row.
fn write_row(
    index: usize,
    stored: &StoredValue<'_>,
    shape: &Shape,
    out: &mut [u8],
) -> Result<(), Problem> {
    check(index, stored.value_type(), shape.value_type)?;
    let value: CowValue<'_> = stored.value()?;
    let value = value.as_value();
    if shape.is_matrix && list_len(&value) != shape.columns {
        return Err(Problem::Lengths(index, shape.columns, list_len(&value)));
    }
    match value {
        Value::Bool(truth) => out.copy_from_slice(&[u8::from(truth)]),
        Value::I64(number) => out.copy_from_slice(&number.to_le_bytes()),
        Value::F64(number) => out.copy_from_slice(&number.to_le_bytes()),
        Value::I64List(list) => copy(list.iter().map(|number| number.to_le_bytes()), out),
        Value::F64List(list) => copy(list.iter().map(|number| number.to_le_bytes()), out),
        Value::F32List(list) => copy(list.iter().map(|number| number.to_le_bytes()), out),
        _ => {}
    }
    Ok(())
}

fn copy<const N: usize>(numbers: impl Iterator<Item = [u8; N]>, out: &mut [u8]) {
    for (number, out) in numbers.zip(out.as_chunks_mut::<N>().0) {
        *out = number;
    }
}
