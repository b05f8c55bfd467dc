//! CSV as RFC 4180 has it, with a header: one column is the key, others are values.
//!
//! Fields with a comma, a quote or a line end stand in quotes, with quotes doubled. A quote within
//! a field that does not begin with one stands for itself. Empty lines are skipped.
//!
//! The parser is our own because every field's place is needed for errors, fields without quotes
//! need no copy, and a quote that is never closed must be an error; a test compares it with the
//! `csv` crate.

use super::columns::{Choice, ValueColumn};
use super::error::{Fault, Refusal, RowError, Scan};
use super::json::Room;
use super::patterns::Singles;
use super::rows::{RowSink, Text, describe};
use super::typed::{self, Type};

/// How CSV becomes rows, before a header is seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) columns: Choice,
    /// The type of columns that have none of their own.
    pub(crate) value_type: Type,
    /// Types of single columns, by name.
    pub(crate) column_types: Vec<(String, Type)>,
    pub(crate) singles: Singles,
}

/// A parser of CSV with a certain header.
#[derive(Debug, Clone)]
pub(crate) struct Parser {
    width: usize,
    key: usize,
    values: Vec<(ValueColumn, Type)>,
    singles: Singles,
}

/// What a thread needs besides the text.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    fields: Vec<Field>,
    key: Vec<u8>,
    field: Vec<u8>,
    value: Room,
}

/// Where a field lies, without the quotes around it.
#[derive(Debug, Clone, Copy)]
struct Field {
    start: usize,
    end: usize,
    /// Whether it has quotes in it, doubled.
    doubled: bool,
}

/// Reads the header, so that the text begins with the first row.
pub(crate) fn header(text: &mut Text<'_>) -> Result<Vec<String>, RowError> {
    let mut names = Vec::new();
    // A sink that is full after the first record.
    let mut done = HeaderOnly(false);
    text.parse(&mut done, |text, done| {
        let mut fields = Vec::new();
        let Some(next) = record(text, &mut fields)? else { return Ok(()) };
        for field in fields {
            let bytes = field.unescape(text.bytes, &mut Vec::new()).to_vec();
            let name = typed::utf8(&bytes).map_err(|fault| fault.moved(field.start))?;
            names.push(name.to_owned());
        }
        advance(text, next);
        done.0 = true;
        Ok(())
    })?;
    Ok(names)
}

struct HeaderOnly(bool);

impl RowSink for HeaderOnly {
    fn row(
        &mut self,
        _: u64,
        _: &[u8],
        _: nuthatch_snapshot::Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.0
    }
}

/// Parses a whole table: the column `key` holds the keys, each other one strings.
pub fn parse_csv(table: &[u8], key: &str, sink: &mut impl RowSink) -> Result<(), RowError> {
    let mut text = Text::lines(table);
    let names = header(&mut text)?;
    let columns = Choice { key: key.to_owned(), value: None };
    let options = Options { columns, ..Options::default() };
    let parser = Parser::new(&options, &names)
        .map_err(|found| RowError::at(1, 1, "a header with the columns asked for", found))?;
    parser.parse(&mut text, &mut Rooms::default(), sink)
}

impl Parser {
    pub(crate) fn new(options: &Options, names: &[String]) -> Result<Self, String> {
        let (key, values) = options.columns.find(names)?;
        let own = |name: &str| options.column_types.iter().find(|(column, _)| column == name);
        let typed = |column: ValueColumn| {
            let own = own(&names[column.index]);
            (column, own.map_or(options.value_type, |(_, own)| *own))
        };
        let values: Vec<_> = values.into_iter().map(typed).collect();
        for (name, value_type) in &options.column_types {
            if !values.iter().any(|(column, _)| names[column.index] == *name) {
                return Err(format!(
                    "expected a column with values for --column {name}:{value_type}, found none"
                ));
            }
        }
        Ok(Self { width: names.len(), key, values, singles: options.singles.clone() })
    }

    pub(crate) fn parse<S: RowSink>(
        &self,
        text: &mut Text<'_>,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), RowError> {
        text.parse(sink, |text, sink| {
            let Some(next) = record(text, &mut rooms.fields)? else { return Ok(()) };
            self.row(text, next, rooms, sink)?;
            advance(text, next);
            Ok(())
        })
    }

