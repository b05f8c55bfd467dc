//! JSON strings.

use super::scanner::Scanner;
use crate::fault::{Fault, Scan};

impl<'t> Scanner<'t> {
    /// Parses a string. Returns it from the text if it has no escapes; otherwise returns `None` and
    /// leaves the string in `unescaped`.
    #[inline]
    pub(crate) fn string(
        &mut self,
        unescaped: &mut String,
        expected: &'static str,
    ) -> Scan<Option<&'t str>> {
        self.expect(b'"', expected)?;
        let start = self.at;
        self.at += plain_len(&self.bytes[start..]);
        if self.peek() == Some(b'"') {
            let text = self.utf8(start)?;
            self.at += 1;
            return Ok(Some(text));
        }
        self.escaped(start, unescaped)?;
        Ok(None)
    }

    /// Parses the rest of a string that began at `start` and has had no escapes so far.
    fn escaped(&mut self, start: usize, unescaped: &mut String) -> Scan<()> {
        unescaped.clear();
        let mut start = start;
        loop {
            unescaped.push_str(self.utf8(start)?);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => unescaped.push(self.escape()?),
                Some(b'\n') | None => return Err(self.fault("a quote at the end of the string")),
                Some(_) => return Err(self.fault("an escape such as \\t or \\u0001")),
            }
            start = self.at;
            self.at += plain_len(&self.bytes[start..]);
        }
    }

    /// Returns the text from `start` to the current position.
    #[inline]
    fn utf8(&self, start: usize) -> Scan<&'t str> {
        std::str::from_utf8(&self.bytes[start..self.at])
            .map_err(|e| self.fault_at(start + e.valid_up_to(), "text in UTF-8"))
    }

    /// Parses an escape, which begins at the current position.
    fn escape(&mut self) -> Scan<char> {
        let start = self.at;
        self.at += 2;
        Ok(match self.bytes.get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(start),
            _ => {
                let expected = "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u";
                return Err(Fault::new(start, expected, self.escape_text(start, 2)));
            }
        })
    }

    /// Parses the digits of a `\u` escape that began at `start`, and the second escape of a
    /// surrogate pair.
    fn code_point(&mut self, start: usize) -> Scan<char> {
        let first = self.hex4(start)?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let second_start = self.at;
        let is_paired = first < 0xdc00 && self.bytes[self.at..].starts_with(b"\\u");
        if is_paired {
            self.at += 2;
            let second = self.hex4(second_start)?;
            if (0xdc00..0xe000).contains(&second) {
                let character = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        let expected = "a pair of surrogates such as \\ud83d\\ude00, or none";
        Err(Fault::new(start, expected, self.escape_text(start, 6)))
    }

    /// Parses the four hexadecimal digits of an escape that began at `start`.
    fn hex4(&mut self, start: usize) -> Scan<u32> {
        let digits = self.bytes.get(self.at..self.at + 4).unwrap_or_default();
        let value = digits
            .iter()
            .try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?));
        self.at += 4;
        value.filter(|_| digits.len() == 4).ok_or_else(|| {
            let expected = "\\u and four hexadecimal digits";
            Fault::new(start, expected, self.escape_text(start, 6))
        })
    }

    /// Returns an escape as the text has it.
    #[cold]
    fn escape_text(&self, start: usize, len: usize) -> String {
        let text = &self.bytes[start..self.bytes.len().min(start + len)];
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        String::from_utf8_lossy(line).into_owned()
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// Returns the number of bytes before the first quote, backslash or control character.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return i * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + rest.iter().position(special).unwrap_or(rest.len())
}

/// Sets the high bit of the first byte that ends plain text. Bytes behind it may have it set, too.
#[inline]
fn special(word: u64) -> u64 {
    let below =
        |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH_BITS;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    equal(b'"') | equal(b'\\') | below(word, 0x20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_ends_before_special_bytes() {
        for end in [b'"', b'\\', 0, b'\n', 0x1f] {
            for len in 0..40 {
                let mut text = "¿ab~ \u{7f}é!#[]".as_bytes().repeat(4)[..len].to_vec();
                assert_eq!(plain_len(&text), len);
                text.extend([end, b'"', b'a', b'b', 0, b'c', b'd', b'e', b'f']);
                assert_eq!(plain_len(&text), len, "before {end}");
            }
        }
    }
}
