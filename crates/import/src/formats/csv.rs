//! CSV as in RFC 4180, with a header: one column has the keys, others have values.
//!
//! Fields with a comma, a quote or a line end are quoted, and quotes in them are doubled. A
//! quote within a field that does not begin with one has no special meaning. Empty lines are
//! skipped.
//!
//! This parser replaces the `csv` crate because errors need the position of every field, fields
//! without quotes need no copy, and a quote that is never closed must be an error. A test compares
//! the two.

use super::columns::{ColumnNames, ValueColumn};
use crate::error::RowError;
use crate::fault::{Fault, RowFault, Scan};
use crate::field_type::{self, FieldType};
use crate::json::ValueBuffers;
use crate::pattern::F32Keys;
use crate::sink::RowSink;
use crate::text::{TextCursor, describe};

/// The options of a parser, independent of the header.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub(crate) columns: ColumnNames,
    pub(crate) delimiter: Delimiter,
    /// The type of columns that are not in `column_types`.
    pub(crate) value_type: FieldType,
    /// Types of single columns, by name.
    pub(crate) column_types: Vec<(String, FieldType)>,
    pub(crate) f32_keys: F32Keys,
}

/// The byte between fields: a comma by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delimiter(pub(crate) u8);

impl Default for Delimiter {
    fn default() -> Self {
        Self(b',')
    }
}

/// A parser of CSV with a known header.
#[derive(Debug, Clone)]
pub(crate) struct Parser {
    /// The number of columns.
    width: usize,
    /// The index of the column with the keys.
    key: usize,
    delimiter: Delimiter,
    values: Vec<(ValueColumn, FieldType)>,
    f32_keys: F32Keys,
}

/// The buffers of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    fields: Vec<Field>,
    key: Vec<u8>,
    field: Vec<u8>,
    value: ValueBuffers,
}

/// The offsets of a field, without the quotes around it.
#[derive(Debug, Clone, Copy)]
struct Field {
    start: usize,
    end: usize,
    /// Set if the field has doubled quotes.
    has_quotes: bool,
}

/// Parses the header and moves the cursor to the first row.
pub(crate) fn header(
    text: &mut TextCursor<'_>,
    delimiter: Delimiter,
) -> Result<Vec<String>, RowError> {
    let mut names = Vec::new();
    // The sink is full after the first record, so parsing pauses.
    let mut sink = HeaderSink { is_full: false };
    text.parse(&mut sink, |text, sink| {
        let mut fields = Vec::new();
        let Some(next) = record(text, delimiter, &mut fields)? else { return Ok(()) };
        for field in fields {
            let bytes = field.unescape(text.bytes, &mut Vec::new()).to_vec();
            let name = field_type::utf8(&bytes).map_err(|fault| fault.moved_to(field.start))?;
            names.push(name.to_owned());
        }
        text.advance_to(next);
        sink.is_full = true;
        Ok(())
    })?;
    Ok(names)
}

/// A sink without rows, which is full once the header is parsed.
struct HeaderSink {
    is_full: bool,
}

impl RowSink for HeaderSink {
    fn row(
        &mut self,
        _: u64,
        _: &[u8],
        _: nuthatch_snapshot::Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.is_full
    }
}

/// Parses a table with a header and adds its rows to the sink. The column `key` has the keys. Each
/// other column makes a row with the key `KEY.COLUMN` and a string.
///
/// # Errors
///
/// Returns [`RowError::Text`] for the first row that is invalid or exceeds a limit of the sink, or
/// [`RowError::Sink`] for any other error of the sink. The rows before it were added. A header
/// without the column `key` is an error at line 1.
pub fn parse_csv(table: &[u8], key: &str, sink: &mut impl RowSink) -> Result<(), RowError> {
    let mut text = TextCursor::lines(table);
    let names = header(&mut text, Delimiter::default())?;
    let columns = ColumnNames { key: key.to_owned(), value: None };
    let options = Options { columns, ..Options::default() };
    let parser = Parser::new(&options, &names)
        .map_err(|found| RowError::at(1, 1, "a header with the key column", found))?;
    parser.parse(&mut text, &mut Buffers::default(), sink)
}

impl Parser {
    /// Returns the parser for a header with these names.
    pub(crate) fn new(options: &Options, names: &[String]) -> Result<Self, String> {
        let (key, values) = options.columns.find(names)?;
        let with_type = |column: ValueColumn| {
            let name = &names[column.index];
            let found = options.column_types.iter().find(|(column, _)| column == name);
            let value_type = found.map_or(options.value_type, |(_, value_type)| *value_type);
            (column, value_type)
        };
        let values: Vec<_> = values.into_iter().map(with_type).collect();
        for (name, value_type) in &options.column_types {
            if !values.iter().any(|(column, _)| names[column.index] == *name) {
                return Err(format!(
                    "expected a column with values for --column {name}:{value_type}, found none"
                ));
            }
        }
        let (width, delimiter) = (names.len(), options.delimiter);
        Ok(Self { width, key, delimiter, values, f32_keys: options.f32_keys.clone() })
    }

    /// Parses rows until the text ends or the sink is full.
    pub(crate) fn parse<S: RowSink>(
        &self,
        text: &mut TextCursor<'_>,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowError> {
        text.parse(sink, |text, sink| {
            let Some(next) = record(text, self.delimiter, &mut buffers.fields)? else {
                return Ok(());
            };
            self.row(text, next, buffers, sink)?;
            text.advance_to(next);
            Ok(())
        })
    }

