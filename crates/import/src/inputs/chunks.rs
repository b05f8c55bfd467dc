//! Reads a stream of text in chunks of whole rows.

use crate::error::RowError;
use crate::fault::RowFault;
use crate::formats::csv::{self, Delimiter};
use crate::formats::dta::RECORD_END;
use crate::formats::json;
use crate::text::TextCursor;
use std::io::{self, ErrorKind, Read};

/// The approximate length of a chunk in bytes, unless a single row is longer.
const CHUNK_LEN: usize = 1 << 20;
/// Maximum length of a row in bytes. The longest value, 4 GiB, fits if few of its characters are
/// escaped.
const MAX_ROW_LEN: usize = 8 << 30;

/// What ends a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowEnd {
    /// The end of a line.
    Line,
    /// The end of a line that is not within quotes.
    CsvLine(Delimiter),
    /// The byte 0x1E.
    Record,
    /// The comma after an element of a JSON document, or the end of the document.
    Element,
}

impl RowEnd {
    /// Returns the byte by which lines are counted.
    fn byte(self) -> u8 {
        match self {
            Self::Line | Self::CsvLine(_) | Self::Element => b'\n',
            Self::Record => RECORD_END,
        }
    }

    /// Returns the end of the last whole row. The bytes must begin with a row.
    fn end_of_last_row(self, bytes: &[u8], is_at_start: bool) -> Option<usize> {
        match self {
            Self::CsvLine(delimiter) => csv::end_of_last_record(bytes, delimiter),
            Self::Element => json::end_of_last_element(bytes, is_at_start),
            _ => memchr::memrchr(self.byte(), bytes).map(|at| at + 1),
        }
    }
}

/// A chunk of whole rows, and the position up to which it is parsed.
#[derive(Debug)]
pub(crate) struct TextChunk {
    /// The buffer, of which the first `len` bytes are the chunk.
    bytes: Vec<u8>,
    len: usize,
    /// The offset of the next row, and its line.
    at: usize,
    line: u64,
    /// The number of characters before the chunk in its first line.
    column: u64,
    line_end: u8,
}

impl TextChunk {
    /// Calls `parse` with a cursor at the next row.
    pub(crate) fn parse<R>(&mut self, parse: impl FnOnce(&mut TextCursor<'_>) -> R) -> R {
        let Self { at, line, column, line_end, .. } = *self;
        let bytes = &self.bytes[..self.len];
        let mut text = TextCursor { bytes, at, line, column, line_end };
        let result = parse(&mut text);
        (self.at, self.line) = (text.at, text.line);
        result
    }

    /// Returns whether all rows are parsed.
    pub(crate) fn is_done(&self) -> bool {
        self.at == self.len
    }

    /// Returns the buffer, which can be reused.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}

/// An error of reading a chunk.
#[derive(Debug)]
pub(crate) enum ChunkError {
    Io(io::Error),
    /// The row that begins in this line is longer than the maximum, in bytes.
    LongRow {
        line: u64,
        max: usize,
    },
    /// The text ends before its last row does.
    Truncated(RowError),
}

/// A stream of text that is read in chunks.
pub(crate) struct ChunkReader<R> {
    reader: R,
    row_end: RowEnd,
    /// The start of the next chunk, which was read with the last one.
    carry: Vec<u8>,
    line: u64,
    /// The number of characters before the next chunk in its first line.
    column: u64,
    chunk_len: usize,
    max_row_len: usize,
    is_at_start: bool,
    is_at_end: bool,
}

impl<R: Read> ChunkReader<R> {
    pub(crate) fn new(reader: R, row_end: RowEnd) -> Self {
        Self::with_lens(reader, row_end, CHUNK_LEN, MAX_ROW_LEN)
    }

    fn with_lens(reader: R, row_end: RowEnd, chunk_len: usize, max_row_len: usize) -> Self {
        let carry = Vec::new();
        Self {
            reader,
            row_end,
            carry,
            line: 1,
            column: 0,
            chunk_len,
            max_row_len,
            is_at_start: true,
            is_at_end: false,
        }
    }

    /// Reads the next chunk into this buffer. Returns `None` at the end.
    pub(crate) fn next(&mut self, mut bytes: Vec<u8>) -> Result<Option<TextChunk>, ChunkError> {
        if self.is_at_end {
            return Ok(None);
        }
        // A long row must not keep all later buffers as long.
        if bytes.len() > 4 * self.chunk_len {
            bytes = Vec::new();
        }
        let mut filled = self.carry.len();
        let min_len = if filled * 2 > self.chunk_len { filled * 2 } else { self.chunk_len };
        if bytes.len() < min_len {
            bytes.resize(min_len, 0);
        }
        bytes[..filled].copy_from_slice(&self.carry);
        let len = loop {
            filled = self.fill(&mut bytes, filled)?;
            if self.is_at_end {
                break filled;
            }
            if let Some(len) = self.row_end.end_of_last_row(&bytes[..filled], self.is_at_start) {
                break len;
            }
            if filled >= self.max_row_len {
                return Err(ChunkError::LongRow { line: self.line, max: self.max_row_len });
            }
            bytes.resize((filled * 2).min(self.max_row_len), 0);
        };
        self.carry.clear();
        self.carry.extend_from_slice(&bytes[len..filled]);
        if self.is_at_end && self.row_end == RowEnd::Element {
            self.check_end(&bytes[..len])?;
        }
        let has_bom =
            self.is_at_start && self.row_end != RowEnd::Record && bytes[..len].starts_with(BOM);
        self.is_at_start = false;
        let at = if has_bom { BOM.len() } else { 0 };
        let (line, line_end) = (self.line, self.row_end.byte());
        self.line += memchr::memchr_iter(line_end, &bytes[..len]).count() as u64;
        let column = self.column;
        if self.row_end == RowEnd::Element {
            self.column = match memchr::memrchr(line_end, &bytes[..len]) {
                Some(end) => count_characters(&bytes[end + 1..len]),
                None => column + count_characters(&bytes[at..len]),
            };
        }
        Ok(Some(TextChunk { bytes, len, at, line, column, line_end }))
    }

    /// Checks that the last chunk of a JSON document has the end of the document.
    fn check_end(&self, bytes: &[u8]) -> Result<(), ChunkError> {
        let text = TextCursor {
            bytes,
            at: 0,
            line: self.line,
            column: self.column,
            line_end: self.row_end.byte(),
        };
        json::check_end(bytes).map_err(|fault| {
            ChunkError::Truncated(text.locate((0, self.line), RowFault::Text(fault)))
        })
    }

    /// Reads until the buffer is full or the stream ends.
    fn fill(&mut self, bytes: &mut [u8], mut filled: usize) -> Result<usize, ChunkError> {
        while filled < bytes.len() && !self.is_at_end {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) => self.is_at_end = true,
                Ok(len) => filled += len,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(ChunkError::Io(e)),
            }
        }
        Ok(filled)
    }
}

