//! The values of a batch in the columnar form of Arrow.

use super::column::{ArrowColumn, Bits, Buffer, Column};
use super::{Batch, Problem, check};
use nuthatch_snapshot::{StringList, Value, ValueType};
use pyo3::prelude::*;
use std::ffi::CStr;

/// Returns the values as a column, with nulls for missing keys.
pub(super) fn column(py: Python<'_>, batch: &Batch<'_>) -> PyResult<ArrowColumn> {
    let column = py.detach(|| build(batch));
    let column = column.map_err(|problem| batch.exception(py, &problem))?;
    batch.held.check_readable(py)?;
    Ok(ArrowColumn::new(column))
}

/// Builds the column, without the interpreter's lock.
fn build(batch: &Batch<'_>) -> Result<Column, Problem> {
    let len = batch.values.len();
    let Some(value_type) = batch.value_type() else {
        // There are only missing keys, or empty lists: a list of nulls.
        let has_lists = batch.values.iter().any(Option::is_some);
        let value_type = if has_lists { ValueType::StringList } else { return Ok(nulls(len)) };
        return fill(batch, Builder::of(value_type, len)?, value_type);
    };
    fill(batch, Builder::of(value_type, len)?, value_type)
}

fn nulls(len: usize) -> Column {
    Column { format: c"n", len, nulls: len, buffers: Vec::new(), children: Vec::new() }
}

fn fill(batch: &Batch<'_>, mut builder: Builder, value_type: ValueType) -> Result<Column, Problem> {
    let mut validity = Bits::default();
    for (index, stored) in batch.values.iter().enumerate() {
        validity.push(stored.is_some());
        match stored {
            Some(stored) => {
                check(index, stored.value_type(), value_type)?;
                builder.push(stored.value()?.as_value());
            }
            None => builder.push_null(),
        }
    }
    Ok(builder.finish(validity))
}

/// The values of a column so far. Offsets have 64 bits, so that no batch is too large.
enum Builder {
    Bools(Bits),
    I64s(Vec<i64>),
    F64s(Vec<f64>),
    Texts(&'static CStr, Texts),
    I64Lists(Vec<i64>, Vec<i64>),
    F64Lists(Vec<i64>, Vec<f64>),
    F32Lists(Vec<i64>, Vec<f32>),
    StringLists(Vec<i64>, Texts),
}

/// Strings or bytes, one after the other, with the offset of each and of the end.
struct Texts {
    offsets: Vec<i64>,
    bytes: Vec<u8>,
}

impl Texts {
    fn with_capacity(len: usize) -> Self {
        Self { offsets: first_offset(len), bytes: Vec::new() }
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.offsets.push(self.bytes.len().cast_signed() as i64);
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn extend(&mut self, list: &StringList<'_>) {
        list.iter().for_each(|text| self.push(text.as_bytes()));
    }

    fn into_buffers(self) -> [Buffer; 2] {
        [Buffer::I64(self.offsets), Buffer::Bytes(self.bytes)]
    }
}

fn first_offset(len: usize) -> Vec<i64> {
    let mut offsets = Vec::with_capacity(len + 1);
    offsets.push(0);
    offsets
}

impl Builder {
    fn of(value_type: ValueType, len: usize) -> Result<Self, Problem> {
        Ok(match value_type {
            ValueType::Bool => Self::Bools(Bits::default()),
            ValueType::I64 => Self::I64s(Vec::with_capacity(len)),
            ValueType::F64 => Self::F64s(Vec::with_capacity(len)),
            ValueType::String => Self::Texts(c"U", Texts::with_capacity(len)),
            ValueType::Bytes => Self::Texts(c"Z", Texts::with_capacity(len)),
            ValueType::I64List => Self::I64Lists(first_offset(len), Vec::new()),
            ValueType::F64List => Self::F64Lists(first_offset(len), Vec::new()),
            ValueType::F32List => Self::F32Lists(first_offset(len), Vec::new()),
            ValueType::StringList => {
                Self::StringLists(first_offset(len), Texts::with_capacity(len))
            }
            // Only as the requested type: a batch of empty lists has none.
            _ => return Err(Problem::NoType),
        })
    }

