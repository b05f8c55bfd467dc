//! Rows of `COPY … TO STDOUT` in its binary format: a number of values for each row, then the
//! length and the bytes of each value. Server and reader need less time for it than for text, but
//! each type needs a decoder. So it is used for queries all of whose columns have one.

#![expect(clippy::big_endian_bytes, reason = "the protocol's numbers are big-endian")]

use super::rows::CopyRows;
use crate::error::Error;
use crate::sources::{RowReceiver, Stop};
use nuthatch_rows::{Cell, CellBuffers, Row};
use nuthatch_snapshot::Value;
use std::fmt::Write as _;
use tokio_postgres::types::{Kind, Type};

/// The start of the format. Four bytes with flags follow, then the length of an extension.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
const HEADER_LEN: usize = SIGNATURE.len() + 8;
/// The length of a value that is NULL, and the number of values after the last row.
const NONE: i32 = -1;
/// The version of the binary form of `jsonb`, before its text.
const JSONB_VERSION: u8 = 1;

/// How the bytes of a column become a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryDecoder {
    Bool,
    Int,
    Oid,
    Float,
    Bytes,
    Json,
    Jsonb,
    Uuid,
    Text,
}

impl BinaryDecoder {
    /// Returns the decoder of a type. `None` if its text is needed.
    pub(super) fn of(column_type: &Type) -> Option<Self> {
        Some(match column_type.kind() {
            Kind::Domain(base) => return Self::of(base),
            Kind::Enum(_) => Self::Text,
            _ => match *column_type {
                Type::BOOL => Self::Bool,
                Type::INT2 | Type::INT4 | Type::INT8 => Self::Int,
                Type::OID => Self::Oid,
                // The text of a shorter float is another number with 64 bits.
                Type::FLOAT8 => Self::Float,
                Type::BYTEA => Self::Bytes,
                Type::JSON => Self::Json,
                Type::JSONB => Self::Jsonb,
                Type::UUID => Self::Uuid,
                Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => Self::Text,
                _ => return None,
            },
        })
    }
}

/// What is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Header,
    Row,
    End,
}

/// The rows of messages. Servers send a message for each row, but need not.
pub(super) struct BinaryRows<'a> {
    decoders: &'a [BinaryDecoder],
    /// The source, for messages.
    name: &'a str,
    next: Next,
    /// The start of a row whose end is in the next message.
    start: Vec<u8>,
    /// The offset and the length of each value of a row; `None` for NULL.
    values: Vec<Option<(usize, usize)>>,
    /// Number of rows.
    count: u64,
}

impl<'a> BinaryRows<'a> {
    /// Returns the rows of a copy that begins.
    pub(super) fn new(decoders: &'a [BinaryDecoder], name: &'a str) -> Self {
        let (start, values) = (Vec::new(), Vec::new());
        Self { decoders, name, next: Next::Header, start, values, count: 0 }
    }

    /// Passes the complete rows at the start of these bytes on. Returns their length.
    fn read(&mut self, bytes: &[u8], receiver: &mut dyn RowReceiver) -> Result<usize, Stop> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let len = match self.next {
                Next::Header => self.header(rest),
                Next::Row => self.row(rest),
                Next::End if rest.is_empty() => Ok(None),
                Next::End => Err("expected no bytes after the last row".to_owned()),
            };
            let len = len.map_err(|message| {
                Error::source(self.name, format!("copy: row {}: {message}", self.count + 1))
            })?;
            let Some(len) = len else { return Ok(at) };
            if !self.values.is_empty() {
                let row = BinaryRow { decoders: self.decoders, bytes: rest, values: &self.values };
                receiver.row(&row)?;
                self.count += 1;
                self.values.clear();
            }
            at += len;
        }
    }

    /// Reads the header. Returns its length, or `None` if more bytes are needed.
    fn header(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let signature_len = SIGNATURE.len().min(bytes.len());
        if bytes[..signature_len] != SIGNATURE[..signature_len] {
            return Err("expected the signature of the binary format".to_owned());
        }
        let Some(extension) = int(bytes, HEADER_LEN - 4) else { return Ok(None) };
        let extension = usize::try_from(extension).map_err(|_| {
            format!("expected the length of the header's extension, found {extension}")
        })?;
        let len = HEADER_LEN + extension;
        if bytes.len() < len {
            return Ok(None);
        }
        self.next = Next::Row;
        Ok(Some(len))
    }

    /// Finds the values of a row. Returns its length, or `None` if more bytes are needed.
    fn row(&mut self, bytes: &[u8]) -> Result<Option<usize>, String> {
        let Some(count) = bytes.first_chunk() else { return Ok(None) };
        let (found, expected) = (i32::from(i16::from_be_bytes(*count)), self.decoders.len());
        let mut at = count.len();
        if found == NONE {
            self.next = Next::End;
            return Ok(Some(at));
        }
        if usize::try_from(found) != Ok(expected) {
            return Err(format!("expected {expected} values, found {found}"));
        }
        for _ in 0..expected {
            let len = int(bytes, at);
            at += 4;
            let value = match len {
                Some(NONE) => None,
                Some(len) => {
                    let len = usize::try_from(len)
                        .map_err(|_| format!("expected the length of a value, found {len}"))?;
                    at += len;
                    Some((at - len, len))
                }
                None => {
                    self.values.clear();
                    return Ok(None);
                }
            };
            self.values.push(value);
        }
        if bytes.len() < at {
            self.values.clear();
            return Ok(None);
        }
        Ok(Some(at))
    }
}

