//! Cuts a stream of text into chunks of whole rows.

use super::csv;
use super::dta::RECORD_END;
use super::rows::Text;
use std::io::{self, ErrorKind, Read};

/// Chunks are about this long, unless a single row is longer.
const CHUNK_LEN: usize = 1 << 20;
/// The longest row. The longest value, 4 GiB, fits when few of its characters are escaped.
const ROW_LEN_MOST: usize = 8 << 30;

/// How rows end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// At the end of a line.
    Line,
    /// At the end of a line that is not within quotes.
    CsvLine,
    /// At the byte 0x1E.
    Record,
}

impl Ends {
    /// The byte that lines are counted by.
    fn byte(self) -> u8 {
        match self {
            Self::Line | Self::CsvLine => b'\n',
            Self::Record => RECORD_END,
        }
    }

    /// Where the last whole row of these bytes, which begin with a row, ends.
    fn last(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::CsvLine => csv::last_end(bytes),
            _ => memchr::memrchr(self.byte(), bytes).map(|at| at + 1),
        }
    }
}

/// Whole rows, and how far they are parsed.
#[derive(Debug)]
pub(crate) struct TextChunk {
    bytes: Vec<u8>,
    len: usize,
    at: usize,
    line: u64,
    end: u8,
}

impl TextChunk {
    /// Lets `parse` go on where parsing stopped.
    pub(crate) fn parse<R>(&mut self, parse: impl FnOnce(&mut Text<'_>) -> R) -> R {
        let (at, line, end) = (self.at, self.line, self.end);
        let mut text = Text { bytes: &self.bytes[..self.len], at, line, end };
        let result = parse(&mut text);
        (self.at, self.line) = (text.at, text.line);
        result
    }

    /// Whether all rows are parsed.
    pub(crate) fn is_done(&self) -> bool {
        self.at == self.len
    }

    /// The buffer, to be used again.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}

/// Why there is no next chunk.
#[derive(Debug)]
pub(crate) enum CutError {
    Io(io::Error),
    /// The row that begins in this line does not fit.
    LongRow {
        line: u64,
        most: usize,
    },
}

/// A stream of text, handed out chunk by chunk.
pub(crate) struct Cutter<R> {
    reader: R,
    ends: Ends,
    /// The beginning of the next chunk, read with the last one.
    carry: Vec<u8>,
    line: u64,
    chunk_len: usize,
    row_len_most: usize,
    at_start: bool,
    at_end: bool,
}

impl<R: Read> Cutter<R> {
    pub(crate) fn new(reader: R, ends: Ends) -> Self {
        Self::with_lens(reader, ends, CHUNK_LEN, ROW_LEN_MOST)
    }

    fn with_lens(reader: R, ends: Ends, chunk_len: usize, row_len_most: usize) -> Self {
        let (carry, at_start, at_end) = (Vec::new(), true, false);
        Self { reader, ends, carry, line: 1, chunk_len, row_len_most, at_start, at_end }
    }

    /// The next chunk, in this buffer; `None` at the end.
    pub(crate) fn next(&mut self, mut bytes: Vec<u8>) -> Result<Option<TextChunk>, CutError> {
        if self.at_end {
            return Ok(None);
        }
        // One long row must not make every later buffer as long.
        if bytes.len() > 4 * self.chunk_len {
            bytes = Vec::new();
        }
        let mut filled = self.carry.len();
        let least = if filled * 2 > self.chunk_len { filled * 2 } else { self.chunk_len };
        if bytes.len() < least {
            bytes.resize(least, 0);
        }
        bytes[..filled].copy_from_slice(&self.carry);
        let len = loop {
            filled = self.fill(&mut bytes, filled)?;
            if self.at_end {
                break filled;
            }
            if let Some(len) = self.ends.last(&bytes[..filled]) {
                break len;
            }
            if filled >= self.row_len_most {
                return Err(CutError::LongRow { line: self.line, most: self.row_len_most });
            }
            bytes.resize((filled * 2).min(self.row_len_most), 0);
        };
        self.carry.clear();
        self.carry.extend_from_slice(&bytes[len..filled]);
        let bom = self.at_start && self.ends != Ends::Record && bytes[..len].starts_with(BOM);
        self.at_start = false;
        let at = if bom { BOM.len() } else { 0 };
        let (line, end) = (self.line, self.ends.byte());
        self.line += memchr::memchr_iter(end, &bytes[..len]).count() as u64;
        Ok(Some(TextChunk { bytes, len, at, line, end }))
    }

    /// Reads until the buffer is full or the stream ends.
    fn fill(&mut self, bytes: &mut [u8], mut filled: usize) -> Result<usize, CutError> {
        while filled < bytes.len() && !self.at_end {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) => self.at_end = true,
                Ok(len) => filled += len,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(CutError::Io(e)),
            }
        }
        Ok(filled)
    }
}