/// Returns the number of characters of UTF-8.
fn count_characters(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64
}

/// The byte order mark that some programs write before UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::columns::ColumnNames;
    use crate::formats::{dta, jsonl, tsv};
    use crate::sink::RowSink;
    use nuthatch_snapshot::Value;
    use proptest::prelude::*;

    /// Reads a text in chunks with small buffers. Returns each chunk as `line:text`.
    fn cut(text: &str, row_end: RowEnd) -> Vec<String> {
        let mut reader = ChunkReader::with_lens(text.as_bytes(), row_end, 8, 64);
        let (mut chunks, mut buffer) = (Vec::new(), Vec::new());
        while let Some(chunk) = reader.next(buffer).expect("short rows") {
            let text = String::from_utf8_lossy(&chunk.bytes[chunk.at..chunk.len]);
            chunks.push(format!("{}:{text}", chunk.line));
            buffer = chunk.into_buffer();
        }
        chunks
    }

    #[test]
    fn chunks_end_with_rows() {
        assert_eq!(cut("a\nbb\nccc\ndddd\n", RowEnd::Line), ["1:a\nbb\n", "3:ccc\n", "4:dddd\n"]);
        assert_eq!(cut("a\x1ebb\n\x1eccc", RowEnd::Record), ["1:a\x1ebb\n\x1e", "3:ccc"]);
        assert_eq!(
            cut("a row longer than a chunk\nb\nccccccc\nd", RowEnd::Line),
            ["1:a row longer than a chunk\nb\n", "3:ccccccc\nd"]
        );
        assert_eq!(
            cut("\"a\n\n\n\n\n\"\nbbbbbbbbb", RowEnd::CsvLine(Delimiter::default())),
            ["1:\"a\n\n\n\n\n\"\n", "7:bbbbbbbbb"]
        );
        assert_eq!(
            cut("5\" b\n\"\n\"\ncc", RowEnd::CsvLine(Delimiter::default())),
            ["1:5\" b\n", "2:\"\n\"\ncc"]
        );
    }

    /// The end of a chunk is usually within a string. The whole elements before it must be a chunk,
    /// or the document would be read into memory as a whole.
    #[test]
    fn a_chunk_of_a_document_that_ends_within_a_string_has_the_elements_before() {
        assert_eq!(
            cut("[1,2,\"aaaaaa\",\"bb\"]", RowEnd::Element),
            ["1:[1,2,", "1:\"aaaaaa\",\"bb\"]"]
        );
    }

    #[test]
    fn a_byte_order_mark_is_skipped_only_at_the_start() {
        assert_eq!(cut("\u{feff}abc\n\u{feff}\n", RowEnd::Line), ["1:abc\n", "2:\u{feff}\n"]);
    }

    #[test]
    fn a_row_that_is_too_long_is_an_error() {
        let text = format!("a\n{}\n", "b".repeat(64));
        let mut reader = ChunkReader::with_lens(text.as_bytes(), RowEnd::Line, 8, 64);
        assert!(matches!(reader.next(Vec::new()), Ok(Some(_))));
        let error = reader.next(Vec::new()).expect_err("a row of 65 bytes");
        assert!(matches!(error, ChunkError::LongRow { line: 2, max: 64 }), "{error:?}");
    }

    /// Parses a text in chunks of this length. Returns the rows, and the error if there is one.
    /// With `pauses`, the sink is full after each row.
    fn rows(
        (text, row_end): (&str, RowEnd),
        chunk_len: usize,
        pauses: bool,
        mut parse: impl FnMut(&mut TextCursor<'_>, &mut Collected) -> Result<(), RowError>,
    ) -> (Vec<String>, Option<String>) {
        let mut sink = Collected { rows: Vec::new(), pauses };
        let mut reader = ChunkReader::with_lens(text.as_bytes(), row_end, chunk_len, 1 << 20);
        while let Some(mut chunk) = reader.next(Vec::new()).expect("short rows") {
            while !chunk.is_done() {
                if let Err(error) = chunk.parse(|text| parse(text, &mut sink)) {
                    return (sink.rows, Some(error.to_string()));
                }
            }
        }
        (sink.rows, None)
    }

    struct Collected {
        rows: Vec<String>,
        pauses: bool,
    }

    impl RowSink for Collected {
        fn row(
            &mut self,
            line: u64,
            key: &[u8],
            value: Value<'_>,
        ) -> Result<(), nuthatch_snapshot::Error> {
            self.rows.push(format!("{line} {} {value:?}", key.escape_ascii()));
            Ok(())
        }

        fn is_full(&self) -> bool {
            self.pauses
        }
    }

    /// Checks that rows, lines and errors do not depend on the length of chunks and on pauses.
    fn check_chunk_lengths<R: Default>(
        input: (&str, RowEnd),
        mut parse: impl FnMut(&mut TextCursor<'_>, &mut R, &mut Collected) -> Result<(), RowError>,
    ) -> Result<(), TestCaseError> {
        let mut parsed = |chunk_len, pauses| {
            let mut buffers = R::default();
            rows(input, chunk_len, pauses, |text, sink| parse(text, &mut buffers, sink))
        };
        let whole = parsed(1 << 16, false);
        prop_assert_eq!(&parsed(7, false), &whole);
        prop_assert_eq!(&parsed(16, true), &whole);
        Ok(())
    }

    proptest! {
        #[test]
        fn json_lines_do_not_depend_on_chunks(
            text in "(\\{\"key\":\"[aé\\\\n]{0,2}\",\"value\":(1|\"b\"|\\[2\\])\\}\r?\n|\n|x){0,9}"
        ) {
            let parser = jsonl::Parser::default();
            check_chunk_lengths((&text, RowEnd::Line), |t, b, s| parser.parse(t, b, s))?;
        }

        #[test]
        fn tsv_does_not_depend_on_chunks(text in "([ab\\\\é]{0,3}\t[ab]{0,9}\n|\n|\r|x){0,9}") {
            let parser = tsv::Parser::default();
            check_chunk_lengths((&text, RowEnd::Line), |t, b, s| parser.parse(t, b, s))?;
        }

        #[test]
        fn axoncache_text_does_not_depend_on_chunks(
            text in "(\u{1}?[ab=]{0,3}=[a|]{0,4}\u{1e}\n?|x){0,9}"
        ) {
            let parser = dta::Parser::default();
            check_chunk_lengths((&text, RowEnd::Record), |t, b, s| parser.parse(t, b, s))?;
        }

        #[test]
        fn json_documents_do_not_depend_on_chunks(
            elements in concat!(
                "(\n?\\{\"key\":\"[a,\\]]\",\r?\n?\"value\":",
                "(1|\"\\\\\"b,\"|\\[2,3\\])\\} ?,){0,6}x?"
            )
        ) {
            let text = format!("[{}\n]", elements.trim_end_matches(','));
            let (document, rows) = (json::Document::Array, jsonl::Parser::default());
            let parser = json::Parser { document, rows };
            check_chunk_lengths((&text, RowEnd::Element), |t, b, s| {
                if t.at == 0 && t.bytes.first() == Some(&b'[') {
                    json::open(t, false)?;
                }
                parser.parse(t, b, s)
            })?;
        }

        #[test]
        fn csv_does_not_depend_on_chunks(text in "([a\",\r\n]|a,\"b\n\"\n|aa,bbbb\n){0,20}") {
            let columns = ColumnNames { key: "id".to_owned(), value: None };
            let options = csv::Options { columns, ..csv::Options::default() };
            let names = ["id".to_owned(), "a".to_owned()];
            let parser = csv::Parser::new(&options, &names).expect("columns of these names");
            let row_end = RowEnd::CsvLine(Delimiter::default());
            check_chunk_lengths((&text, row_end), |t, b, s| parser.parse(t, b, s))?;
        }
    }
}