impl CopyRows for BinaryRows<'_> {
    fn take(&mut self, message: &[u8], receiver: &mut dyn RowReceiver) -> Result<(), Stop> {
        if self.start.is_empty() {
            let read = self.read(message, receiver)?;
            self.start.extend_from_slice(&message[read..]);
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.start);
        bytes.extend_from_slice(message);
        let read = self.read(&bytes, receiver)?;
        bytes.drain(..read);
        self.start = bytes;
        Ok(())
    }

    fn end(&self) -> Result<u64, Stop> {
        if self.next == Next::End {
            return Ok(self.count);
        }
        let message = format!("copy: expected the end of the rows, found {} rows", self.count);
        Err(Error::source(self.name, message).into())
    }
}

/// Returns the number at an offset.
fn int(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
}

/// A row.
struct BinaryRow<'a> {
    decoders: &'a [BinaryDecoder],
    bytes: &'a [u8],
    values: &'a [Option<(usize, usize)>],
}

impl Row for BinaryRow<'_> {
    fn cell<'r>(&'r self, column: usize, buffers: &'r mut CellBuffers) -> Result<Cell<'r>, String> {
        let Some((start, len)) = self.values[column] else { return Ok(Cell::Null) };
        let bytes = &self.bytes[start..start + len];
        let wrong_len = |expected: &str| format!("expected {expected} bytes, found {len}");
        let value = match self.decoders[column] {
            BinaryDecoder::Text => {
                Value::String(std::str::from_utf8(bytes).map_err(|error| error.to_string())?)
            }
            BinaryDecoder::Int => Value::I64(match *bytes {
                [a, b] => i16::from_be_bytes([a, b]).into(),
                [a, b, c, d] => i32::from_be_bytes([a, b, c, d]).into(),
                _ => i64::from_be_bytes(bytes.try_into().map_err(|_| wrong_len("2, 4 or 8"))?),
            }),
            BinaryDecoder::Oid => {
                let oid = bytes.try_into().map_err(|_| wrong_len("4"))?;
                Value::I64(u32::from_be_bytes(oid).into())
            }
            BinaryDecoder::Float => {
                let float = f64::from_be_bytes(bytes.try_into().map_err(|_| wrong_len("8"))?);
                // As text, all of them are the same.
                Value::F64(if float.is_nan() { f64::NAN } else { float })
            }
            BinaryDecoder::Bool => Value::Bool(bytes == [1]),
            BinaryDecoder::Bytes => Value::Bytes(bytes),
            BinaryDecoder::Json => return Ok(Cell::Json(bytes)),
            BinaryDecoder::Jsonb => {
                let version = || "expected version 1 of jsonb".to_owned();
                return bytes.strip_prefix(&[JSONB_VERSION]).map(Cell::Json).ok_or_else(version);
            }
            BinaryDecoder::Uuid => {
                let uuid = bytes.try_into().map_err(|_| wrong_len("16"))?;
                push_uuid(u128::from_be_bytes(uuid), &mut buffers.text);
                Value::String(&buffers.text)
            }
        };
        Ok(Cell::Value(value))
    }
}