/// The mark some programs put before UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Choice;
    use crate::error::RowError;
    use crate::rows::RowSink;
    use crate::{dta, jsonl, tsv};
    use nuthatch_snapshot::Value;
    use proptest::prelude::*;

    /// The chunks of a text as `line:text`, cut with small buffers.
    fn cut(text: &str, ends: Ends) -> Vec<String> {
        let mut cutter = Cutter::with_lens(text.as_bytes(), ends, 8, 64);
        let (mut chunks, mut buffer) = (Vec::new(), Vec::new());
        while let Some(chunk) = cutter.next(buffer).expect("short rows") {
            let text = String::from_utf8_lossy(&chunk.bytes[chunk.at..chunk.len]);
            chunks.push(format!("{}:{text}", chunk.line));
            buffer = chunk.into_buffer();
        }
        chunks
    }

    #[test]
    fn chunks_end_with_rows() {
        assert_eq!(cut("a\nbb\nccc\ndddd\n", Ends::Line), ["1:a\nbb\n", "3:ccc\n", "4:dddd\n"]);
        assert_eq!(cut("a\x1ebb\n\x1eccc", Ends::Record), ["1:a\x1ebb\n\x1e", "3:ccc"]);
        assert_eq!(
            cut("a row longer than a chunk\nb\nccccccc\nd", Ends::Line),
            ["1:a row longer than a chunk\nb\n", "3:ccccccc\nd"]
        );
        assert_eq!(
            cut("\"a\n\n\n\n\n\"\nbbbbbbbbb", Ends::CsvLine),
            ["1:\"a\n\n\n\n\n\"\n", "7:bbbbbbbbb"]
        );
        assert_eq!(cut("5\" b\n\"\n\"\ncc", Ends::CsvLine), ["1:5\" b\n", "2:\"\n\"\ncc"]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_at_the_start_alone() {
        assert_eq!(cut("\u{feff}abc\n\u{feff}\n", Ends::Line), ["1:abc\n", "2:\u{feff}\n"]);
    }

    #[test]
    fn a_row_that_is_too_long_is_an_error() {
        let text = format!("a\n{}\n", "b".repeat(64));
        let mut cutter = Cutter::with_lens(text.as_bytes(), Ends::Line, 8, 64);
        assert!(matches!(cutter.next(Vec::new()), Ok(Some(_))));
        let error = cutter.next(Vec::new()).expect_err("a row of 65 bytes");
        assert!(matches!(error, CutError::LongRow { line: 2, most: 64 }), "{error:?}");
    }

    /// The rows that `parse` makes of a text in chunks of this length, and its error; the sink
    /// takes one row at a time if `pausing` says so.
    fn rows(
        (text, ends): (&str, Ends),
        chunk_len: usize,
        pausing: bool,
        mut parse: impl FnMut(&mut Text<'_>, &mut Shown) -> Result<(), RowError>,
    ) -> (Vec<String>, Option<String>) {
        let mut shown = Shown { rows: Vec::new(), pausing };
        let mut cutter = Cutter::with_lens(text.as_bytes(), ends, chunk_len, 1 << 20);
        while let Some(mut chunk) = cutter.next(Vec::new()).expect("short rows") {
            while !chunk.is_done() {
                if let Err(error) = chunk.parse(|text| parse(text, &mut shown)) {
                    return (shown.rows, Some(error.to_string()));
                }
            }
        }
        (shown.rows, None)
    }

    struct Shown {
        rows: Vec<String>,
        pausing: bool,
    }

    impl RowSink for Shown {
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
            self.pausing
        }
    }

    /// Rows, lines and errors are the same however the text is cut and the sink is emptied.
    fn cutting_changes_nothing<R: Default>(
        input: (&str, Ends),
        mut parse: impl FnMut(&mut Text<'_>, &mut R, &mut Shown) -> Result<(), RowError>,
    ) -> Result<(), TestCaseError> {
        let mut cut = |chunk_len, pausing| {
            let mut room = R::default();
            rows(input, chunk_len, pausing, |text, shown| parse(text, &mut room, shown))
        };
        let whole = cut(1 << 16, false);
        prop_assert_eq!(&cut(7, false), &whole);
        prop_assert_eq!(&cut(16, true), &whole);
        Ok(())
    }

    proptest! {
        #[test]
        fn cutting_json_lines_changes_nothing(
            text in "(\\{\"key\":\"[aé\\\\n]{0,2}\",\"value\":(1|\"b\"|\\[2\\])\\}\r?\n|\n|x){0,9}"
        ) {
            let parser = jsonl::Parser::default();
            cutting_changes_nothing((&text, Ends::Line), |t, room, s| parser.parse(t, room, s))?;
        }

        #[test]
        fn cutting_tsv_changes_nothing(text in "([ab\\\\é]{0,3}\t[ab]{0,9}\n|\n|\r|x){0,9}") {
            let parser = tsv::Parser::default();
            cutting_changes_nothing((&text, Ends::Line), |t, room, s| parser.parse(t, room, s))?;
        }

        #[test]
        fn cutting_axoncache_text_changes_nothing(
            text in "(\u{1}?[ab=]{0,3}=[a|]{0,4}\u{1e}\n?|x){0,9}"
        ) {
            let parser = dta::Parser::default();
            cutting_changes_nothing((&text, Ends::Record), |t, room, s| parser.parse(t, room, s))?;
        }

        #[test]
        fn cutting_csv_changes_nothing(text in "([a\",\r\n]|a,\"b\n\"\n|aa,bbbb\n){0,20}") {
            let columns = Choice { key: "id".to_owned(), value: None };
            let options = csv::Options { columns, ..csv::Options::default() };
            let names = ["id".to_owned(), "a".to_owned()];
            let parser = csv::Parser::new(&options, &names).expect("columns of these names");
            cutting_changes_nothing((&text, Ends::CsvLine), |t, room, s| parser.parse(t, room, s))?;
        }
    }
}
