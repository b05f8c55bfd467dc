//! Counts replies without parsing them: the first bytes of a reply determine its length.

use std::fmt;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Hit,
    Miss,
    Stored,
}

/// Maximum length of a head, in bytes. It suffices to distinguish replies.
const MAX_HEAD_LEN: usize = 16;

/// The first bytes of one kind of reply, and the number of bytes that follow.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    bytes: [u8; MAX_HEAD_LEN],
    len: usize,
    /// Number of bytes of the reply after the head.
    rest: usize,
    outcome: Outcome,
}

impl Head {
    /// Creates a head of at most [`MAX_HEAD_LEN`] bytes.
    pub(crate) fn new(head: &[u8], rest: usize, outcome: Outcome) -> Self {
        let mut bytes = [0; MAX_HEAD_LEN];
        bytes[..head.len()].copy_from_slice(head);
        Self { bytes, len: head.len(), rest, outcome }
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Numbers of replies by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) stored: u64,
}

impl Counts {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Hit => self.hits += 1,
            Outcome::Miss => self.misses += 1,
            Outcome::Stored => self.stored += 1,
        }
    }

    pub(crate) fn all(&self) -> u64 {
        self.hits + self.misses + self.stored
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.stored += other.stored;
    }
}

/// A reply without an expected head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unexpected {
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// The heads of the expected replies.
#[derive(Debug)]
pub(crate) struct Heads {
    all: Vec<Head>,
    /// The most likely head as a little-endian number, and a mask of its bytes.
    likely: u128,
    mask: u128,
}

impl Heads {
    /// Creates the set of heads. The most likely one comes first, and there is at least one.
    pub(crate) fn new(all: Vec<Head>) -> Self {
        let mask = (0..all[0].len).fold(0, |mask, at| mask | 0xFF << (8 * at));
        Self { likely: u128::from_le_bytes(all[0].bytes), mask, all }
    }

    fn find(&self, bytes: &[u8]) -> Found<'_> {
        if let Some(head) = self.all.iter().find(|head| bytes.starts_with(head.text())) {
            return Found::Head(head);
        }
        let begun = self.all.iter().any(|head| head.text().starts_with(bytes));
        if begun { Found::Begun } else { Found::None }
    }
}

enum Found<'a> {
    Head(&'a Head),
    /// The bytes are the beginning of a head.
    Begun,
    None,
}

/// Counts the replies of one connection.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// The bytes of an incomplete head.
    begun: Vec<u8>,
    /// The outcome of an incomplete reply after its head, and the number of its missing bytes.
    open: Option<(Outcome, usize)>,
}

impl Scanner {
    /// Counts the replies that end in `bytes`, which follow the bytes of the previous call.
    pub(crate) fn scan(&mut self, heads: &Heads, bytes: &[u8]) -> Result<Counts, Unexpected> {
        let mut counts = Counts::default();
        let mut at = self.finish_open(bytes, &mut counts);
        while at < bytes.len() {
            if self.begun.is_empty() {
                at = skip_likely(heads, bytes, at, &mut counts);
                at += self.begin(heads, &bytes[at..])?;
            } else {
                at += self.extend_head(heads, &bytes[at..])?;
            }
            at += self.finish_open(&bytes[at..], &mut counts);
        }
        Ok(counts)
    }

    /// Returns whether all bytes so far belong to complete replies.
    pub(crate) fn is_at_an_end(&self) -> bool {
        self.begun.is_empty() && self.open.is_none()
    }

    /// Skips the rest of an incomplete reply, and returns the number of skipped bytes.
    fn finish_open(&mut self, bytes: &[u8], counts: &mut Counts) -> usize {
        let Some((outcome, left)) = self.open else { return 0 };
        if left > bytes.len() {
            self.open = Some((outcome, left - bytes.len()));
            return bytes.len();
        }
        counts.add(outcome);
        self.open = None;
        left
    }

    /// Reads a head at the beginning of a reply, and returns the number of bytes read.
    fn begin(&mut self, heads: &Heads, bytes: &[u8]) -> Result<usize, Unexpected> {
        match heads.find(bytes) {
            Found::Head(head) => {
                self.open = Some((head.outcome, head.rest));
                Ok(head.len)
            }
            Found::Begun => {
                self.begun.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Found::None => Err(unexpected(heads, bytes)),
        }
    }

    /// Adds bytes to an incomplete head until it is complete. Returns the number of bytes read.
    fn extend_head(&mut self, heads: &Heads, bytes: &[u8]) -> Result<usize, Unexpected> {
        for (at, byte) in bytes.iter().enumerate() {
            self.begun.push(*byte);
            match heads.find(&self.begun) {
                Found::Head(head) => {
                    self.begun.clear();
                    self.open = Some((head.outcome, head.rest));
                    return Ok(at + 1);
                }
                Found::Begun => {}
                Found::None => {
                    self.begun.extend_from_slice(&bytes[at + 1..]);
                    return Err(unexpected(heads, &self.begun));
                }
            }
        }
        Ok(bytes.len())
    }
}

/// Skips complete replies with the most likely head, which are nearly all replies. Returns the
/// offset after them.
fn skip_likely(heads: &Heads, bytes: &[u8], mut at: usize, counts: &mut Counts) -> usize {
    let head = &heads.all[0];
    let len = head.len + head.rest;
    let mut count = 0;
    while let Some(next) = bytes[at..].first_chunk() {
        if u128::from_le_bytes(*next) & heads.mask != heads.likely || bytes.len() - at < len {
            break;
        }
        at += len;
        count += 1;
    }
    match head.outcome {
        Outcome::Hit => counts.hits += count,
        Outcome::Miss => counts.misses += count,
        Outcome::Stored => counts.stored += count,
    }
    at
}

/// Maximum number of bytes of a reply in an error message.
const MAX_SHOWN_BYTES: usize = 64;

fn unexpected(heads: &Heads, bytes: &[u8]) -> Unexpected {
    let expected: Vec<String> = heads.all.iter().map(|head| shown(head.text())).collect();
    Unexpected {
        expected: expected.join(" or "),
        found: shown(&bytes[..bytes.len().min(MAX_SHOWN_BYTES)]),
    }
}

fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a reply that begins with {}, found {}", self.expected, self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;

