//! Takes blocks apart into rows.

use super::blocks::{Block, Loaded, Values};
use super::schema::{Column, Columns, Kind};
use crate::error::{Fault, Refusal, RowError};
use crate::json::Room;
use crate::patterns::Singles;
use crate::rows::RowSink;
use nuthatch_snapshot::Value;
use parquet::data_type::ByteArray;
use std::ops::Range;
use std::sync::Arc;

/// Makes rows of the blocks of a file.
#[derive(Debug, Clone)]
pub(crate) struct Parser {
    pub(crate) columns: Arc<Columns>,
    pub(crate) singles: Singles,
}

/// What a thread needs besides the block.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    key: Vec<u8>,
    value: Room,
}

impl Parser {
    pub(crate) fn parse<S: RowSink>(
        &self,
        block: &mut Block,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), RowError> {
        while block.rows_left > 0 {
            self.row(block, rooms, sink)?;
            block.row += 1;
            block.rows_left -= 1;
            if sink.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn row<S: RowSink>(
        &self,
        block: &mut Block,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), RowError> {
        let row = block.row;
        let at = |column: &Column| {
            let leaf = column.leaf;
            move |refusal| place(row, leaf, refusal)
        };
        let mut cells = self.columns.0.iter().zip(&mut block.columns);
        let Some((key, loaded)) = cells.next() else { return Ok(()) };
        rooms.key.clear();
        loaded.key(key, &mut rooms.key).map_err(at(key))?;
        let key_len = rooms.key.len();
        for (column, loaded) in cells {
            let cell = loaded.cell(column).map_err(at(column))?;
            rooms.key.truncate(key_len);
            rooms.key.extend_from_slice(column.suffix.as_bytes());
            let value = match cell {
                Cell::Null => continue,
                Cell::One(index) => loaded.values.one(index, column).map_err(at(column))?,
                Cell::List(range) if range.is_empty() => Value::EmptyList,
                Cell::List(range) => {
                    let singles = self.singles.wants(&rooms.key);
                    let list = loaded.values.list(range, column, singles, &mut rooms.value);
                    list.map_err(at(column))?
                }
            };
            sink.row(row, &rooms.key, value).map_err(|e| at(key)(Refusal::of_row(0, e)))?;
        }
        Ok(())
    }
}

/// What a column has in a row.
enum Cell {
    Null,
    /// The value of this index.
    One(usize),
    /// The values of these indices.
    List(Range<usize>),
}

impl Loaded {
    /// Moves on to the next row.
    fn cell(&mut self, column: &Column) -> Result<Cell, Refusal> {
        let first = self.next_value;
        if !column.is_list {
            let definition = self.definitions.get(self.next_level).copied();
            self.next_level += 1;
            if definition.unwrap_or(column.present) < column.present {
                return Ok(Cell::Null);
            }
            self.next_value += 1;
            return Ok(Cell::One(first));
        }
        let definition = |level| self.definitions.get(level).copied().unwrap_or(column.present);
        let start = self.next_level;
        let later = self.repetitions.get(start + 1..).unwrap_or_default();
        let len = 1 + later.iter().take_while(|repetition| **repetition > 0).count();
        self.next_level += len;
        if definition(start) <= column.empty {
            let null = definition(start) < column.empty;
            return Ok(if null { Cell::Null } else { Cell::List(first..first) });
        }
        if (start..start + len).any(|level| definition(level) < column.present) {
            return Err(wrong(column, "a list of values", "a null in it"));
        }
        self.next_value += len;
        Ok(Cell::List(first..first + len))
    }

    fn key(&mut self, column: &Column, key: &mut Vec<u8>) -> Result<(), Refusal> {
        let Cell::One(index) = self.cell(column)? else {
            return Err(wrong(column, "a key", "a null"));
        };
        match self.values.one(index, column)? {
            Value::String(text) => key.extend_from_slice(text.as_bytes()),
            Value::Bytes(bytes) => key.extend_from_slice(bytes),
            Value::I64(int) => key.extend_from_slice(itoa::Buffer::new().format(int).as_bytes()),
            _ => return Err(wrong(column, "text, bytes or an integer", "another type")),
        }
        Ok(())
    }
}

impl Values {
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        match self {
            Self::Bytes(values) => values.get(index).map(ByteArray::data),
            Self::FixedBytes(values) => values.get(index).map(|value| value.data()),
            _ => None,
        }
    }

    fn int(&self, index: usize, column: &Column) -> Result<Option<i64>, Refusal> {
        let unsigned = column.kind == Kind::Unsigned;
        Ok(match self {
            Self::Int32(values) => values
                .get(index)
                .map(|&int| if unsigned { i64::from(int.cast_unsigned()) } else { i64::from(int) }),
            Self::Int64(values) => match values.get(index) {
                Some(&int) if unsigned && int < 0 => {
                    let found = int.cast_unsigned().to_string();
                    return Err(wrong(column, "an integer below 2^63", &found));
                }
                int => int.copied(),
            },
            _ => None,
        })
    }

    fn text(&self, index: usize, column: &Column) -> Result<Option<&str>, Refusal> {
        let Some(bytes) = self.bytes(index) else { return Ok(None) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(wrong(column, "text in UTF-8", "other bytes")),
        }
    }

    fn one(&self, index: usize, column: &Column) -> Result<Value<'_>, Refusal> {
        let value = match (column.kind, self) {
            (Kind::Bool, Self::Bool(values)) => values.get(index).copied().map(Value::Bool),
            (Kind::Float, Self::Float(values)) => {
                values.get(index).map(|&float| Value::F64(f64::from(float)))
            }
            (Kind::Double, Self::Double(values)) => values.get(index).copied().map(Value::F64),
            (Kind::Int | Kind::Unsigned, _) => self.int(index, column)?.map(Value::I64),
            (Kind::Bytes, _) => self.bytes(index).map(Value::Bytes),
            (Kind::Text, _) => self.text(index, column)?.map(Value::String),
            _ => None,
        };
        value.ok_or_else(|| wrong(column, "a value", "none"))
    }

