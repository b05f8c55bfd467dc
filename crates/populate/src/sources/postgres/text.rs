//! Rows of `COPY … TO STDOUT` in its text format: a line for each row, with tabs between values.

use super::array;
use super::rows::CopyRows;
use crate::error::Error;
use crate::sources::{RowReceiver, Stop};
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
}

/// The lines of messages. Servers send a message for each line, but need not.
pub(super) struct Lines<'a> {
    /// The names of the columns, for messages.
    names: &'a [String],
    decoders: &'a [ColumnDecoder],
    /// The source, for messages.
    name: &'a str,
    /// The start of a line whose end is in the next message.
    start: Vec<u8>,
    /// The offset after each complete value of the line.
    ends: Vec<usize>,
    /// Whether the line has a backslash.
    has_escapes: bool,
    /// Number of lines.
    count: u64,
}

impl CopyRows for Lines<'_> {
    fn take(&mut self, message: &[u8], receiver: &mut dyn RowReceiver) -> Result<(), Stop> {
        let mut line_start = 0;
        for at in memchr::memchr3_iter(b'\t', b'\n', b'\\', message) {
            match message[at] {
                b'\t' => self.ends.push(self.start.len() + at - line_start),
                b'\n' => {
                    self.pass_on(&message[line_start..at], receiver)?;
                    line_start = at + 1;
                }
                _ => self.has_escapes = true,
            }
        }
        self.start.extend_from_slice(&message[line_start..]);
        Ok(())
    }

    fn end(&self) -> Result<u64, Stop> {
        Ok(self.count)
    }
}

impl<'a> Lines<'a> {
    /// Returns the lines of a copy that begins, with the names and the decoders of its columns.
    pub(super) fn new(
        (names, decoders): (&'a [String], &'a [ColumnDecoder]),
        name: &'a str,
    ) -> Self {
        let (start, ends) = (Vec::new(), Vec::new());
        Self { names, decoders, name, start, ends, has_escapes: false, count: 0 }
    }

    /// Passes a line on, which ends with these bytes.
    fn pass_on(&mut self, end: &[u8], receiver: &mut dyn RowReceiver) -> Result<(), Stop> {
        let Self { names, decoders, name, start, ends, has_escapes, count } = self;
        let line = if start.is_empty() {
            end
        } else {
            start.extend_from_slice(end);
            &start[..]
        };
        ends.push(line.len());
        let (expected, found) = (decoders.len(), ends.len());
        if found != expected {
            let message = format!("copy: expected {expected} values in a line, found {found}");
            return Err(Error::source(name, message).into());
        }
        let line = std::str::from_utf8(line).map_err(|error| {
            let column = ends.iter().position(|end| error.valid_up_to() < *end).unwrap_or_default();
            let (row, column) = (*count + 1, &names[column]);
            Error::source(name, format!("row {row}: column \"{column}\": {error}"))
        })?;
        receiver.row(&CopyLine { decoders, line, ends, has_escapes: *has_escapes })?;
        *count += 1;
        start.clear();
        ends.clear();
        *has_escapes = false;
        Ok(())
    }
}

/// A line: the values of a row.
struct CopyLine<'a> {
    decoders: &'a [ColumnDecoder],
    line: &'a str,
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
        let text = if self.has_escapes {
            if raw == "\\N" {
                return Ok(Cell::Null);
            }
            unescape(raw.as_bytes(), bytes);
            std::str::from_utf8(bytes).map_err(|error| error.to_string())?
        } else {
            raw
        };
        let decoder = self.decoders[column];
        Ok(match decoder {
            ColumnDecoder::Text => Cell::Value(Value::String(text)),
            ColumnDecoder::Int => {
                let int = text.parse().map_err(|_| format!("expected an integer, found {text}"))?;
                Cell::Value(Value::I64(int))
            }
            ColumnDecoder::Float => {
                let float = fast_float2::parse(text);
                let float = float.map_err(|_| format!("expected a float, found {text}"))?;
                Cell::Value(Value::F64(float))
            }
            ColumnDecoder::Bool => Cell::Value(Value::Bool(text == "t")),
            ColumnDecoder::Json => Cell::Json(text.as_bytes()),
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

    /// Keeps the text of all rows.
    #[derive(Default)]
    struct Texts(Vec<Vec<String>>);

    impl RowReceiver for Texts {
        fn set_columns(&mut self, _names: &[String]) -> Result<(), Stop> {
            Ok(())
        }

        fn row(&mut self, row: &dyn Row) -> Result<(), Stop> {
            let mut buffers = CellBuffers::default();
            let text = |column| match row.cell(column, &mut buffers) {
                Ok(Cell::Value(Value::String(text))) => text.to_owned(),
                other => format!("{other:?}"),
            };
            self.0.push((0..2).map(text).collect());
            Ok(())
        }
    }

    fn names() -> [String; 2] {
        ["id".to_owned(), "name".to_owned()]
    }

    const DECODERS: [ColumnDecoder; 2] = [ColumnDecoder::Text; 2];

    #[test]
    fn lines_may_end_anywhere_in_a_message() {
        let copy = "1\tAda\n2\ttab\\tin it\n3\t\\N\n4\tΛ\n".as_bytes();
        let expected = [["1", "Ada"], ["2", "tab\tin it"], ["3", "Ok(Null)"], ["4", "Λ"]];
        for len in 1..=copy.len() {
            let (names, mut texts) = (names(), Texts::default());
            let mut lines = Lines::new((&names, &DECODERS), "source");
            for message in copy.chunks(len) {
                assert!(lines.take(message, &mut texts).is_ok());
            }
            assert_eq!(
                (&texts.0[..], lines.count),
                (&expected.map(|row| row.map(str::to_owned).to_vec())[..], 4)
            );
        }
    }

    #[test]
    fn lines_that_cannot_be_read_are_errors() {
        let error = |copy: &[u8]| {
            let (names, mut texts) = (names(), Texts::default());
            match Lines::new((&names, &DECODERS), "source").take(copy, &mut texts) {
                Err(Stop::Fault(error)) => error.to_string(),
                _ => "no error".to_owned(),
            }
        };
        let text = error(b"1\tAda\n2\t\xff\n");
        assert!(text.contains("row 2: column \"name\": invalid utf-8"), "{text}");
        let text = error(b"1\tAda\tx\n");
        assert!(text.contains("expected 2 values in a line, found 3"), "{text}");
    }

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