    const PROTOCOLS: [Protocol; 5] =
        [Protocol::Resp, Protocol::Memcache, Protocol::Meta, Protocol::Mrcache, Protocol::Pmc];

    /// Returns the replies to two gets, a hit and a miss, for values of `size` bytes.
    fn replies(protocol: Protocol, size: usize) -> (Vec<u8>, Vec<u8>) {
        // The value contains byte sequences that resemble the end or the head of a reply.
        let value: String = "key:END\r\n$-1\r\n".chars().cycle().take(size).collect();
        let text = match protocol {
            Protocol::Resp => [format!("${size}\r\n{value}\r\n"), "$-1\r\n".into()],
            Protocol::Memcache => {
                let head = format!("VALUE key:000000000007 0 {size}");
                [format!("{head}\r\n{value}\r\nEND\r\n"), "END\r\n".into()]
            }
            Protocol::Meta => [format!("VA {size}\r\n{value}\r\n"), "EN\r\n".into()],
            Protocol::Pmc => [format!("{value}\x1F"), "(nil)\x1F".into()],
            Protocol::Mrcache => {
                let hit = [&(size as u32).to_le_bytes(), value.as_bytes()].concat();
                return (hit, vec![0; 4]);
            }
        };
        let [hit, miss] = text.map(String::into_bytes);
        (hit, miss)
    }

    fn scan_all(heads: &Heads, pieces: &[&[u8]]) -> (Counts, Scanner) {
        let (mut all, mut scanner) = (Counts::default(), Scanner::default());
        for piece in pieces {
            all.add_all(&scanner.scan(heads, piece).expect("replies as expected"));
        }
        (all, scanner)
    }

    #[test]
    fn replies_count_at_every_split() {
        for protocol in PROTOCOLS {
            for size in [1, 4, 5, 16, 100] {
                let heads = Heads::new(protocol.get_heads(size));
                let (hit, miss) = replies(protocol, size);
                let bytes = [&hit[..], &hit, &miss, &miss, &hit, &miss, &hit].concat();
                let expected = Counts { hits: 4, misses: 3, stored: 0 };
                for split in 0..=bytes.len() {
                    let (first, second) = bytes.split_at(split);
                    let (counts, scanner) = scan_all(&heads, &[first, second]);
                    assert_eq!(counts, expected, "{protocol} of {size}, split at {split}");
                    assert!(scanner.is_at_an_end(), "{protocol} of {size}, split at {split}");
                }
                let single: Vec<&[u8]> = bytes.chunks(1).collect();
                assert_eq!(scan_all(&heads, &single).0, expected, "{protocol} of {size}");
            }
        }
    }

    #[test]
    fn stored_values_count() {
        for protocol in PROTOCOLS.into_iter().filter(|protocol| protocol.answers_sets()) {
            let heads = Heads::new(protocol.set_heads());
            let reply = heads.all[0].text().repeat(1000);
            for size in [1, 2, 3, 7, 64, reply.len()] {
                let pieces: Vec<&[u8]> = reply.chunks(size).collect();
                assert_eq!(scan_all(&heads, &pieces).0.stored, 1000, "{protocol} by {size}");
            }
        }
    }

    #[test]
    fn a_reply_counts_after_its_last_byte() {
        let heads = Heads::new(Protocol::Resp.get_heads(3));
        let (counts, scanner) = scan_all(&heads, &[b"$3\r\nabc\r\n$3\r\nabc\r"]);
        assert_eq!(counts, Counts { hits: 1, ..Counts::default() });
        assert!(!scanner.is_at_an_end());
    }

    #[test]
    fn unexpected_replies_are_reported() {
        let heads = Heads::new(Protocol::Resp.get_heads(100));
        let found = r#""-ERR unknown command\r\n""#;
        let expected = r#""$100\r\n" or "$-1\r\n" or "_\r\n""#;
        let bytes = b"-ERR unknown command\r\n";
        for pieces in [vec![&bytes[..]], bytes.chunks(1).collect()] {
            let mut scanner = Scanner::default();
            let mut scans = pieces.into_iter().map(|piece| scanner.scan(&heads, piece));
            let error = scans.find_map(Result::err).expect("an error");
            assert_eq!(error.expected, expected);
            assert!(found.starts_with(error.found.trim_end_matches('"')), "{error}");
        }
        // A value of another length is not a hit.
        let error = Scanner::default().scan(&heads, b"$99\r\nabc").expect_err("not 100");
        assert_eq!(error.found, r#""$99\r\nabc""#);
    }
}