    /// Adds the rows of a record, which ends at `next`.
    fn row<S: RowSink>(
        &self,
        text: &TextCursor<'_>,
        next: usize,
        buffers: &mut Buffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let Buffers { fields, key, field: unescaped, value } = buffers;
        if fields.len() != self.width {
            let line = text.bytes[..next].trim_ascii_end().len().max(text.at);
            let at = fields.get(self.width).map_or(line, |extra| extra.start);
            let expected = format!("{} fields, as the header has", self.width);
            return Err(Fault::new(at, expected, fields.len().to_string()).into());
        }
        let key_field = fields[self.key];
        key.clear();
        key.extend_from_slice(key_field.unescape(text.bytes, unescaped));
        let key_len = key.len();
        for (column, value_type) in &self.values {
            let field = fields[column.index];
            let bytes = field.unescape(text.bytes, unescaped);
            if bytes.is_empty() && !value_type.may_be_empty() {
                continue;
            }
            key.truncate(key_len);
            key.extend_from_slice(column.suffix.as_bytes());
            let parsed =
                value_type.parse(bytes, self.f32_keys.contains(key), value).map_err(|fault| {
                    if field.has_quotes {
                        fault.moved_to(field.start)
                    } else {
                        fault.in_field_at(field.start)
                    }
                })?;
            sink.row(text.line, key, value.value(parsed))
                .map_err(|e| RowFault::from_sink(key_field.start, e))?;
        }
        Ok(())
    }
}

impl Field {
    /// Returns the bytes of the field. If quotes are doubled, they are written to `buffer`.
    fn unescape<'a>(self, text: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        let mut rest = &text[self.start..self.end];
        if !self.has_quotes {
            return rest;
        }
        buffer.clear();
        while let Some(quote) = memchr::memchr(b'"', rest) {
            buffer.extend_from_slice(&rest[..=quote]);
            rest = rest.get(quote + 2..).unwrap_or_default();
        }
        buffer.extend_from_slice(rest);
        buffer
    }
}

/// Finds the fields of the next record, and returns the offset of the record behind it. Skips an
/// empty line and returns `None`, since it is no record.
fn record(
    text: &mut TextCursor<'_>,
    delimiter: Delimiter,
    fields: &mut Vec<Field>,
) -> Scan<Option<usize>> {
    fields.clear();
    let bytes = text.bytes;
    if let Some(b'\n' | b'\r') = bytes.get(text.at) {
        text.advance_to(text.at + 1);
        return Ok(None);
    }
    let mut at = text.at;
    loop {
        let (field, end) = field(bytes, at, delimiter)?;
        fields.push(field);
        at = end + 1;
        match bytes.get(end) {
            Some(byte) if *byte == delimiter.0 => {}
            Some(b'\r') if bytes.get(at) == Some(&b'\n') => return Ok(Some(at + 1)),
            Some(_) => return Ok(Some(at)),
            None => return Ok(Some(end)),
        }
    }
}

/// Returns the field that begins at this offset, and the offset of the delimiter or line end behind
/// it.
fn field(bytes: &[u8], start: usize, delimiter: Delimiter) -> Scan<(Field, usize)> {
    if bytes.get(start) != Some(&b'"') {
        let len = memchr::memchr3(delimiter.0, b'\n', b'\r', &bytes[start..]);
        let end = len.map_or(bytes.len(), |len| start + len);
        return Ok((Field { start, end, has_quotes: false }, end));
    }
    let mut field = Field { start: start + 1, end: start + 1, has_quotes: false };
    loop {
        let Some(len) = memchr::memchr(b'"', &bytes[field.end..]) else {
            let expected = "a quote that ends the field which begins here";
            return Err(Fault::new(start, expected, "none"));
        };
        field.end += len;
        let after = field.end + 1;
        match bytes.get(after) {
            Some(b'"') => {
                field.has_quotes = true;
                field.end = after + 1;
            }
            Some(b'\n' | b'\r') | None => return Ok((field, after)),
            Some(byte) if *byte == delimiter.0 => return Ok((field, after)),
            Some(_) => {
                let name = match delimiter.0 {
                    b',' => "a comma".to_owned(),
                    b'\t' => "a tab".to_owned(),
                    other => format!("'{}'", char::from(other)),
                };
                let expected =
                    format!("{name} or the end of the line after the quote that ends a field");
                return Err(Fault::new(after, expected, describe(bytes, after)));
            }
        }
    }
}

/// Returns the end of the last whole record: the offset behind the last line end outside quotes.
/// The bytes must begin with a record.
pub(crate) fn end_of_last_record(bytes: &[u8], delimiter: Delimiter) -> Option<usize> {
    let (mut at, mut last) = (0, None);
    loop {
        let quote = memchr::memchr(b'"', &bytes[at..]).map(|len| at + len);
        let plain = &bytes[at..quote.unwrap_or(bytes.len())];
        last = memchr::memrchr(b'\n', plain).map(|len| at + len + 1).or(last);
        let Some(quote) = quote else { return last };
        at = quote + 1;
        let begins_field = |byte: u8| matches!(byte, b'\n' | b'\r') || byte == delimiter.0;
        if quote > 0 && !begins_field(bytes[quote - 1]) {
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
