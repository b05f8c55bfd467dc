//! TSV: `key<TAB>value`, one row to a line, values of the type that `--type` tells.
//!
//! Keys and values are any bytes. `\t`, `\n`, `\r`, `\\` and `\xNN` stand for a tab, a line feed,
//! a carriage return, a backslash and the byte with that hexadecimal number. Lists are written as
//! JSON. Empty lines are skipped.

use super::error::{Fault, Refusal, RowError, Scan};
use super::json::Room;
use super::patterns::Singles;
use super::rows::{RowSink, Text};
use super::typed::Type;

/// A parser of TSV.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parser {
    pub(crate) value_type: Type,
    pub(crate) singles: Singles,
}

/// What a thread needs besides the text.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    key: Vec<u8>,
    field: Vec<u8>,
    value: Room,
}

/// Parses whole lines, and hands each row to the sink.
pub fn parse_tsv(lines: &[u8], value_type: Type, sink: &mut impl RowSink) -> Result<(), RowError> {
    let parser = Parser { value_type, singles: Singles::default() };
    parser.parse(&mut Text::lines(lines), &mut Rooms::default(), sink)
}

impl Parser {
    pub(crate) fn parse<S: RowSink>(
        &self,
        text: &mut Text<'_>,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), RowError> {
        text.parse(sink, |text, sink| self.line(text, rooms, sink))
    }

    fn line<S: RowSink>(
        &self,
        text: &mut Text<'_>,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let (line, next) = text.line();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.is_empty() {
            self.row(line, text.line, rooms, sink).map_err(|refusal| refusal.within(text.at))?;
        }
        text.at = next;
        text.line += 1;
        Ok(())
    }

    fn row<S: RowSink>(
        &self,
        line: &[u8],
        number: u64,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let Some(tab) = memchr::memchr(b'\t', line) else {
            return Err(Fault::new(line.len(), "a tab and a value", "the end of the line").into());
        };
        let start = tab + 1;
        if let Some(second) = memchr::memchr(b'\t', &line[start..]) {
            let expected = "one tab in a line; within a value write \\t";
            return Err(Fault::new(start + second, expected, "a second one").into());
        }
        let key = unescape(&line[..tab], &mut rooms.key)?;
        let singles = self.singles.wants(key);
        let field = &line[start..];
        let value = unescape(field, &mut rooms.field).map_err(|fault| fault.within(start))?;
        let borrowed = value.len() == field.len();
        let shape = self
            .value_type
            .shape(value, singles, &mut rooms.value)
            .map_err(|fault| if borrowed { fault.within(start) } else { fault.moved(start) })?;
        sink.row(number, key, rooms.value.value(shape)).map_err(|e| Refusal::of_row(0, e))
    }
}

/// The bytes that a field stands for: its own, or made in `room` where it has escapes.
fn unescape<'a>(field: &'a [u8], room: &'a mut Vec<u8>) -> Scan<&'a [u8]> {
    let Some(mut backslash) = memchr::memchr(b'\\', field) else { return Ok(field) };
    room.clear();
    let mut start = 0;
    loop {
        room.extend_from_slice(&field[start..backslash]);
        let (byte, len) = escape(&field[backslash..]).ok_or_else(|| {
            let end = field.len().min(backslash + 4);
            let found = String::from_utf8_lossy(&field[backslash..end]);
            Fault::new(backslash, "one of \\t \\n \\r \\\\ \\xNN", found)
        })?;
        room.push(byte);
        start = backslash + len;
        match memchr::memchr(b'\\', &field[start..]) {
            Some(next) => backslash = start + next,
            None => break,
        }
    }
    room.extend_from_slice(&field[start..]);
    Ok(room)
}

/// The byte an escape stands for, and the length of the escape.
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
    fn escapes_stand_for_bytes() {
        let mut room = Vec::new();
        for (text, bytes) in [
            (&br"plain"[..], &b"plain"[..]),
            (br"\t\n\r\\", b"\t\n\r\\"),
            (br"a\x00b\xfFc", b"a\0b\xffc"),
            (br"\\t", br"\t"),
        ] {
            assert_eq!(unescape(text, &mut room).expect("good escapes"), bytes);
        }
        for text in [&br"\"[..], br"a\", br"\q", br"\x", br"\x0", br"\x0g", br"\\\"] {
            assert!(unescape(text, &mut room).is_err(), "{}", text.escape_ascii());
        }
    }
}
