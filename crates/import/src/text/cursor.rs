//! Where rows go, and the text they come from.

use super::error::{Refusal, RowError};
use nuthatch_snapshot::{Batch, Value};

/// Where parsed rows go.
pub trait RowSink {
    /// Takes a row that began in this line.
    fn row(
        &mut self,
        line: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error>;

    /// Whether parsing should pause after this row, so that the sink can be emptied.
    fn is_full(&self) -> bool {
        false
    }
}

/// Rows for a writer, marked with where they came from.
#[derive(Debug)]
pub(crate) struct BatchSink {
    pub(crate) batch: Batch,
    pub(crate) input: u16,
}

impl RowSink for BatchSink {
    #[inline]
    fn row(
        &mut self,
        line: u64,
        key: &[u8],
        value: Value<'_>,
    ) -> Result<(), nuthatch_snapshot::Error> {
        self.batch.push_with_position(Origin { input: self.input, line }.pack(), key, value)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.batch.is_full()
    }
}

/// Where a row came from: 16 bits of input and 48 bits of line make the origin a writer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) input: u16,
    pub(crate) line: u64,
}

impl Origin {
    const LINE_BITS: u32 = 48;

    pub(crate) fn pack(self) -> u64 {
        u64::from(self.input) << Self::LINE_BITS | (self.line & ((1 << Self::LINE_BITS) - 1))
    }

    pub(crate) fn unpack(origin: u64) -> Self {
        let line = origin & ((1 << Self::LINE_BITS) - 1);
        Self { input: (origin >> Self::LINE_BITS) as u16, line }
    }
}

/// Whole rows of text, and how far they are parsed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'t> {
    pub(crate) bytes: &'t [u8],
    /// Where the next row begins.
    pub(crate) at: usize,
    /// The line that row begins in.
    pub(crate) line: u64,
    /// What ends a line.
    pub(crate) end: u8,
}

impl<'t> Text<'t> {
    /// A whole input in one piece, with lines.
    pub(crate) fn lines(bytes: &'t [u8]) -> Self {
        Self { bytes, at: 0, line: 1, end: b'\n' }
    }

    /// The bytes from the next row to the end of its line, and where the next line begins.
    pub(crate) fn line(&self) -> (&'t [u8], usize) {
        let rest = &self.bytes[self.at..];
        match memchr::memchr(self.end, rest) {
            Some(len) => (&rest[..len], self.at + len + 1),
            None => (rest, self.bytes.len()),
        }
    }

    /// Parses rows until the text or the room of the sink ends.
    pub(crate) fn parse<S: RowSink>(
        &mut self,
        sink: &mut S,
        mut row: impl FnMut(&mut Self, &mut S) -> Result<(), Refusal>,
    ) -> Result<(), RowError> {
        while self.at < self.bytes.len() {
            let start = (self.at, self.line);
            row(self, sink).map_err(|refusal| self.place(start, refusal))?;
            if sink.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Tells line and column of what is wrong with the row that begins here.
    #[cold]
    fn place(&self, (start, line): (usize, u64), refusal: Refusal) -> RowError {
        let fault = match refusal {
            Refusal::Fault(fault) => fault,
            Refusal::Sink(error) => return RowError::Sink(error),
        };
        let before = &self.bytes[start..fault.at().clamp(start, self.bytes.len())];
        let lines = memchr::memchr_iter(self.end, before).count() as u64;
        let line_start = memchr::memrchr(self.end, before).map_or(0, |end| end + 1);
        let characters = String::from_utf8_lossy(&before[line_start..]).chars().count() as u64;
        fault.placed(line + lines, characters + 1)
    }
}

/// What is at this place of a text, for people.
#[cold]
pub(crate) fn describe(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    let Some(&first) = rest.first() else { return "the end of the input".to_owned() };
    let word = |keep: fn(&u8) -> bool| {
        let len = rest.iter().take(40).take_while(|byte| keep(byte)).count();
        String::from_utf8_lossy(&rest[..len]).into_owned()
    };
    match first {
        b'\n' => "the end of the line".to_owned(),
        b'\r' if rest.get(1) == Some(&b'\n') => "the end of the line".to_owned(),
        b'"' => "a string".to_owned(),
        b'[' => "a list".to_owned(),
        b'{' => "an object".to_owned(),
        b'a'..=b'z' | b'A'..=b'Z' => word(u8::is_ascii_alphanumeric),
        b'0'..=b'9' | b'-' => word(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)),
        0..0x20 | 0x7f => format!("the control character 0x{first:02x}"),
        _ => {
            let chunk = rest[..rest.len().min(4)].utf8_chunks().next();
            match chunk.and_then(|chunk| chunk.valid().chars().next()) {
                Some(character) => format!("'{character}'"),
                None => format!("the byte 0x{first:02x}, which is not UTF-8"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_keep_input_and_line() {
        for (input, line) in [(0, 1), (65_535, (1 << 48) - 1), (3, 1_000_000_007)] {
            let origin = Origin { input, line };
            assert_eq!(Origin::unpack(origin.pack()), origin);
        }
    }

    #[test]
    fn what_is_found_is_told_in_words() {
        for (text, told) in [
            (&b""[..], "the end of the input"),
            (b"\n", "the end of the line"),
            (b"\r\n", "the end of the line"),
            (b"null,", "null"),
            (b"-1.5e+7}", "-1.5e+7"),
            (b"\"a\"", "a string"),
            ("é".as_bytes(), "'é'"),
            (b"\xff", "the byte 0xff, which is not UTF-8"),
            (b"\x01", "the control character 0x01"),
            (b"}", "'}'"),
        ] {
            assert_eq!(describe(text, 0), told);
        }
    }
}
