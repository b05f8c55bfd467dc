//! The position of the scanner, and its basic steps.

use crate::fault::{Fault, Scan};
use crate::text::describe;

/// A position in a JSON text.
#[derive(Debug)]
pub(crate) struct Scanner<'t> {
    pub(super) bytes: &'t [u8],
    pub(crate) at: usize,
    /// Whether line feeds are white space.
    spans_lines: bool,
}

impl<'t> Scanner<'t> {
    /// Returns a scanner of one line: line feeds are not white space.
    pub(crate) fn new(bytes: &'t [u8], at: usize) -> Self {
        Self { bytes, at, spans_lines: false }
    }

    /// Returns a scanner of a document, in which line feeds are white space.
    pub(crate) fn of_document(bytes: &'t [u8], at: usize) -> Self {
        Self { bytes, at, spans_lines: true }
    }

    /// Returns the next byte.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space.
    #[inline]
    pub(crate) fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' if self.spans_lines => self.at += 1,
                _ => break,
            }
        }
    }

    /// Moves past the next byte if it is `byte`. Returns whether it was.
    #[inline]
    pub(crate) fn consume(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Moves past the next bytes if they are `bytes`. Returns whether they were.
    #[inline]
    pub(crate) fn consume_bytes(&mut self, bytes: &[u8]) -> bool {
        let is_next = self.bytes[self.at..].starts_with(bytes);
        self.at += if is_next { bytes.len() } else { 0 };
        is_next
    }

    /// Moves past `byte`, which must be the next one.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Scan<()> {
        if self.consume(byte) { Ok(()) } else { Err(self.fault(expected)) }
    }

    /// Moves past the byte behind an element: returns true for a comma, which another element must
    /// follow, and false for the closing byte.
    #[inline]
    pub(crate) fn next_element(&mut self, close: u8, expected: &'static str) -> Scan<bool> {
        self.skip_blank();
        if self.consume(b',') {
            self.skip_blank();
            return Ok(true);
        }
        self.expect(close, expected)?;
        Ok(false)
    }

    /// Fails if anything but white space follows.
    pub(crate) fn expect_end(&mut self) -> Scan<()> {
        self.skip_blank();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.fault("the end of the value")) }
    }

    /// Returns the fault of the text at the current position.
    #[cold]
    pub(crate) fn fault(&self, expected: &'static str) -> Fault {
        self.fault_at(self.at, expected)
    }

    /// Returns the fault of the text at this offset.
    #[cold]
    pub(crate) fn fault_at(&self, at: usize, expected: &'static str) -> Fault {
        Fault::new(at, expected, describe(self.bytes, at))
    }
}
