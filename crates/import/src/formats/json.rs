//! JSON documents: an array of objects, each of them a row as in JSON lines, or one object whose
//! fields are keys and values.
//!
//! A chunk of a document ends behind the comma after an element, and the next one begins there, so
//! elements are parsed on several threads and no more than a few are in memory.

use super::fields::{self, Rows};
use super::jsonl;
use crate::error::RowError;
use crate::fault::{Fault, RowFault, Scan};
use crate::json::Scanner;
use crate::sink::RowSink;
use crate::text::TextCursor;

/// The value that a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Document {
    /// An array of rows.
    Array,
    /// An object of keys and values.
    Object,
}

/// A parser of the elements of a document.
#[derive(Debug, Clone)]
pub(crate) struct Parser {
    pub(crate) document: Document,
    pub(crate) rows: jsonl::Parser,
}

/// Moves the cursor behind the bracket that begins the document. Returns what the document is.
pub(crate) fn open(text: &mut TextCursor<'_>, has_key: bool) -> Result<Document, RowError> {
    let start = (text.at, text.line);
    begin(text, has_key).map_err(|fault| text.locate(start, fault.into()))
}

fn begin(text: &mut TextCursor<'_>, has_key: bool) -> Scan<Document> {
    const EXPECTED: &str = "a JSON document: an array of objects, or an object";
    let mut scanner = Scanner::of_document(text.bytes, text.at);
    scanner.skip_blank();
    let document = match scanner.peek() {
        Some(b'[') => Document::Array,
        Some(b'{') if has_key => {
            return Err(scanner.fault("an array of objects, because of --key"));
        }
        Some(b'{') => Document::Object,
        _ => return Err(scanner.fault(EXPECTED)),
    };
    scanner.at += 1;
    scanner.skip_blank();
    if scanner.consume(document.close()) {
        expect_end(&mut scanner)?;
    } else if scanner.peek().is_none() {
        return Err(scanner.fault("an element of the document, or its end"));
    }
    text.advance_to(scanner.at);
    Ok(document)
}

impl Document {
    /// Returns the bracket that ends the document.
    fn close(self) -> u8 {
        match self {
            Self::Array => b']',
            Self::Object => b'}',
        }
    }
}

/// Fails if anything but white space follows the document.
fn expect_end(scanner: &mut Scanner<'_>) -> Scan<()> {
    scanner.skip_blank();
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.fault("the end of the document; JSON lines need --format jsonl")),
    }
}

impl Parser {
    /// Parses elements until the text ends or the sink is full.
    pub(crate) fn parse<S: RowSink>(
        &self,
        text: &mut TextCursor<'_>,
        buffers: &mut jsonl::Buffers,
        sink: &mut S,
    ) -> Result<(), RowError> {
        while text.at < text.bytes.len() {
            let start = *text;
            self.element(text, buffers, sink)
                .map_err(|fault| text.locate(start.line_start(), fault))?;
            if sink.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn element<S: RowSink>(
        &self,
        text: &mut TextCursor<'_>,
        buffers: &mut jsonl::Buffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let mut scanner = Scanner::of_document(text.bytes, text.at);
        scanner.skip_blank();
        text.advance_to(scanner.at);
        match self.document {
            Document::Array => self.rows.row(&mut scanner, text.line, buffers, sink)?,
            Document::Object => self.field(&mut scanner, text.line, &mut buffers.fields, sink)?,
        }
        scanner.skip_blank();
        if !scanner.consume(b',') {
            let close = self.document.close();
            let expected = match self.document {
                Document::Array => "',' or ']' after the element",
                Document::Object => "',' or '}' after the field",
            };
            scanner.expect(close, expected)?;
            expect_end(&mut scanner)?;
        }
        text.advance_to(scanner.at);
        Ok(())
    }

    /// Adds the values of a field, whose name is the key.
    fn field<S: RowSink>(
        &self,
        scanner: &mut Scanner<'_>,
        line: u64,
        buffers: &mut fields::Buffers,
        sink: &mut S,
    ) -> Result<(), RowFault> {
        let key_at = scanner.at;
        buffers.read_name(scanner)?;
        let mut rows = Rows { sink, line, key_at, f32_keys: &self.rows.f32_keys };
        fields::add(scanner, 1, buffers, &mut rows)
    }
}

/// Returns the end of the last whole element of a document: the offset behind its comma. The bytes
/// begin with the document or with an element.
pub(crate) fn end_of_last_element(bytes: &[u8], is_at_start: bool) -> Option<usize> {
    let (mut depth, mut last, mut at) = (u64::from(!is_at_start), None, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => match end_of_string(bytes, at) {
                Some(end) => at = end,
                None => break,
            },
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => last = Some(at),
            _ => {}
        }
    }
    last
}

/// Returns the offset behind the quote that ends a string.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let rest = bytes.get(at..)?;
        at += memchr::memchr2(b'"', b'\\', rest)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Returns the fault of a document that has no end: the text behind its last element is missing.
pub(crate) fn check_end(bytes: &[u8]) -> Scan<()> {
    let text = bytes.trim_ascii_end();
    if text.is_empty() || text.ends_with(b",") {
        let expected = "another element, and the end of the document";
        return Err(Fault::new(text.len(), expected, "the end of the input"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that counts rows.
    struct Count(u64);

    impl RowSink for Count {
        fn row(
            &mut self,
            _: u64,
            _: &[u8],
            _: nuthatch_snapshot::Value<'_>,
        ) -> Result<(), nuthatch_snapshot::Error> {
            self.0 += 1;
            Ok(())
        }

        fn is_full(&self) -> bool {
            false
        }
    }

    /// A search for the start of the line at each element would take a minute.
    #[test]
    fn the_time_for_an_element_does_not_depend_on_the_length_of_its_line() -> Result<(), RowError> {
        let row = |value: &str| format!("{{\"key\":\"k\",\"value\":\"{value}\"}}");
        let document =
            format!("[{}{}]", row(&"a".repeat(8 << 20)), format!(",{}", row("b")).repeat(200_000));
        let parser = Parser { document: Document::Array, rows: jsonl::Parser::default() };
        let (mut text, mut rows) = (TextCursor::lines(document.as_bytes()), Count(0));
        open(&mut text, false)?;
        let start = std::time::Instant::now();
        parser.parse(&mut text, &mut jsonl::Buffers::default(), &mut rows)?;
        assert_eq!(rows.0, 200_001);
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
        Ok(())
    }

    #[test]
    fn elements_end_with_commas_outside_of_other_values() {
        for (text, is_at_start, end) in [
            ("[1, [2, 3], {\"a,\": 4, \"b\": 5}, 6", true, "[1, [2, 3], {\"a,\": 4, \"b\": 5},"),
            ("\"a\\\",\", [1", false, "\"a\\\",\","),
            ("{\"a\": 1}", true, ""),
            ("1, 2", false, "1,"),
            ("1, \"2, \\", false, "1,"),
            ("], 1", false, ""),
        ] {
            let found = end_of_last_element(text.as_bytes(), is_at_start).unwrap_or(0);
            assert_eq!(&text[..found], end, "{text}");
        }
    }
}
