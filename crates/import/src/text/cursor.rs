//! A position in the text of an input, from which rows are parsed.

use crate::error::RowError;
use crate::fault::RowFault;
use crate::sink::RowSink;

/// A text of whole rows, and the position up to which it is parsed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextCursor<'t> {
    pub(crate) bytes: &'t [u8],
    /// The offset of the next row.
    pub(crate) at: usize,
    /// The line in which that row begins.
    pub(crate) line: u64,
    /// The number of characters before the text in its first line.
    pub(crate) column: u64,
    /// The byte that ends a line.
    pub(crate) line_end: u8,
}

impl<'t> TextCursor<'t> {
    /// Returns a cursor at the start of a whole input, whose lines end with line feeds.
    pub(crate) fn lines(bytes: &'t [u8]) -> Self {
        Self { bytes, at: 0, line: 1, column: 0, line_end: b'\n' }
    }

    /// Returns the bytes from the next row to the end of its line, and the offset of the next line.
    pub(crate) fn line(&self) -> (&'t [u8], usize) {
        let rest = &self.bytes[self.at..];
        match memchr::memchr(self.line_end, rest) {
            Some(len) => (&rest[..len], self.at + len + 1),
            None => (rest, self.bytes.len()),
        }
    }

    /// Moves to this offset, and counts the lines up to there.
    pub(crate) fn advance_to(&mut self, at: usize) {
        self.line += memchr::memchr_iter(self.line_end, &self.bytes[self.at..at]).count() as u64;
        self.at = at;
    }

    /// Returns the offset and the number of the line that has the current position, to
    /// [`locate`](Self::locate) faults in rows that do not begin with a line.
    pub(crate) fn line_start(&self) -> (usize, u64) {
        let before = &self.bytes[..self.at];
        (memchr::memrchr(self.line_end, before).map_or(0, |end| end + 1), self.line)
    }

    /// Parses rows until the text ends or the sink is full. `row` parses one row and moves the
    /// cursor behind it.
    pub(crate) fn parse<S: RowSink>(
        &mut self,
        sink: &mut S,
        mut row: impl FnMut(&mut Self, &mut S) -> Result<(), RowFault>,
    ) -> Result<(), RowError> {
        while self.at < self.bytes.len() {
            let start = (self.at, self.line);
            row(self, sink).map_err(|fault| self.locate(start, fault))?;
            if sink.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the error for a fault of the row that begins at this offset and in this line.
    #[cold]
    pub(crate) fn locate(&self, (start, line): (usize, u64), fault: RowFault) -> RowError {
        let fault = match fault {
            RowFault::Text(fault) => fault,
            RowFault::Sink(error) => return RowError::Sink(error),
        };
        let before = &self.bytes[start..fault.at().clamp(start, self.bytes.len())];
        let lines = memchr::memchr_iter(self.line_end, before).count() as u64;
        let line_start = memchr::memrchr(self.line_end, before).map_or(0, |end| end + 1);
        let characters = String::from_utf8_lossy(&before[line_start..]).chars().count() as u64;
        let is_in_first_line = start == 0 && lines == 0;
        let characters = characters + if is_in_first_line { self.column } else { 0 };
        fault.into_error(line + lines, characters + 1)
    }
}
