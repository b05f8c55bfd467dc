//! AxonCache text: records `key=value`, each terminated by the byte 0x1E.
//!
//! The first `=` ends the key. If a key begins with the byte 0x01, which is not part of the key,
//! the value is a list of strings separated by `|`. Other values have one [`FieldType`]. The
//! terminator of the last record is optional, and a line end before a key is skipped. Errors report
//! the number of the record as the line.

use crate::error::RowError;
use crate::fault::{Fault, RowFault, Scan};
use crate::field_type::{self, FieldType};
use crate::json::{ParsedValue, ValueBuffers};
use crate::pattern::F32Keys;
use crate::sink::RowSink;
use crate::text::{TextCursor, describe};

/// The byte that terminates a record.
pub(crate) const RECORD_END: u8 = 0x1e;
/// The byte before the key of a list.
const LIST_MARK: u8 = 0x01;

/// A parser of AxonCache text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parser {
    pub(crate) value_type: FieldType,
    pub(crate) f32_keys: F32Keys,
}

/// Parses AxonCache text and adds each row to the sink.
///
/// # Errors
///
/// Returns [`RowError::Text`] for the first row that is invalid or exceeds a limit of the sink, or
/// [`RowError::Sink`] for any other error of the sink. The rows before it were added.
pub fn parse_dta(records: &[u8], sink: &mut impl RowSink) -> Result<(), RowError> {
    let mut text = TextCursor { bytes: records, at: 0, line: 1, column: 0, line_end: RECORD_END };
    Parser::default().parse(&mut text, &mut ValueBuffers::default(), sink)
}

impl Parser {
    /// Parses rows until the text ends or the sink is full.
    pub(crate) fn parse<S: RowSink>(
        &self,
        text: &mut TextCursor<'_>,
        buffers: &mut ValueBuffers,
        sink: &mut S,
    ) -> Result<(), RowError> {
        text.parse(sink, |text, sink| self.record(text, buffers, sink))
    }

    fn record<S: RowSink>(
        &self,
        text: &mut TextCursor<'_>,
        buffers: &mut ValueBuffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let rest = &text.bytes[text.at..];
        let line_end = [&b"\n"[..], b"\r\n"].into_iter().find(|end| rest.starts_with(end));
        if let Some(line_end) = line_end {
            text.at += line_end.len();
            return Ok(());
        }
        let (record, next) = text.line();
        self.row(record, text.line, buffers, sink).map_err(|fault| fault.in_field_at(text.at))?;
        text.at = next;
        text.line += 1;
        Ok(())
    }

    fn row<S: RowSink>(
        &self,
        record: &[u8],
        number: u64,
        buffers: &mut ValueBuffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let Some(equals) = memchr::memchr(b'=', record) else {
            let found = if record.is_empty() { "an empty record" } else { "none" };
            return Err(Fault::new(0, "a record with '=' after the key", found).into());
        };
        let start = equals + 1;
        let value = &record[start..];
        let (key, parsed) = match &record[..equals] {
            [LIST_MARK, key @ ..] => (key, string_list(value, buffers)),
            key => (key, self.value_type.parse(value, self.f32_keys.contains(key), buffers)),
        };
        let parsed = parsed.map_err(|fault| fault.in_field_at(start))?;
        sink.row(number, key, buffers.value(parsed)).map_err(|e| RowFault::from_sink(0, e))
    }
}

/// Parses a list of strings.
fn string_list<'t>(value: &[u8], buffers: &mut ValueBuffers) -> Scan<ParsedValue<'t>> {
    if value.is_empty() {
        return Ok(ParsedValue::EmptyList);
    }
    if u32::try_from(value.len()).is_err() {
        return Err(Fault::new(0, "a list of strings of at most 4 GiB", describe(value, 0)));
    }
    buffers.strings.clear();
    for element in field_type::utf8(value)?.split('|') {
        buffers.strings.push(element);
    }
    Ok(ParsedValue::StringList)
}