    fn row<S: RowSink>(
        &self,
        text: &Text<'_>,
        next: usize,
        rooms: &mut Rooms,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let Rooms { fields, key, field: room, value } = rooms;
        if fields.len() != self.width {
            let line = text.bytes[..next].trim_ascii_end().len().max(text.at);
            let at = fields.get(self.width).map_or(line, |extra| extra.start);
            let expected = format!("{} fields, as the header has", self.width);
            return Err(Fault::new(at, expected, fields.len().to_string()).into());
        }
        let key_field = fields[self.key];
        key.clear();
        key.extend_from_slice(key_field.unescape(text.bytes, room));
        let key_len = key.len();
        for (column, value_type) in &self.values {
            let field = fields[column.index];
            let bytes = field.unescape(text.bytes, room);
            if bytes.is_empty() && !value_type.may_be_empty() {
                continue;
            }
            key.truncate(key_len);
            key.extend_from_slice(column.suffix.as_bytes());
            let shape =
                value_type.shape(bytes, self.singles.wants(key), value).map_err(|fault| {
                    if field.doubled { fault.moved(field.start) } else { fault.within(field.start) }
                })?;
            sink.row(text.line, key, value.value(shape))
                .map_err(|e| Refusal::of_row(key_field.start, e))?;
        }
        Ok(())
    }
}

impl Field {
    /// The bytes the field stands for, made in `room` where quotes are doubled.
    fn unescape<'a>(self, text: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
        let mut rest = &text[self.start..self.end];
        if !self.doubled {
            return rest;
        }
        room.clear();
        while let Some(quote) = memchr::memchr(b'"', rest) {
            room.extend_from_slice(&rest[..=quote]);
            rest = rest.get(quote + 2..).unwrap_or_default();
        }
        room.extend_from_slice(rest);
        room
    }
}

/// Moves on to the next record.
fn advance(text: &mut Text<'_>, next: usize) {
    text.line += memchr::memchr_iter(b'\n', &text.bytes[text.at..next]).count() as u64;
    text.at = next;
}

/// Finds the fields of the record that begins here, and answers where the next one does. An empty
/// line is passed over, and no record.
fn record(text: &mut Text<'_>, fields: &mut Vec<Field>) -> Scan<Option<usize>> {
    fields.clear();
    let bytes = text.bytes;
    if let Some(b'\n' | b'\r') = bytes.get(text.at) {
        advance(text, text.at + 1);
        return Ok(None);
    }
    let mut at = text.at;
    loop {
        let (field, end) = field(bytes, at)?;
        fields.push(field);
        at = end + 1;
        match bytes.get(end) {
            Some(b',') => {}
            Some(b'\r') if bytes.get(at) == Some(&b'\n') => return Ok(Some(at + 1)),
            Some(_) => return Ok(Some(at)),
            None => return Ok(Some(end)),
        }
    }
}

/// The field that begins here, and where the comma or line end after it lies.
fn field(bytes: &[u8], start: usize) -> Scan<(Field, usize)> {
    if bytes.get(start) != Some(&b'"') {
        let len = memchr::memchr3(b',', b'\n', b'\r', &bytes[start..]);
        let end = len.map_or(bytes.len(), |len| start + len);
        return Ok((Field { start, end, doubled: false }, end));
    }
    let mut field = Field { start: start + 1, end: start + 1, doubled: false };
    loop {
        let Some(len) = memchr::memchr(b'"', &bytes[field.end..]) else {
            let expected = "a quote that ends the field which begins here";
            return Err(Fault::new(start, expected, "none"));
        };
        field.end += len;
        let after = field.end + 1;
        match bytes.get(after) {
            Some(b'"') => {
                field.doubled = true;
                field.end = after + 1;
            }
            Some(b',' | b'\n' | b'\r') | None => return Ok((field, after)),
            Some(_) => {
                let expected = "a comma or the end of the line after the quote that ends a field";
                return Err(Fault::new(after, expected, describe(bytes, after)));
            }
        }
    }
}

/// Where the last whole record of some bytes that begin with a record ends: after the last line
/// end outside quotes.
pub(crate) fn last_end(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut last) = (0, None);
    loop {
        let quote = memchr::memchr(b'"', &bytes[at..]).map(|len| at + len);
        let plain = &bytes[at..quote.unwrap_or(bytes.len())];
        last = memchr::memrchr(b'\n', plain).map(|len| at + len + 1).or(last);
        let Some(quote) = quote else { return last };
        at = quote + 1;
        if quote > 0 && !matches!(bytes[quote - 1], b',' | b'\n' | b'\r') {
            continue;
        }
        loop {
            let Some(len) = memchr::memchr(b'"', &bytes[at..]) else { return last };
            at += len + 1;
            if bytes.get(at) != Some(&b'"') {
                break;
            }
            at += 1;
        }
    }
}
