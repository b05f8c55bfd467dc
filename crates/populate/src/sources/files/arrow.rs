//! Apache Parquet and Arrow: batches of rows in columns.

use super::input::Input;
use super::list::SourceFile;
use super::{RowReceiver, Stop, invalid};
use crate::error::Result;
use crate::rows::{Cell, CellBuffers, Row};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use nuthatch_snapshot::Value;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::io::{BufReader, Read};

/// Number of rows that are decoded at once.
const BATCH_ROWS: usize = 4096;
const BUFFER_BYTES: usize = 1 << 20;
/// The first bytes of a file, which a stream does not have.
const FILE_MAGIC: &[u8] = b"ARROW1";

fn parquet(file: &SourceFile) -> Result<ParquetRecordBatchReaderBuilder<Input>> {
    let opened = ParquetRecordBatchReaderBuilder::try_new(file.open()?);
    opened.map_err(|error| invalid(file, format!("expected a Parquet file: {error}")))
}

/// Returns the number of row groups of a Parquet file.
pub(super) fn row_groups(file: &SourceFile) -> Result<usize> {
    Ok(parquet(file)?.metadata().num_row_groups())
}

/// Returns the number of rows of a Parquet file.
pub(super) fn rows(file: &SourceFile) -> Result<u64> {
    let rows = parquet(file)?.metadata().file_metadata().num_rows();
    Ok(u64::try_from(rows).unwrap_or(0))
}

/// Reads a row group of a Parquet file.
pub(super) fn read_row_group(
    file: &SourceFile,
    row_group: usize,
    receiver: &mut dyn RowReceiver,
) -> Result<(), Stop> {
    let builder = parquet(file)?;
    let size = builder.metadata().row_group(row_group).compressed_size();
    let reader = builder.with_row_groups(vec![row_group]).with_batch_size(BATCH_ROWS).build();
    let reader = reader.map_err(|error| invalid(file, error.to_string()))?;
    let schema = reader.schema();
    receiver.count_bytes(u64::try_from(size).unwrap_or(0));
    read_batches(file, (&schema, reader), receiver)
}

/// Reads a file or a stream of Arrow.
pub(super) fn read_ipc(file: &SourceFile, receiver: &mut dyn RowReceiver) -> Result<(), Stop> {
    let input = file.open()?;
    let fault = |error| file.fault("read", &error);
    let wrong = |error: ArrowError| invalid(file, format!("expected an Arrow file: {error}"));
    let mut magic = [0; FILE_MAGIC.len()];
    // A pipe cannot be read twice; it has a stream.
    let is_file = input.is_seekable()
        && input.reader(0).map_err(fault)?.read_exact(&mut magic).is_ok()
        && magic == *FILE_MAGIC;
    let reader = BufReader::with_capacity(BUFFER_BYTES, input.reader(0).map_err(fault)?);
    if is_file {
        let reader = FileReader::try_new(reader, None).map_err(wrong)?;
        let schema = reader.schema();
        read_batches(file, (&schema, reader), receiver)
    } else {
        let reader = StreamReader::try_new(reader, None).map_err(wrong)?;
        let schema = reader.schema();
        read_batches(file, (&schema, reader), receiver)
    }
}

fn read_batches(
    file: &SourceFile,
    (schema, batches): (&SchemaRef, impl Iterator<Item = Result<RecordBatch, ArrowError>>),
    receiver: &mut dyn RowReceiver,
) -> Result<(), Stop> {
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
    receiver.set_columns(&names)?;
    for batch in batches {
        let batch = batch.map_err(|error| invalid(file, error.to_string()))?;
        let columns: Vec<_> = batch.columns().iter().map(decoded).collect();
        for row in 0..batch.num_rows() {
            receiver.row(&ArrowRow { columns: &columns, row })?;
        }
    }
    Ok(())
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

struct ArrowRow<'a> {
    columns: &'a [ArrayRef],
    row: usize,
}

impl Row for ArrowRow<'_> {
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
