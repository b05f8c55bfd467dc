//! The value of a column in a row.

use nuthatch_snapshot::{StringListBuf, Value};

/// The value of a column in a row.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// SQL's NULL, or a value that is missing.
    Null,
    /// A value that can be stored as it is.
    Value(Value<'a>),
    /// The text of a JSON value, stored as text.
    Json(&'a [u8]),
    /// The text of a JSON array, stored as a list.
    JsonList(&'a [u8]),
}

/// A value that a query can compare a column with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Literal {
    /// An integer.
    Int(i64),
    /// A finite float, in a decimal form that is exact.
    Float(String),
    /// A text.
    Text(String),
}

impl Cell<'_> {
    /// Returns the value as a literal; `None` for other values than numbers and texts.
    pub fn literal(&self) -> Option<Literal> {
        match self {
            Cell::Value(Value::I64(int)) => Some(Literal::Int(*int)),
            Cell::Value(Value::F64(float)) if float.is_finite() => {
                Some(Literal::Float(format!("{float:?}")))
            }
            Cell::Value(Value::String(text)) => Some(Literal::Text((*text).to_owned())),
            _ => None,
        }
    }
}

/// Buffers for values that differ from their form in the source. All rows of a thread use them.
#[derive(Debug, Default)]
pub struct CellBuffers {
    /// Bytes, such as those of a decoded text.
    pub bytes: Vec<u8>,
    /// Decoded text of a protocol.
    pub decoded: Vec<u8>,
    /// A text.
    pub text: String,
    /// A list of integers.
    pub i64s: Vec<i64>,
    /// A list of floats of 64 bits.
    pub f64s: Vec<f64>,
    /// A list of floats of 32 bits.
    pub f32s: Vec<f32>,
    /// A list of strings.
    pub strings: StringListBuf,
}

/// A row of a source.
pub trait Row {
    /// Returns the value of the column at this index.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found if the value cannot be stored.
    fn cell<'r>(&'r self, column: usize, buffers: &'r mut CellBuffers) -> Result<Cell<'r>, String>;
}
