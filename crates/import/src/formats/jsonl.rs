//! JSON lines: `{"key": …, "value": …}`, one row on each line.
//!
//! | JSON | value |
//! |---|---|
//! | `"text"`, `true`, `12`, `1.0` or `1e3` | string, bool, integer, float |
//! | `[1, 2]`, `[1, 2.5]`, `["a"]`, `[]` | list of integers, floats, strings, the empty list |
//! | `{"$bytes": "AAE="}` | bytes, in base64; also for a key that is not UTF-8 |
//! | `{"$f32": [1, 2.5]}` | list of 32-bit floats |
//! | `{"$f64": "NaN"}`, `{"$f64": [1, "-Infinity"]}` | floats that JSON cannot represent |
//!
//! With the name of the field that has the key, objects can have any shape: see [`fields`].

use super::columns::ColumnNames;
use super::fields::{self, Rows};
use crate::error::RowError;
use crate::fault::{Fault, RowFault, Scan};
use crate::json::{Scanner, ValueBuffers};
use crate::pattern::F32Keys;
use crate::sink::RowSink;
use crate::text::TextCursor;

/// A parser of JSON lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parser {
    pub(crate) f32_keys: F32Keys,
    /// The fields with the key and the value, for objects of any shape. By default, the objects
    /// have the fields `key` and `value` only.
    pub(crate) fields: Option<ColumnNames>,
}

/// The buffers of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    name: String,
    key_text: String,
    key_bytes: Vec<u8>,
    value: ValueBuffers,
    pub(super) fields: fields::Buffers,
}

/// A parsed key: a reference into the text, or the name of the buffer that has it.
#[derive(Clone, Copy)]
enum Key<'t> {
    String(&'t str),
    BufferedString,
    BufferedBytes,
}

/// Parses JSON lines and adds each row to the sink.
///
/// # Errors
///
/// Returns [`RowError::Text`] for the first row that is invalid or exceeds a limit of the sink, or
/// [`RowError::Sink`] for any other error of the sink. The rows before it were added.
pub fn parse_jsonl(lines: &[u8], sink: &mut impl RowSink) -> Result<(), RowError> {
    Parser::default().parse(&mut TextCursor::lines(lines), &mut Buffers::default(), sink)
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

    /// Parses a line, which may be blank.
    #[inline]
    fn line<S: RowSink>(
        &self,
        text: &mut TextCursor<'_>,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let mut scanner = Scanner::new(text.bytes, text.at);
        scanner.skip_blank();
        if !matches!(scanner.peek(), Some(b'\n') | None) {
            self.row(&mut scanner, text.line, buffers, sink)?;
            scanner.skip_blank();
            if !matches!(scanner.peek(), Some(b'\n') | None) {
                return Err(scanner.fault("the end of the line after the row").into());
            }
        }
        text.at = text.bytes.len().min(scanner.at + 1);
        text.line += 1;
        Ok(())
    }

    /// Parses the object of a row.
    #[inline]
    pub(super) fn row<S: RowSink>(
        &self,
        scanner: &mut Scanner<'_>,
        line: u64,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        match &self.fields {
            None => self.pair(scanner, line, buffers, sink),
            Some(names) => {
                let rows = Rows { sink, line, key_at: scanner.at, f32_keys: &self.f32_keys };
                fields::object(names, scanner, &mut buffers.fields, rows)
            }
        }
    }

    /// Parses an object with the fields `key` and `value`.
    #[inline]
    fn pair<S: RowSink>(
        &self,
        scanner: &mut Scanner<'_>,
        line: u64,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        scanner.expect(b'{', "a row such as {\"key\": …, \"value\": …}")?;
        scanner.skip_blank();
        let (mut key, mut value) = (None, None);
        loop {
            let at = scanner.at;
            let name = scan_name(scanner, &mut buffers.name)?;
            let is_key = match name {
                "key" if key.is_none() => true,
                "value" if value.is_none() => false,
                name => return Err(unexpected_field(at, name).into()),
            };
            scanner.skip_blank();
            scanner.expect(b':', "':' after the field name")?;
            scanner.skip_blank();
            let at = scanner.at;
            if is_key {
                key = Some((at, scan_key(scanner, buffers)?));
            } else {
                let as_f32 = key.is_some_and(|(_, key)| self.f32_keys.contains(buffers.key(key)));
                value = Some((at, scanner.value(as_f32, &mut buffers.value)?, key.is_some()));
            }
            if !scanner.next_element(b'}', "',' or '}' after the field")? {
                break;
            }
        }
        let end = scanner.at - 1;
        let (key_at, key) = key.ok_or_else(|| Fault::new(end, "the field \"key\"", "'}'"))?;
        let Some((at, mut parsed, key_was_known)) = value else {
            return Err(Fault::new(end, "the field \"value\"", "'}'").into());
        };
        if !key_was_known && self.f32_keys.contains(buffers.key(key)) {
            // The key, which determines the type of lists, is behind the value: parse it again.
            let end_of_row = std::mem::replace(&mut scanner.at, at);
            parsed = scanner.value(true, &mut buffers.value)?;
            scanner.at = end_of_row;
        }
        let Buffers { key_text, key_bytes, value: value_buffers, .. } = buffers;
        let key = match key {
            Key::String(text) => text.as_bytes(),
            Key::BufferedString => key_text.as_bytes(),
            Key::BufferedBytes => key_bytes,
        };
        sink.row(line, key, value_buffers.value(parsed)).map_err(|e| RowFault::from_sink(key_at, e))
    }
}

impl Buffers {
    /// Returns the bytes of a key.
    fn key<'a>(&'a self, key: Key<'a>) -> &'a [u8] {
        match key {
            Key::String(text) => text.as_bytes(),
            Key::BufferedString => self.key_text.as_bytes(),
            Key::BufferedBytes => &self.key_bytes,
        }
    }
}

/// Parses the name of a field.
#[inline]
fn scan_name<'a, 't: 'a>(scanner: &mut Scanner<'t>, unescaped: &'a mut String) -> Scan<&'a str> {
    // Nearly all names are written like this.
    if scanner.consume_bytes(b"\"key\"") {
        return Ok("key");
    }
    if scanner.consume_bytes(b"\"value\"") {
        return Ok("value");
    }
    let name = scanner.string(unescaped, "the field \"key\" or \"value\"")?;
    Ok(name.unwrap_or(unescaped))
}

/// Parses a key.
#[inline]
fn scan_key<'t>(scanner: &mut Scanner<'t>, buffers: &mut Buffers) -> Scan<Key<'t>> {
    if scanner.peek() == Some(b'"') {
        let text = scanner.string(&mut buffers.key_text, "a key")?;
        return Ok(text.map_or(Key::BufferedString, Key::String));
    }
    scanner.tagged_bytes(&mut buffers.name, &mut buffers.key_bytes)?;
    Ok(Key::BufferedBytes)
}

#[cold]
fn unexpected_field(at: usize, name: &str) -> Fault {
    let is_repeated = matches!(name, "key" | "value");
    let found = if is_repeated { format!("\"{name}\" again") } else { format!("\"{name}\"") };
    Fault::new(at, "the fields \"key\" and \"value\", once each", found)
}