    /// Appends a value of the type, or an empty list.
    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::Bools(bits), Value::Bool(truth)) => bits.push(truth),
            (Self::I64s(numbers), Value::I64(number)) => numbers.push(number),
            (Self::F64s(numbers), Value::F64(number)) => numbers.push(number),
            (Self::Texts(_, texts), Value::String(text)) => texts.push(text.as_bytes()),
            (Self::Texts(_, texts), Value::Bytes(bytes)) => texts.push(bytes),
            (Self::I64Lists(ends, numbers), Value::I64List(list)) => {
                append(ends, numbers, list);
            }
            (Self::F64Lists(ends, numbers), Value::F64List(list)) => {
                append(ends, numbers, list);
            }
            (Self::F32Lists(ends, numbers), Value::F32List(list)) => {
                append(ends, numbers, list);
            }
            (Self::StringLists(ends, texts), Value::StringList(list)) => {
                texts.extend(&list);
                ends.push(texts.len().cast_signed() as i64);
            }
            (builder, _) => builder.push_null(),
        }
    }

    /// Appends a placeholder for a missing value, or an empty list.
    fn push_null(&mut self) {
        match self {
            Self::Bools(bits) => bits.push(false),
            Self::I64s(numbers) => numbers.push(0),
            Self::F64s(numbers) => numbers.push(0.0),
            Self::Texts(_, texts) => texts.push(b""),
            Self::I64Lists(ends, numbers) => ends.push(numbers.len().cast_signed() as i64),
            Self::F64Lists(ends, numbers) => ends.push(numbers.len().cast_signed() as i64),
            Self::F32Lists(ends, numbers) => ends.push(numbers.len().cast_signed() as i64),
            Self::StringLists(ends, texts) => ends.push(texts.len().cast_signed() as i64),
        }
    }

    fn finish(self, validity: Bits) -> Column {
        let (len, nulls) = (validity.len(), validity.zeros());
        let child = |format, len, buffers: Vec<Buffer>| {
            let buffers = std::iter::once(Buffer::None).chain(buffers).collect();
            vec![Column { format, len, nulls: 0, buffers, children: Vec::new() }]
        };
        let (format, rest, children) = match self {
            Self::Bools(bits) => (c"b", vec![Buffer::Bytes(bits.into_bytes())], Vec::new()),
            Self::I64s(numbers) => (c"l", vec![Buffer::I64(numbers)], Vec::new()),
            Self::F64s(numbers) => (c"g", vec![Buffer::F64(numbers)], Vec::new()),
            Self::Texts(format, texts) => (format, texts.into_buffers().into(), Vec::new()),
            Self::I64Lists(ends, numbers) => {
                let child = child(c"l", numbers.len(), vec![Buffer::I64(numbers)]);
                (c"+L", vec![Buffer::I64(ends)], child)
            }
            Self::F64Lists(ends, numbers) => {
                let child = child(c"g", numbers.len(), vec![Buffer::F64(numbers)]);
                (c"+L", vec![Buffer::I64(ends)], child)
            }
            Self::F32Lists(ends, numbers) => {
                let child = child(c"f", numbers.len(), vec![Buffer::F32(numbers)]);
                (c"+L", vec![Buffer::I64(ends)], child)
            }
            Self::StringLists(ends, texts) => {
                let child = child(c"U", texts.len(), texts.into_buffers().into());
                (c"+L", vec![Buffer::I64(ends)], child)
            }
        };
        let bitmap = Buffer::Bytes(validity.into_bytes());
        let buffers = std::iter::once(bitmap).chain(rest).collect();
        Column { format, len, nulls, buffers, children }
    }
}

fn append<T: Copy>(ends: &mut Vec<i64>, numbers: &mut Vec<T>, list: &[T]) {
    numbers.extend_from_slice(list);
    ends.push(numbers.len().cast_signed() as i64);
}
