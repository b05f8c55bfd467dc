//! Rows of `COPY … TO STDOUT` in its text format: a line for each row, with tabs between values.

use super::array;
use super::connect::{Connection, failure};
use crate::error::Error;
use crate::sources::{RowReceiver, Stop};
use futures_util::{StreamExt, pin_mut};
use nuthatch_rows::{Cell, CellBuffers, Row};
use nuthatch_snapshot::Value;
use tokio_postgres::types::{Kind, Type};

/// How the text of a column becomes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnDecoder {
    Bool,
    Int,
    Float,
    Bytes,
    Json,
    Text,
    IntArray,
    F32Array,
    F64Array,
    TextArray,
    Vector,
}

impl ColumnDecoder {
    /// Returns the decoder of a type.
    pub(super) fn of(column_type: &Type) -> Self {
        match column_type.kind() {
            // Elements of other arrays are separated by commas; vectors have no braces.
            Kind::Array(element)
                if *element == Type::BOX
                    || *column_type == Type::INT2_VECTOR
                    || *column_type == Type::OID_VECTOR =>
            {
                Self::Text
            }
            Kind::Array(element) => match Self::of(element) {
                Self::Int => Self::IntArray,
                Self::Float if *element == Type::FLOAT4 => Self::F32Array,
                Self::Float => Self::F64Array,
                Self::Text => Self::TextArray,
                _ => Self::Text,
            },
            Kind::Domain(base) => Self::of(base),
            _ => match column_type {
                &Type::BOOL => Self::Bool,
                &Type::INT2 | &Type::INT4 | &Type::INT8 | &Type::OID => Self::Int,
                &Type::FLOAT4 | &Type::FLOAT8 => Self::Float,
                &Type::BYTEA => Self::Bytes,
                &Type::JSON | &Type::JSONB => Self::Json,
                other if matches!(other.name(), "vector" | "halfvec") => Self::Vector,
                _ => Self::Text,
            },
        }
    }

    /// Returns whether values are integers.
    pub(super) fn is_int(self) -> bool {
        self == Self::Int
    }
}

/// The columns of a query.
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    pub(super) decoders: Vec<ColumnDecoder>,
}

/// Copies the rows of a query to the receiver. Returns their number.
pub(super) fn copy(
    connection: &Connection,
    query: &str,
    decoders: &[ColumnDecoder],
    receiver: &mut dyn RowReceiver,
) -> Result<u64, Stop> {
    let name = &connection.name;
    // Both kinds of ends of the copy: of the connection, and of the receiver.
    connection.run(async |client, interruption| {
        let copy = format!("copy ({query}\n) to stdout");
        let fault = |error| failure(name, &error);
        let stream = interruption.or(client.copy_out(&copy)).await?.map_err(fault)?;
        pin_mut!(stream);
        let mut lines = Lines { decoders, name, start: Vec::new(), ends: Vec::new(), count: 0 };
        while let Some(message) = interruption.or(stream.next()).await? {
            if let Err(stop) = lines.take(&message.map_err(fault)?, receiver) {
                return Ok(Err(stop));
            }
        }
        Ok(Ok(lines.count))
    })?
}

/// The lines of messages.
struct Lines<'a> {
    decoders: &'a [ColumnDecoder],
    name: &'a str,
    /// The start of a line whose end is in the next message.
    start: Vec<u8>,
    ends: Vec<usize>,
    /// Number of lines.
    count: u64,
}

impl Lines<'_> {
    /// Passes the lines of a message on. Servers send a message for each line, but need not.
    fn take(&mut self, message: &[u8], receiver: &mut dyn RowReceiver) -> Result<(), Stop> {
        receiver.count_bytes(message.len() as u64);
        let Self { decoders, name, start, ends, count } = self;
        let mut rest = message;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let line = if start.is_empty() {
                &rest[..end]
            } else {
                start.extend_from_slice(&rest[..end]);
                &*start
            };
            find_ends(line, decoders.len(), ends)
                .map_err(|message| Error::source(name, message))?;
            let has_escapes = memchr::memchr(b'\\', line).is_some();
            receiver.row(&CopyLine { decoders, line, ends, has_escapes })?;
            *count += 1;
            start.clear();
            rest = &rest[end + 1..];
        }
        start.extend_from_slice(rest);
        Ok(())
    }
}

