//! A scanner over JSON text, for values of the kinds that snapshots hold. It builds no tree: text
//! without escapes is borrowed, lists are gathered in a [`Room`] that is used again.

#[path = "list.rs"]
mod list;
#[path = "number.rs"]
mod number;
#[path = "string.rs"]
mod string;
#[path = "value.rs"]
mod value;

pub(crate) use list::Elements;
pub(crate) use number::double;
pub(crate) use value::{Room, Shape};

use super::error::{Fault, Scan};
use super::rows::describe;

/// A place in a JSON text. Line ends are no white space here: each row has a line of its own.
#[derive(Debug)]
pub(crate) struct Scanner<'t> {
    bytes: &'t [u8],
    pub(crate) at: usize,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(bytes: &'t [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space.
    #[inline]
    pub(crate) fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Moves past this byte if it comes next.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    /// Moves past these bytes if they come next.
    #[inline]
    pub(crate) fn word(&mut self, word: &[u8]) -> bool {
        let taken = self.bytes[self.at..].starts_with(word);
        self.at += if taken { word.len() } else { 0 };
        taken
    }

    /// Moves past this byte, which must come next.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Scan<()> {
        if self.take(byte) { Ok(()) } else { Err(self.fault(expected)) }
    }

    /// Moves past what follows an element: true for a comma, false for the closing byte.
    #[inline]
    pub(crate) fn another(&mut self, close: u8, expected: &'static str) -> Scan<bool> {
        self.blank();
        if self.take(b',') {
            self.blank();
            return Ok(true);
        }
        self.expect(close, expected)?;
        Ok(false)
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Scan<()> {
        self.blank();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.fault("the end of the value")) }
    }

    /// What comes next should be something else.
    #[cold]
    pub(crate) fn fault(&self, expected: &'static str) -> Fault {
        self.fault_at(self.at, expected)
    }

    #[cold]
    pub(crate) fn fault_at(&self, at: usize, expected: &'static str) -> Fault {
        Fault::new(at, expected, describe(self.bytes, at))
    }
}
