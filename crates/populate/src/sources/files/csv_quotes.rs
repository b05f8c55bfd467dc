//! Detects text in CSV whose closing quote is missing, which the library takes for a value that
//! ends with the file.

use std::io::{self, Read};

/// The position in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Plain,
    Quoted,
    /// After a quote in a quoted value: its end, or the first of two quotes.
    Quote,
}

/// A reader that follows the quotes of the text.
pub(super) struct QuoteCheck<R> {
    reader: R,
    delimiter: u8,
    state: State,
    is_at_start: bool,
}

impl<R> QuoteCheck<R> {
    /// Returns a reader of the same text.
    pub(super) fn new(reader: R, delimiter: u8) -> Self {
        Self { reader, delimiter, state: State::Start, is_at_start: true }
    }

    /// Returns whether the text so far ends within quotes.
    pub(super) fn is_in_quotes(&self) -> bool {
        self.state == State::Quoted
    }

    fn follow(&mut self, text: &[u8]) {
        let mut rest = text;
        loop {
            // Most bytes of quoted text are skipped at once.
            if self.state == State::Quoted {
                let Some(quote) = memchr::memchr(b'"', rest) else { return };
                self.state = State::Quote;
                rest = &rest[quote + 1..];
            }
            let Some((&byte, after)) = rest.split_first() else { return };
            rest = after;
            self.state = match (self.state, byte) {
                (State::Start | State::Quote, b'"') => State::Quoted,
                (_, b'\r' | b'\n') => State::Start,
                (_, byte) if byte == self.delimiter => State::Start,
                _ => State::Plain,
            };
        }
    }
}

impl<R: Read> Read for QuoteCheck<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let text = &buffer[..count];
        // The library skips a byte order mark, too.
        let mark = self.is_at_start && text.starts_with(b"\xef\xbb\xbf");
        self.is_at_start = false;
        self.follow(if mark { &text[3..] } else { text });
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_quotes_are_detected() {
        for (text, expected) in [
            ("a,\"b\"\n", false),
            ("a,\"b\"\"\"", false),
            ("a,5\" b\n", false),
            ("a,\"b\n1,2\n", true),
            ("a,\"b\"\"", true),
            ("\u{feff}\"a\"", false),
            ("\u{feff}\"a", true),
            ("\"a\"b\"c,d", false),
        ] {
            // In one piece, and byte by byte.
            for chunk in [1, 100] {
                let mut check = QuoteCheck::new(text.as_bytes(), b',');
                if chunk == 100 || !text.starts_with('\u{feff}') {
                    let mut buffer = vec![0; chunk];
                    while check.read(&mut buffer).expect("a text") > 0 {}
                    assert_eq!(check.is_in_quotes(), expected, "{text:?}");
                }
            }
        }
    }
}
