//! The value of a column in a row.

use nuthatch_snapshot::{StringListBuf, Value};

/// The value of a column in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
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
pub(crate) enum Literal {
    Int(i64),
    /// A finite float, in a decimal form that is exact.
    Float(String),
    Text(String),
}

impl Cell<'_> {
    /// Returns the value as a literal; `None` for other values than numbers and texts.
    pub(crate) fn literal(&self) -> Option<Literal> {
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
pub(crate) struct CellBuffers {
    pub(crate) bytes: Vec<u8>,
    pub(crate) decoded: Vec<u8>,
    pub(crate) text: String,
    pub(crate) i64s: Vec<i64>,
    pub(crate) f64s: Vec<f64>,
    pub(crate) f32s: Vec<f32>,
    pub(crate) strings: StringListBuf,
}

/// A row of a source.
pub(crate) trait Row {
    /// Returns the value of the column at this index.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found if the value cannot be stored.
    fn cell<'r>(&'r self, column: usize, buffers: &'r mut CellBuffers) -> Result<Cell<'r>, String>;
}