/// Sets `text` to the text of a UUID.
fn push_uuid(uuid: u128, text: &mut String) {
    let part = |from: u32, digits: u32| (uuid >> from) & ((1 << (4 * digits)) - 1);
    text.clear();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        part(96, 8),
        part(80, 4),
        part(64, 4),
        part(48, 4),
        part(0, 12)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps all rows as text.
    #[derive(Default)]
    struct Texts(Vec<String>);

    impl RowReceiver for Texts {
        fn set_columns(&mut self, _names: &[String]) -> Result<(), Stop> {
            Ok(())
        }

        fn row(&mut self, row: &dyn Row) -> Result<(), Stop> {
            let mut buffers = CellBuffers::default();
            let texts: Vec<_> = (0..2)
                .map(|column| match row.cell(column, &mut buffers) {
                    Ok(Cell::Value(value)) => format!("{value:?}"),
                    other => format!("{other:?}"),
                })
                .collect();
            self.0.push(texts.join(" "));
            Ok(())
        }
    }

    const DECODERS: [BinaryDecoder; 2] = [BinaryDecoder::Int, BinaryDecoder::Text];

    fn rows(rows: &[[Option<&[u8]>; 2]]) -> Vec<u8> {
        let mut copy = [SIGNATURE, &[0; 7], &[2, b'e', b'x']].concat();
        for row in rows {
            copy.extend_from_slice(&2_i16.to_be_bytes());
            for value in row {
                let len = value.map_or(NONE, |value| i32::try_from(value.len()).unwrap_or(0));
                copy.extend_from_slice(&len.to_be_bytes());
                copy.extend_from_slice(value.unwrap_or_default());
            }
        }
        copy.extend_from_slice(&(-1_i16).to_be_bytes());
        copy
    }

    #[test]
    fn rows_may_end_anywhere_in_a_message() {
        let copy = rows(&[
            [Some(&7_i64.to_be_bytes()), Some("Λ\t".as_bytes())],
            [None, Some(b"")],
            [Some(&(-2_i16).to_be_bytes()), None],
        ]);
        let expected = ["I64(7) String(\"Λ\\t\")", "Ok(Null) String(\"\")", "I64(-2) Ok(Null)"];
        for len in 1..=copy.len() {
            let (mut texts, mut rows) = (Texts::default(), BinaryRows::new(&DECODERS, "source"));
            for message in copy.chunks(len) {
                assert!(rows.end().is_err());
                assert!(rows.take(message, &mut texts).is_ok());
            }
            assert_eq!(texts.0, expected);
            assert!(rows.end().is_ok_and(|count| count == 3));
        }
    }

    #[test]
    fn bytes_that_are_no_rows_are_errors() {
        let error = |copy: &[u8]| {
            let (mut texts, mut rows) = (Texts::default(), BinaryRows::new(&DECODERS, "source"));
            match rows.take(copy, &mut texts) {
                Err(Stop::Fault(error)) => error.to_string(),
                _ => "no error".to_owned(),
            }
        };
        let header = |more: &[u8]| [&rows(&[])[..HEADER_LEN + 2], more].concat();
        for (copy, expected) in [
            (b"1\tAda".to_vec(), "row 1: expected the signature of the binary format"),
            (header(&[0, 3]), "row 1: expected 2 values, found 3"),
            (header(&[0xff, 0xfe]), "row 1: expected 2 values, found -2"),
            (header(&[0, 2, 0xff, 0xff, 0xff, 0xfe]), "expected the length of a value, found -2"),
            (header(&[0xff, 0xff, 0]), "expected no bytes after the last row"),
        ] {
            let found = error(&copy);
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn types_whose_text_is_needed_have_no_decoder() {
        let decoders = [Type::INT2, Type::TEXT, Type::UUID].map(|found| BinaryDecoder::of(&found));
        assert!(decoders.iter().all(Option::is_some));
        let others = [Type::FLOAT4, Type::NUMERIC, Type::DATE, Type::INT4_ARRAY];
        assert_eq!(others.map(|found| BinaryDecoder::of(&found)), [None; 4]);
    }

    #[test]
    fn values_of_another_length_are_errors() {
        let mut buffers = CellBuffers::default();
        for decoder in [BinaryDecoder::Int, BinaryDecoder::Oid, BinaryDecoder::Uuid] {
            let row = BinaryRow { decoders: &[decoder], bytes: &[0; 3], values: &[Some((0, 3))] };
            let error = row.cell(0, &mut buffers).expect_err("an error");
            assert!(error.contains("bytes, found 3"), "{error}");
        }
    }
}
