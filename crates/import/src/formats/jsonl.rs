//! JSON lines: `{"key": …, "value": …}`, one row to a line.
//!
//! | JSON | value |
//! |---|---|
//! | `"text"`, `true`, `12`, `1.0` or `1e3` | string, bool, integer, float |
//! | `[1, 2]`, `[1, 2.5]`, `["a"]`, `[]` | list of integers, floats, strings, the empty list |
//! | `{"$bytes": "AAE="}` | bytes, in base64; also for a key that is not UTF-8 |
//! | `{"$f32": [1, 2.5]}` | list of 32-bit floats |
//! | `{"$f64": "NaN"}`, `{"$f64": [1, "-Infinity"]}` | floats that JSON cannot hold |

use super::error::{Fault, Refusal, RowError, Scan};
use super::json::{Room, Scanner};
use super::patterns::Singles;
use super::rows::{RowSink, Text};

/// A parser of JSON lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parser {
    pub(crate) singles: Singles,
}

/// What a thread needs besides the text.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    name: String,
    key_text: String,
    key_bytes: Vec<u8>,
    value: Room,
}

/// Where a parsed key is.
#[derive(Clone, Copy)]
enum Key<'t> {
    Text(&'t str),
    RoomText,
    RoomBytes,
}

/// Parses whole lines, and hands each row to the sink.
pub fn parse_jsonl(lines: &[u8], sink: &mut impl RowSink) -> Result<(), RowError> {
    Parser::default().parse(&mut Text::lines(lines), &mut Rooms::default(), sink)
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

    /// A line, which may hold nothing but white space.
    #[inline]
    fn line<S: RowSink>(
        &self,
        text: &mut Text<'_>,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let mut scanner = Scanner::new(text.bytes, text.at);
        scanner.blank();
        if !matches!(scanner.peek(), Some(b'\n') | None) {
            self.row(&mut scanner, text.line, rooms, sink)?;
            scanner.blank();
            if !matches!(scanner.peek(), Some(b'\n') | None) {
                return Err(scanner.fault("the end of the line after the row").into());
            }
        }
        text.at = text.bytes.len().min(scanner.at + 1);
        text.line += 1;
        Ok(())
    }

    #[inline]
    fn row<S: RowSink>(
        &self,
        scanner: &mut Scanner<'_>,
        line: u64,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        scanner.expect(b'{', "a row such as {\"key\": …, \"value\": …}")?;
        scanner.blank();
        let (mut key, mut value) = (None, None);
        loop {
            let at = scanner.at;
            let name = scan_name(scanner, &mut rooms.name)?;
            let is_key = match name {
                "key" if key.is_none() => true,
                "value" if value.is_none() => false,
                name => return Err(unwanted(at, name).into()),
            };
            scanner.blank();
            scanner.expect(b':', "':' after the field name")?;
            scanner.blank();
            let at = scanner.at;
            if is_key {
                key = Some((at, scan_key(scanner, rooms)?));
            } else {
                let singles = key.is_some_and(|(_, key)| self.singles.wants(rooms.key(key)));
                value = Some((at, scanner.value(singles, &mut rooms.value)?, key.is_some()));
            }
            if !scanner.another(b'}', "',' or '}' after the field")? {
                break;
            }
        }
        let end = scanner.at - 1;
        let (key_at, key) = key.ok_or_else(|| Fault::new(end, "the field \"key\"", "'}'"))?;
        let Some((at, mut shape, knew_key)) = value else {
            return Err(Fault::new(end, "the field \"value\"", "'}'").into());
        };
        if !knew_key && self.singles.wants(rooms.key(key)) {
            // The key decides how lists are read, and came after the list: read it again.
            let after = std::mem::replace(&mut scanner.at, at);
            shape = scanner.value(true, &mut rooms.value)?;
            scanner.at = after;
        }
        let Rooms { key_text, key_bytes, value: room, .. } = rooms;
        let key = match key {
            Key::Text(text) => text.as_bytes(),
            Key::RoomText => key_text.as_bytes(),
            Key::RoomBytes => key_bytes,
        };
        sink.row(line, key, room.value(shape)).map_err(|e| Refusal::of_row(key_at, e))
    }
}

impl Rooms {
    fn key<'a>(&'a self, key: Key<'a>) -> &'a [u8] {
        match key {
            Key::Text(text) => text.as_bytes(),
            Key::RoomText => self.key_text.as_bytes(),
            Key::RoomBytes => &self.key_bytes,
        }
    }
}

#[inline]
fn scan_name<'a, 't: 'a>(scanner: &mut Scanner<'t>, unescaped: &'a mut String) -> Scan<&'a str> {
    // Names are nearly always written like this.
    if scanner.word(b"\"key\"") {
        return Ok("key");
    }
    if scanner.word(b"\"value\"") {
        return Ok("value");
    }
    let name = scanner.string(unescaped, "the field \"key\" or \"value\"")?;
    Ok(name.unwrap_or(unescaped))
}

#[inline]
fn scan_key<'t>(scanner: &mut Scanner<'t>, rooms: &mut Rooms) -> Scan<Key<'t>> {
    if scanner.peek() == Some(b'"') {
        let text = scanner.string(&mut rooms.key_text, "a key")?;
        return Ok(text.map_or(Key::RoomText, Key::Text));
    }
    scanner.tagged_bytes(&mut rooms.name, &mut rooms.key_bytes)?;
    Ok(Key::RoomBytes)
}

#[cold]
fn unwanted(at: usize, name: &str) -> Fault {
    let again = matches!(name, "key" | "value");
    let found = if again { format!("\"{name}\" again") } else { format!("\"{name}\"") };
    Fault::new(at, "the fields \"key\" and \"value\", once each", found)
}
