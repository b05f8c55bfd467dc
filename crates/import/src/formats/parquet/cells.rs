//! Converts blocks to rows.

use super::blocks::{Block, BlockColumn, Values};
use super::schema::{Column, Columns, ElementType};
use crate::error::RowError;
use crate::fault::{Fault, RowFault};
use crate::json::ValueBuffers;
use crate::pattern::F32Keys;
use crate::sink::RowSink;
use nuthatch_snapshot::Value;
use parquet::data_type::ByteArray;
use std::ops::Range;
use std::sync::Arc;

/// Converts the blocks of a file to rows.
#[derive(Debug, Clone)]
pub(crate) struct Parser {
    pub(crate) columns: Arc<Columns>,
    pub(crate) f32_keys: F32Keys,
}

/// The buffers of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    key: Vec<u8>,
    value: ValueBuffers,
}

impl Parser {
    /// Adds rows to the sink until the block ends or the sink is full.
    pub(crate) fn parse<S: RowSink>(
        &self,
        block: &mut Block,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowError> {
        while block.rows_left > 0 {
            self.row(block, buffers, sink)?;
            block.row += 1;
            block.rows_left -= 1;
            if sink.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Adds the rows of one row of the file.
    fn row<S: RowSink>(
        &self,
        block: &mut Block,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowError> {
        let row = block.row;
        let at = |column: &Column| {
            let leaf = column.leaf;
            move |fault| locate(row, leaf, fault)
        };
        let mut cells = self.columns.0.iter().zip(&mut block.columns);
        let Some((key, loaded)) = cells.next() else { return Ok(()) };
        buffers.key.clear();
        loaded.key(key, &mut buffers.key).map_err(at(key))?;
        let key_len = buffers.key.len();
        for (column, loaded) in cells {
            let cell = loaded.cell(column).map_err(at(column))?;
            buffers.key.truncate(key_len);
            buffers.key.extend_from_slice(column.suffix.as_bytes());
            let value = match cell {
                Cell::Null => continue,
                Cell::One(index) => loaded.values.one(index, column).map_err(at(column))?,
                Cell::List(range) if range.is_empty() => Value::EmptyList,
                Cell::List(range) => {
                    let as_f32 = self.f32_keys.contains(&buffers.key);
                    let list = loaded.values.list(range, column, as_f32, &mut buffers.value);
                    list.map_err(at(column))?
                }
            };
            sink.row(row, &buffers.key, value).map_err(|e| at(key)(RowFault::from_sink(0, e)))?;
        }
        Ok(())
    }
}

/// The content of a column in a row.
enum Cell {
    Null,
    /// The value at this index.
    One(usize),
    /// The values at these indices.
    List(Range<usize>),
}

impl BlockColumn {
    /// Returns the content of the next row, and moves behind it.
    fn cell(&mut self, column: &Column) -> Result<Cell, RowFault> {
        let first = self.next_value;
        if !column.is_list {
            let definition = self.definitions.get(self.next_level).copied();
            self.next_level += 1;
            if definition.unwrap_or(column.present_level) < column.present_level {
                return Ok(Cell::Null);
            }
            self.next_value += 1;
            return Ok(Cell::One(first));
        }
        let definition =
            |level| self.definitions.get(level).copied().unwrap_or(column.present_level);
        let start = self.next_level;
        let later = self.repetitions.get(start + 1..).unwrap_or_default();
        let len = 1 + later.iter().take_while(|repetition| **repetition > 0).count();
        self.next_level += len;
        if definition(start) <= column.empty_level {
            let is_null = definition(start) < column.empty_level;
            return Ok(if is_null { Cell::Null } else { Cell::List(first..first) });
        }
        if (start..start + len).any(|level| definition(level) < column.present_level) {
            return Err(invalid(column, "a list of values", "a null in it"));
        }
        self.next_value += len;
        Ok(Cell::List(first..first + len))
    }

    /// Appends the key of the next row to `key`.
    fn key(&mut self, column: &Column, key: &mut Vec<u8>) -> Result<(), RowFault> {
        let Cell::One(index) = self.cell(column)? else {
            return Err(invalid(column, "a key", "a null"));
        };
        match self.values.one(index, column)? {
            Value::String(text) => key.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) => key.extend_from_slice(bytes),
            Value::I64(int) => key.extend_from_slice(itoa::Buffer::new().format(int).as_bytes()),
            _ => return Err(invalid(column, "text, bytes or an integer", "another type")),
        }
        Ok(())
    }
}

impl Values {
    /// Returns the bytes at an index; `None` if the values are no bytes.
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        match self {
            Self::Bytes(values) => values.get(index).map(ByteArray::data),
            Self::FixedBytes(values) => values.get(index).map(|value| value.data()),
            _ => None,
        }
    }

    /// Returns the integer at an index; `None` if the values are no integers.
    fn int(&self, index: usize, column: &Column) -> Result<Option<i64>, RowFault> {
        let is_unsigned = column.element == ElementType::Unsigned;
        Ok(match self {
            Self::Int32(values) => values.get(index).map(|&int| {
                if is_unsigned { i64::from(int.cast_unsigned()) } else { i64::from(int) }
            }),
            Self::Int64(values) => match values.get(index) {
                Some(&int) if is_unsigned && int < 0 => {
                    let found = int.cast_unsigned().to_string();
                    return Err(invalid(column, "an integer below 2^63", &found));
                }
                int => int.copied(),
            },
            _ => None,
        })
    }

    /// Returns the text at an index; `None` if the values are no bytes.
    fn text(&self, index: usize, column: &Column) -> Result<Option<&str>, RowFault> {
        let Some(bytes) = self.bytes(index) else { return Ok(None) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(invalid(column, "text in UTF-8", "other bytes")),
        }
    }

    /// Returns the value at an index.
    fn one(&self, index: usize, column: &Column) -> Result<Value<'_>, RowFault> {
        let value = match (column.element, self) {
            (ElementType::Bool, Self::Bool(values)) => values.get(index).copied().map(Value::Bool),
            (ElementType::Float, Self::Float(values)) => {
                values.get(index).map(|&float| Value::F64(f64::from(float)))
            }
            (ElementType::Double, Self::Double(values)) => {
                values.get(index).copied().map(Value::F64)
            }
            (ElementType::Int | ElementType::Unsigned, _) => {
                self.int(index, column)?.map(Value::I64)
            }
            (ElementType::Bytes, _) => self.bytes(index).map(Value::Bytes),
            (ElementType::Text, _) => self.text(index, column)?.map(Value::String),
            _ => None,
        };
        value.ok_or_else(|| invalid(column, "a value", "none"))
    }

    /// Returns the list of the values at these indices, of which there is at least one.
    fn list<'a>(
        &'a self,
        range: Range<usize>,
        column: &Column,
        as_f32: bool,
        buffers: &'a mut ValueBuffers,
    ) -> Result<Value<'a>, RowFault> {
        let missing = || invalid(column, "values", "fewer than the list has elements");
        match (column.element, self) {
            (ElementType::Text, _) => {
                buffers.strings.clear();
                for index in range {
                    let text = self.text(index, column)?.ok_or_else(missing)?;
                    buffers.strings.push(text);
                }
                return Ok(Value::StringList(buffers.strings.as_list()));
            }
            (ElementType::Float, Self::Float(values)) => {
                return Ok(Value::F32List(values.get(range).ok_or_else(missing)?));
            }
            (ElementType::Double, Self::Double(values)) => {
                let floats = values.get(range).ok_or_else(missing)?;
                return if as_f32 { narrowed(floats, column, buffers) } else { Ok(floats.into()) };
            }
            _ => {}
        }
        buffers.i64s.clear();
        for index in range {
            buffers.i64s.push(self.int(index, column)?.ok_or_else(missing)?);
        }
        if as_f32 {
            buffers.f32s.clear();
            buffers.f32s.extend(buffers.i64s.iter().map(|int| *int as f32));
            return Ok(Value::F32List(&buffers.f32s));
        }
        Ok(Value::I64List(&buffers.i64s))
    }
}

/// Converts a list to 32-bit floats.
fn narrowed<'a>(
    floats: &[f64],
    column: &Column,
    buffers: &'a mut ValueBuffers,
) -> Result<Value<'a>, RowFault> {
    buffers.f32s.clear();
    for &float in floats {
        let narrow = float as f32;
        if float.is_finite() && !narrow.is_finite() {
            return Err(invalid(
                column,
                "numbers in the range of 32-bit floats",
                &float.to_string(),
            ));
        }
        buffers.f32s.push(narrow);
    }
    Ok(Value::F32List(&buffers.f32s))
}

/// Returns the fault of a column.
#[cold]
fn invalid(column: &Column, expected: &str, found: &str) -> RowFault {
    let expected = format!("{expected} in column \"{}\"", column.name);
    RowFault::Text(Fault::new(0, expected, found))
}

/// Returns the error for a fault in this row and column.
#[cold]
fn locate(row: u64, leaf: usize, fault: RowFault) -> RowError {
    match fault {
        RowFault::Sink(error) => RowError::Sink(error),
        RowFault::Text(fault) => fault.into_error(row, leaf as u64 + 1),
    }
}