/// Finds the offset after each value of a line: of the tab, or of the end of the line.
fn find_ends(line: &[u8], expected: usize, ends: &mut Vec<usize>) -> Result<(), String> {
    ends.clear();
    ends.extend(memchr::memchr_iter(b'\t', line));
    ends.push(line.len());
    match ends.len() {
        found if found == expected => Ok(()),
        found => Err(format!("copy: expected {expected} values in a line, found {found}")),
    }
}

/// A line: the values of a row.
struct CopyLine<'a> {
    decoders: &'a [ColumnDecoder],
    line: &'a [u8],
    /// The offset after each value.
    ends: &'a [usize],
    /// Whether any value has a backslash. Most lines have none.
    has_escapes: bool,
}

impl Row for CopyLine<'_> {
    fn cell<'r>(&'r self, column: usize, buffers: &'r mut CellBuffers) -> Result<Cell<'r>, String> {
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before] + 1);
        let raw = &self.line[start..self.ends[column]];
        let CellBuffers { bytes, decoded, text: unescaped, i64s, f64s, f32s, strings } = buffers;
        let plain = if self.has_escapes {
            if raw == b"\\N" {
                return Ok(Cell::Null);
            }
            unescape(raw, bytes);
            &bytes[..]
        } else {
            raw
        };
        let decoder = self.decoders[column];
        if decoder == ColumnDecoder::Float
            && let Ok(float) = fast_float2::parse(plain)
        {
            return Ok(Cell::Value(Value::F64(float)));
        }
        let text = std::str::from_utf8(plain).map_err(|error| error.to_string())?;
        Ok(match decoder {
            ColumnDecoder::Text => Cell::Value(Value::String(text)),
            ColumnDecoder::Int => {
                let int = text.parse().map_err(|_| format!("expected an integer, found {text}"))?;
                Cell::Value(Value::I64(int))
            }
            ColumnDecoder::Float => return Err(format!("expected a float, found {text}")),
            ColumnDecoder::Bool => Cell::Value(Value::Bool(text == "t")),
            ColumnDecoder::Json => Cell::Json(plain),
            ColumnDecoder::Bytes => {
                decode_hex(text, decoded)?;
                Cell::Value(Value::Bytes(decoded))
            }
            ColumnDecoder::IntArray => {
                array::ints(text, unescaped, i64s)?;
                Cell::Value(Value::I64List(i64s))
            }
            ColumnDecoder::F32Array => {
                array::floats(text, unescaped, f32s)?;
                Cell::Value(Value::F32List(f32s))
            }
            ColumnDecoder::F64Array => {
                array::floats(text, unescaped, f64s)?;
                Cell::Value(Value::F64List(f64s))
            }
            ColumnDecoder::TextArray => {
                array::texts(text, unescaped, strings)?;
                Cell::Value(Value::StringList(strings.as_list()))
            }
            ColumnDecoder::Vector => {
                array::vector(text, f32s)?;
                Cell::Value(Value::F32List(f32s))
            }
        })
    }
}

/// Removes the escapes of `COPY`.
fn unescape(raw: &[u8], plain: &mut Vec<u8>) {
    plain.clear();
    let mut bytes = raw.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                Some(&other) => other,
                None => b'\\',
            },
            byte => byte,
        });
    }
}

/// Decodes bytes in the form `\\x0102`.
fn decode_hex(text: &str, decoded: &mut Vec<u8>) -> Result<(), String> {
    decoded.clear();
    let wrong = || "expected bytes in hexadecimal".to_owned();
    let digits = text.strip_prefix("\\x").ok_or_else(wrong)?.as_bytes();
    for pair in digits.chunks(2) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2);
        let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        decoded.push(byte.ok_or_else(wrong)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_removed() {
        let mut plain = Vec::new();
        unescape(br"a\tb\\c\nd", &mut plain);
        assert_eq!(plain, b"a\tb\\c\nd");
    }

    #[test]
    fn bytes_are_decoded() {
        let mut decoded = Vec::new();
        decode_hex("\\x00ff", &mut decoded).expect("bytes");
        assert_eq!(decoded, [0, 255]);
        assert!(decode_hex("\\x0", &mut decoded).is_err());
        assert!(decode_hex("00", &mut decoded).is_err());
    }
}
