//! Rows of Apache Arrow's record batches.

use crate::cell::{Cell, CellBuffers, Row};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Schema};
use nuthatch_snapshot::Value;

/// Returns the names of the columns.
pub fn column_names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// The rows of a record batch.
#[derive(Debug)]
pub struct BatchRows {
    columns: Vec<ArrayRef>,
    rows: usize,
}

impl BatchRows {
    /// Returns the rows of a batch, whose columns with dictionaries and runs are decoded.
    pub fn new(batch: &RecordBatch) -> Self {
        Self { columns: batch.columns().iter().map(decoded).collect(), rows: batch.num_rows() }
    }

    /// Returns the rows in their order.
    pub fn iter(&self) -> impl Iterator<Item = impl Row> {
        (0..self.rows).map(|row| BatchRow { columns: &self.columns, row })
    }
}

/// Returns a column without a dictionary or runs.
fn decoded(column: &ArrayRef) -> ArrayRef {
    let value_type = match column.data_type() {
        DataType::Dictionary(_, value) => (**value).clone(),
        DataType::RunEndEncoded(_, value) => value.data_type().clone(),
        _ => return ArrayRef::clone(column),
    };
    // A type that cannot be decoded is reported when a value is read.
    arrow_cast::cast(column, &value_type).unwrap_or_else(|_| ArrayRef::clone(column))
}

struct BatchRow<'a> {
    columns: &'a [ArrayRef],
    row: usize,
}

impl Row for BatchRow<'_> {
    fn cell<'r>(&'r self, column: usize, buffers: &'r mut CellBuffers) -> Result<Cell<'r>, String> {
        let (array, row) = (&self.columns[column], self.row);
        if array.is_null(row) {
            return Ok(Cell::Null);
        }
        let value = match array.data_type() {
            DataType::Null => return Ok(Cell::Null),
            DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
            DataType::Utf8 => Value::String(array.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => Value::String(array.as_string::<i64>().value(row)),
            DataType::Utf8View => Value::String(array.as_string_view().value(row)),
            DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row)),
            DataType::BinaryView => Value::Bytes(array.as_binary_view().value(row)),
            DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(row)),
            DataType::List(_) => return list(&array.as_list::<i32>().value(row), buffers),
            DataType::LargeList(_) => return list(&array.as_list::<i64>().value(row), buffers),
            DataType::FixedSizeList(..) => {
                return list(&array.as_fixed_size_list().value(row), buffers);
            }
            _ => match number(array, row)? {
                Some(value) => value,
                None => text(array, row, buffers)?,
            },
        };
        Ok(Cell::Value(value))
    }
}

/// Returns the value of an integer or a float; `None` for other types.
fn number(array: &ArrayRef, row: usize) -> Result<Option<Value<'static>>, String> {
    Ok(Some(match array.data_type() {
        DataType::Int8 => Value::I64(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Value::I64(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Value::I64(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::I64(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => Value::I64(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Value::I64(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Value::I64(array.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => {
            let found = array.as_primitive::<UInt64Type>().value(row);
            Value::I64(i64::try_from(found).map_err(|_| {
                format!("expected an integer of at most 64 bits with a sign, found {found}")
            })?)
        }
        DataType::Float16 => Value::F64(array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => Value::F64(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Value::F64(array.as_primitive::<Float64Type>().value(row)),
        _ => return Ok(None),
    }))
}

/// Returns a decimal, a date or a time as text.
fn text<'r>(
    array: &ArrayRef,
    row: usize,
    buffers: &'r mut CellBuffers,
) -> Result<Value<'r>, String> {
    if array.data_type().is_nested() {
        let found = array.data_type();
        return Err(format!("expected a plain value or a list of plain values, found {found}"));
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options).map_err(|error| error.to_string())?;
    buffers.text = formatter.value(row).try_to_string().map_err(|error| error.to_string())?;
    Ok(Value::String(&buffers.text))
}

/// Returns the list of the elements of an array.
fn list<'r>(elements: &ArrayRef, buffers: &'r mut CellBuffers) -> Result<Cell<'r>, String> {
    if elements.null_count() > 0 {
        return Err("expected a list without NULL".to_owned());
    }
    let CellBuffers { i64s, f64s, f32s, strings, .. } = buffers;
    let count = elements.len();
    let value = match elements.data_type() {
        _ if count == 0 => Value::EmptyList,
        DataType::Float32 => {
            f32s.clear();
            f32s.extend_from_slice(elements.as_primitive::<Float32Type>().values());
            Value::F32List(f32s)
        }
        DataType::Float16 => {
            f32s.clear();
            f32s.extend(elements.as_primitive::<Float16Type>().values().iter().map(|f| f.to_f32()));
            Value::F32List(f32s)
        }
        DataType::Float64 => {
            f64s.clear();
            f64s.extend_from_slice(elements.as_primitive::<Float64Type>().values());
            Value::F64List(f64s)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            strings.clear();
            let mut len = 0_usize;
            for row in 0..count {
                let text = match elements.data_type() {
                    DataType::Utf8 => elements.as_string::<i32>().value(row),
                    DataType::LargeUtf8 => elements.as_string::<i64>().value(row),
                    _ => elements.as_string_view().value(row),
                };
                len += text.len();
                if u32::try_from(len).is_err() {
                    return Err("expected a list of strings of at most 4 GiB".to_owned());
                }
                strings.push(text);
            }
            Value::StringList(strings.as_list())
        }
        found => {
            i64s.clear();
            for row in 0..count {
                match number(elements, row)? {
                    Some(Value::I64(int)) => i64s.push(int),
                    _ => return Err(format!("expected a list of numbers or text, found {found}")),
                }
            }
            Value::I64List(i64s)
        }
    };
    Ok(Cell::Value(value))
}
