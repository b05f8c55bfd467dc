//! AxonCache's text: records `key=value`, each ended by the byte 0x1E.
//!
//! The first `=` ends the key. A key that begins with the byte 0x01, which is not part of it, holds
//! a list of strings with `|` between them; other values are of the type that `--type` tells. The
//! end of the last record may be missing, and a line end before a key is skipped. In errors the
//! records count as lines.

use super::error::{Fault, Refusal, RowError, Scan};
use super::json::{Room, Shape};
use super::patterns::Singles;
use super::rows::{RowSink, Text, describe};
use super::typed::{self, Type};

/// What ends a record.
pub(crate) const RECORD_END: u8 = 0x1e;
const LIST_MARK: u8 = 0x01;

/// A parser of AxonCache's text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parser {
    pub(crate) value_type: Type,
    pub(crate) singles: Singles,
}

/// Parses whole records, and hands each row to the sink.
pub fn parse_dta(records: &[u8], sink: &mut impl RowSink) -> Result<(), RowError> {
    let mut text = Text { bytes: records, at: 0, line: 1, end: RECORD_END };
    Parser::default().parse(&mut text, &mut Room::default(), sink)
}

impl Parser {
    pub(crate) fn parse<S: RowSink>(
        &self,
        text: &mut Text<'_>,
        room: &mut Room,
        sink: &mut S,
    ) -> Result<(), RowError> {
        text.parse(sink, |text, sink| self.record(text, room, sink))
    }

    fn record<S: RowSink>(
        &self,
        text: &mut Text<'_>,
        room: &mut Room,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let rest = &text.bytes[text.at..];
        let line_end = [&b"\n"[..], b"\r\n"].into_iter().find(|end| rest.starts_with(end));
        if let Some(line_end) = line_end {
            text.at += line_end.len();
            return Ok(());
        }
        let (record, next) = text.line();
        self.row(record, text.line, room, sink).map_err(|refusal| refusal.within(text.at))?;
        text.at = next;
        text.line += 1;
        Ok(())
    }

    fn row<S: RowSink>(
        &self,
        record: &[u8],
        number: u64,
        room: &mut Room,
        sink: &mut S,
    ) -> Result<(), Refusal> {
        let Some(equals) = memchr::memchr(b'=', record) else {
            let found = if record.is_empty() { "an empty record" } else { "none" };
            return Err(Fault::new(0, "a record with '=' after the key", found).into());
        };
        let start = equals + 1;
        let value = &record[start..];
        let (key, shape) = match &record[..equals] {
            [LIST_MARK, key @ ..] => (key, string_list(value, room)),
            key => (key, self.value_type.shape(value, self.singles.wants(key), room)),
        };
        let shape = shape.map_err(|fault| fault.within(start))?;
        sink.row(number, key, room.value(shape)).map_err(|e| Refusal::of_row(0, e))
    }
}

fn string_list<'t>(value: &[u8], room: &mut Room) -> Scan<Shape<'t>> {
    if value.is_empty() {
        return Ok(Shape::EmptyList);
    }
    if u32::try_from(value.len()).is_err() {
        return Err(Fault::new(0, "a list of strings of at most 4 GiB", describe(value, 0)));
    }
    room.strings.clear();
    for element in typed::utf8(value)?.split('|') {
        room.strings.push(element);
    }
    Ok(Shape::StringList)
}
