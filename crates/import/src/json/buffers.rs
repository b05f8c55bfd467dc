//! Values while their row is parsed: in the text, or in buffers that all rows of a thread reuse.

use nuthatch_snapshot::{StringListBuf, Value};

/// Buffers for values that differ from their text, such as unescaped strings. Each thread has one,
/// for all rows.
#[derive(Debug, Default)]
pub(crate) struct ValueBuffers {
    pub(crate) text: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) i64s: Vec<i64>,
    pub(crate) f64s: Vec<f64>,
    pub(crate) f32s: Vec<f32>,
    pub(crate) strings: StringListBuf,
}

/// A parsed value: the value itself, a reference into the text, or the name of the buffer in
/// [`ValueBuffers`] that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParsedValue<'t> {
    /// Bytes of the text.
    Bytes(&'t [u8]),
    /// Bytes in the buffers.
    BufferedBytes,
    /// A string of the text.
    String(&'t str),
    /// A string in the buffers.
    BufferedString,
    Bool(bool),
    I64(i64),
    F64(f64),
    I64List,
    F64List,
    F32List,
    StringList,
    EmptyList,
}

impl ValueBuffers {
    /// Returns the value that was parsed last.
    #[inline]
    pub(crate) fn value<'a>(&'a mut self, parsed: ParsedValue<'a>) -> Value<'a> {
        match parsed {
            ParsedValue::Bytes(bytes) => Value::Bytes(bytes),
            ParsedValue::BufferedBytes => Value::Bytes(&self.bytes),
            ParsedValue::String(text) => Value::String(text),
            ParsedValue::BufferedString => Value::String(&self.text),
            ParsedValue::Bool(bool) => Value::Bool(bool),
            ParsedValue::I64(int) => Value::I64(int),
            ParsedValue::F64(float) => Value::F64(float),
            ParsedValue::I64List => Value::I64List(&self.i64s),
            ParsedValue::F64List => Value::F64List(&self.f64s),
            ParsedValue::F32List => Value::F32List(&self.f32s),
            ParsedValue::StringList => Value::StringList(self.strings.as_list()),
            ParsedValue::EmptyList => Value::EmptyList,
        }
    }
}
