//! TSV: `key<TAB>value`, one row on each line, with values of one [`FieldType`].
//!
//! Keys and values are any bytes. The escapes `\t`, `\n`, `\r`, `\\` and `\xNN` represent a tab, a
//! line feed, a carriage return, a backslash and the byte with that hexadecimal number. Lists are
//! written as JSON. Empty lines are skipped.

use crate::error::RowError;
use crate::fault::{Fault, RowFault, Scan};
use crate::field_type::FieldType;
use crate::json::ValueBuffers;
use crate::pattern::F32Keys;
use crate::sink::RowSink;
use crate::text::TextCursor;

/// A parser of TSV.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parser {
    pub(crate) value_type: FieldType,
    pub(crate) f32_keys: F32Keys,
}

/// The buffers of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    key: Vec<u8>,
    field: Vec<u8>,
    value: ValueBuffers,
}

/// Parses TSV with values of this type, and adds each row to the sink.
///
/// # Errors
///
/// Returns [`RowError::Text`] for the first row that is invalid or exceeds a limit of the sink, or
/// [`RowError::Sink`] for any other error of the sink. The rows before it were added.
pub fn parse_tsv(
    lines: &[u8],
    value_type: FieldType,
    sink: &mut impl RowSink,
) -> Result<(), RowError> {
    let parser = Parser { value_type, f32_keys: F32Keys::default() };
    parser.parse(&mut TextCursor::lines(lines), &mut Buffers::default(), sink)
}

impl Parser {
    /// Parses rows until the text ends or the sink is full.
    pub(crate) fn parse<S: RowSink>(
        &self,
        text: &mut TextCursor<'_>,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowError> {
        text.parse(sink, |text, sink| self.line(text, buffers, sink))
    }

    fn line<S: RowSink>(
        &self,
        text: &mut TextCursor<'_>,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let (line, next) = text.line();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.is_empty() {
            self.row(line, text.line, buffers, sink).map_err(|fault| fault.in_field_at(text.at))?;
        }
        text.at = next;
        text.line += 1;
        Ok(())
    }

    fn row<S: RowSink>(
        &self,
        line: &[u8],
        number: u64,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let Some(tab) = memchr::memchr(b'\t', line) else {
            return Err(Fault::new(line.len(), "a tab and a value", "the end of the line").into());
        };
        let start = tab + 1;
        if let Some(second) = memchr::memchr(b'\t', &line[start..]) {
            let expected = "one tab in a line; within a value write \\t";
            return Err(Fault::new(start + second, expected, "a second one").into());
        }
        let key = unescape(&line[..tab], &mut buffers.key)?;
        let as_f32 = self.f32_keys.contains(key);
        let field = &line[start..];
        let value =
            unescape(field, &mut buffers.field).map_err(|fault| fault.in_field_at(start))?;
        let is_borrowed = value.len() == field.len();
        let parsed = self.value_type.parse(value, as_f32, &mut buffers.value).map_err(|fault| {
            if is_borrowed { fault.in_field_at(start) } else { fault.moved_to(start) }
        })?;
        sink.row(number, key, buffers.value.value(parsed)).map_err(|e| RowFault::from_sink(0, e))
    }
}

/// Returns the bytes of a field without escapes: its own if it has none, otherwise those written to
/// `buffer`.
fn unescape<'a>(field: &'a [u8], buffer: &'a mut Vec<u8>) -> Scan<&'a [u8]> {
    let Some(mut backslash) = memchr::memchr(b'\\', field) else { return Ok(field) };
    buffer.clear();
    let mut start = 0;
    loop {
        buffer.extend_from_slice(&field[start..backslash]);
        let (byte, len) = escape(&field[backslash..]).ok_or_else(|| {
            let end = field.len().min(backslash + 4);
            let found = String::from_utf8_lossy(&field[backslash..end]);
            Fault::new(backslash, "one of \\t \\n \\r \\\\ \\xNN", found)
        })?;
        buffer.push(byte);
        start = backslash + len;
        match memchr::memchr(b'\\', &field[start..]) {
            Some(next) => backslash = start + next,
            None => break,
        }
    }
    buffer.extend_from_slice(&field[start..]);
    Ok(buffer)
}

/// Returns the byte that an escape represents, and the length of the escape.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let hex = |digit: &u8| char::from(*digit).to_digit(16);
    Some(match text {
        [_, b't', ..] => (b'\t', 2),
        [_, b'n', ..] => (b'\n', 2),
        [_, b'r', ..] => (b'\r', 2),
        [_, b'\\', ..] => (b'\\', 2),
        [_, b'x', high, low, ..] => ((hex(high)? << 4 | hex(low)?) as u8, 4),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_represent_bytes() {
        let mut buffer = Vec::new();
        for (text, bytes) in [
            (&br"plain"[..], &b"plain"[..]),
            (br"\t\n\r\\", b"\t\n\r\\"),
            (br"a\x00b\xfFc", b"a\0b\xffc"),
            (br"\\t", br"\t"),
        ] {
            assert_eq!(unescape(text, &mut buffer).expect("good escapes"), bytes);
        }
        for text in [&br"\"[..], br"a\", br"\q", br"\x", br"\x0", br"\x0g", br"\\\"] {
            assert!(unescape(text, &mut buffer).is_err(), "{}", text.escape_ascii());
        }
    }
}
