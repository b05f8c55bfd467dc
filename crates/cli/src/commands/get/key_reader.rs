//! Keys from a stream, each ended by a line feed or a NUL byte.

use crate::outcome::Failure;
use std::io::{ErrorKind, Read};

/// Maximum length of a key of a snapshot in bytes.
const MAX_KEY_LEN: usize = 65_535;
/// Maximum number of bytes that are read at once.
const READ_LEN: usize = 1 << 16;

/// Reads keys from a stream. It returns the whole keys that one read provides, without waiting for
/// more, and keeps at most one incomplete key.
pub(super) struct KeyReader<R> {
    reader: R,
    /// The byte that ends a key.
    end: u8,
    bytes: Vec<u8>,
    /// The offsets in `bytes` of the part that is not returned yet.
    start: usize,
    filled: usize,
    /// Number of keys returned so far.
    count: u64,
    is_at_end: bool,
}

impl<R: Read> KeyReader<R> {
    pub(super) fn new(reader: R, end: u8) -> Self {
        let bytes = vec![0; MAX_KEY_LEN + 2 + READ_LEN];
        Self { reader, end, bytes, start: 0, filled: 0, count: 0, is_at_end: false }
    }

    /// Waits for at least one key. Returns all keys that have arrived, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Fails if the stream cannot be read, or if a key is longer than a key of a snapshot can be.
    pub(super) fn next(&mut self) -> Result<Option<Vec<&[u8]>>, Failure> {
        let keys_end = loop {
            let rest = &self.bytes[self.start..self.filled];
            if let Some(at) = rest.iter().rposition(|byte| *byte == self.end) {
                break self.start + at + 1;
            }
            if self.is_at_end {
                break self.filled;
            }
            if rest.len() > MAX_KEY_LEN + 1 {
                return Err(self.long_key(self.count));
            }
            self.read()?;
        };
        let (start, before) = (self.start, self.count);
        self.start = keys_end;
        if start == keys_end {
            return Ok(None);
        }
        let text = &self.bytes[start..keys_end];
        let text = text.strip_suffix(&[self.end]).unwrap_or(text);
        let keys: Vec<_> = text.split(|byte| *byte == self.end).map(|key| self.trim(key)).collect();
        self.count += keys.len() as u64;
        if let Some(long) = keys.iter().position(|key| key.len() > MAX_KEY_LEN) {
            return Err(self.long_key(before + long as u64));
        }
        Ok(Some(keys))
    }

    /// Returns a key without the carriage return of a line end.
    fn trim<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        if self.end == b'\n' { key.strip_suffix(b"\r").unwrap_or(key) } else { key }
    }

    /// Moves the incomplete key to the start of the buffer, and reads behind it once.
    fn read(&mut self) -> Result<(), Failure> {
        self.bytes.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        let room = self.filled..self.filled + READ_LEN;
        match self.reader.read(&mut self.bytes[room]) {
            Ok(0) => self.is_at_end = true,
            Ok(len) => self.filled += len,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::Error(format!("<stdin>: read: {error}"))),
        }
        Ok(())
    }

    /// Returns the error for a long key, with its number counted from one.
    fn long_key(&self, before: u64) -> Failure {
        let number = before + 1;
        let place = if self.end == b'\n' { "" } else { "key " };
        Failure::Error(format!(
            "<stdin>:{place}{number}: expected a key of at most {MAX_KEY_LEN} bytes, found a \
             longer one"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that returns one part at each read.
    struct Parts<'a>(Vec<&'a [u8]>);

    impl Read for Parts<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let part = self.0.remove(0);
            bytes[..part.len()].copy_from_slice(part);
            Ok(part.len())
        }
    }

    fn batches(parts: &[&str], end: u8) -> Vec<Vec<String>> {
        let parts = Parts(parts.iter().map(|part| part.as_bytes()).collect());
        let mut reader = KeyReader::new(parts, end);
        let mut batches = Vec::new();
        while let Ok(Some(keys)) = reader.next() {
            let keys = keys.iter().map(|key| String::from_utf8_lossy(key).into_owned());
            batches.push(keys.collect());
        }
        batches
    }

    #[test]
    fn keys_are_returned_as_soon_as_they_are_whole() {
        assert_eq!(
            batches(&["a\nb", "c\r\n", "\n", "d"], b'\n'),
            [vec!["a"], vec!["bc"], vec![""], vec!["d"]]
        );
        assert_eq!(batches(&["a\nb\r\0", "\0c"], 0), [vec!["a\nb\r"], vec![""], vec!["c"]]);
        assert_eq!(batches(&[], b'\n'), Vec::<Vec<String>>::new());
    }

    #[test]
    fn the_longest_key_is_read_and_a_longer_one_is_an_error() {
        let longest = "k".repeat(MAX_KEY_LEN);
        for end in ["\n", "\r\n", ""] {
            let text = format!("a\n{longest}{end}");
            let (first, second) = text.split_at(60_000);
            let keys = batches(&[first, second], b'\n').concat();
            assert_eq!(keys, ["a", &longest], "{end:?}");
        }
        let text = format!("a\n{longest}k");
        let (first, second) = text.split_at(60_000);
        for parts in [vec![first, second], vec![first, second, "\nb\n"]] {
            let parts = Parts(parts.iter().map(|part| part.as_bytes()).collect());
            let mut reader = KeyReader::new(parts, b'\n');
            assert!(matches!(reader.next(), Ok(Some(keys)) if keys == [b"a"]));
            let Err(error) = reader.next() else { panic!("a long key") };
            let expected = "<stdin>:2: expected a key of at most 65535 bytes, found a longer one";
            assert_eq!(error.into_message(), expected);
        }
    }
}