    /// A list that is not empty.
    fn list<'a>(
        &'a self,
        range: Range<usize>,
        column: &Column,
        singles: bool,
        room: &'a mut Room,
    ) -> Result<Value<'a>, Refusal> {
        let missing = || wrong(column, "values", "fewer than the list has elements");
        match (column.kind, self) {
            (Kind::Text, _) => {
                room.strings.clear();
                for index in range {
                    let text = self.text(index, column)?.ok_or_else(missing)?;
                    room.strings.push(text);
                }
                return Ok(Value::StringList(room.strings.as_list()));
            }
            (Kind::Float, Self::Float(values)) => {
                return Ok(Value::F32List(values.get(range).ok_or_else(missing)?));
            }
            (Kind::Double, Self::Double(values)) => {
                let doubles = values.get(range).ok_or_else(missing)?;
                return if singles { narrowed(doubles, column, room) } else { Ok(doubles.into()) };
            }
            _ => {}
        }
        room.ints.clear();
        for index in range {
            room.ints.push(self.int(index, column)?.ok_or_else(missing)?);
        }
        if singles {
            room.singles.clear();
            room.singles.extend(room.ints.iter().map(|int| *int as f32));
            return Ok(Value::F32List(&room.singles));
        }
        Ok(Value::I64List(&room.ints))
    }
}

/// A list as 32-bit floats.
fn narrowed<'a>(
    doubles: &[f64],
    column: &Column,
    room: &'a mut Room,
) -> Result<Value<'a>, Refusal> {
    room.singles.clear();
    for &double in doubles {
        let single = double as f32;
        if double.is_finite() && !single.is_finite() {
            return Err(wrong(
                column,
                "numbers in the range of 32-bit floats",
                &double.to_string(),
            ));
        }
        room.singles.push(single);
    }
    Ok(Value::F32List(&room.singles))
}

#[cold]
fn wrong(column: &Column, expected: &str, found: &str) -> Refusal {
    let expected = format!("{expected} in column \"{}\"", column.name);
    Refusal::Fault(Fault::new(0, expected, found))
}

#[cold]
fn place(row: u64, leaf: usize, refusal: Refusal) -> RowError {
    match refusal {
        Refusal::Sink(error) => RowError::Sink(error),
        Refusal::Fault(fault) => fault.placed(row, leaf as u64 + 1),
    }
}
