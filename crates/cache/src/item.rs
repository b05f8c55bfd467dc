//! An item as it lies in a segment: head, key, value.
//!
//! Most items are small, and their head is two bytes:
//!
//! | bits | small | large |
//! |---|---|---|
//! | 0 | 0 | 1 |
//! | 1 | the expiry follows, 3 bytes | the expiry follows, 6 bytes |
//! | 2 | length of the key, up to 63 | flags of the client follow, 4 bytes |
//! | 3 | | a number for compare-and-set follows, 8 bytes |
//! | 4 and 5 | | marks of the protocol |
//! | 6 and 7 | | 0 |
//! | 8 to 15 | length of the value, up to 255 | 0 |
//!
//! In a large head the lengths follow before all else: 3 bytes for the key's, 4 for the value's.
//! All numbers are little-endian. An expiry of 3 bytes counts milliseconds from the segment's own
//! start of time, one of 6 bytes from the beginning of 1970.

use std::ops::Range;

const LARGE: u16 = 1;
const EXPIRES: u16 = 1 << 1;
const KEY_SHIFT: u32 = 2;
const VALUE_SHIFT: u32 = 8;
const FLAGS: u16 = 1 << 2;
const CAS: u16 = 1 << 3;
const MARKS_SHIFT: u32 = 4;

const HEAD_LEN: usize = 2;
const KEY_LEN_LEN: usize = 3;
const VALUE_LEN_LEN: usize = 4;
const LENGTHS_LEN: usize = KEY_LEN_LEN + VALUE_LEN_LEN;
const SHORT_EXPIRY_LEN: usize = 3;
/// Shorter heads are small ones.
const SMALL_UNTIL: usize = HEAD_LEN + LENGTHS_LEN;
const _: () = assert!(HEAD_LEN + SHORT_EXPIRY_LEN < SMALL_UNTIL);
const EXPIRY_LEN: usize = 6;
const FLAGS_LEN: usize = 4;
const CAS_LEN: usize = 8;

/// Milliseconds that an expiry of 3 bytes reaches beyond the segment's start of time.
const SHORT_EXPIRY_MOST: u64 = (1 << (8 * SHORT_EXPIRY_LEN)) - 1;

/// All that is known of an item besides key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Milliseconds since the beginning of 1970.
    pub(crate) expires_ms: Option<u64>,
    pub(crate) flags: u32,
    pub(crate) cas: Option<u64>,
    pub(crate) marks: u8,
}

/// A head, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) facts: Facts,
    /// Where the key begins.
    begin: usize,
    key_len: usize,
    value_len: usize,
}

fn number<const LEN: usize>(bytes: &[u8], at: &mut usize) -> u64 {
    let mut word = [0; 8];
    word[..LEN].copy_from_slice(&bytes[*at..*at + LEN]);
    *at += LEN;
    u64::from_le_bytes(word)
}

impl Head {
    /// Bytes of the longest head there is.
    pub(crate) const MOST: usize = HEAD_LEN + LENGTHS_LEN + EXPIRY_LEN + FLAGS_LEN + CAS_LEN;

    /// How far short expiries reach beyond the start of a segment's time.
    pub(crate) const EXPIRY_REACH_MS: u64 = SHORT_EXPIRY_MOST;

    /// The head of an item to be written into a segment whose time starts at `epoch_ms`.
    #[inline]
    pub(crate) fn new(key_len: usize, value_len: usize, facts: Facts, epoch_ms: u64) -> Self {
        let mut head = Self { facts, begin: 0, key_len, value_len };
        head.begin = if head.is_small(epoch_ms) {
            HEAD_LEN + if facts.expires_ms.is_some() { SHORT_EXPIRY_LEN } else { 0 }
        } else {
            HEAD_LEN
                + LENGTHS_LEN
                + if facts.expires_ms.is_some() { EXPIRY_LEN } else { 0 }
                + if facts.flags != 0 { FLAGS_LEN } else { 0 }
                + if facts.cas.is_some() { CAS_LEN } else { 0 }
        };
        head
    }

    fn is_small(&self, epoch_ms: u64) -> bool {
        let Facts { expires_ms, flags, cas, marks } = self.facts;
        let short = |at: u64| at >= epoch_ms && at - epoch_ms <= SHORT_EXPIRY_MOST;
        self.key_len < 64
            && self.value_len < 256
            && (flags, cas, marks) == (0, None, 0)
            && expires_ms.is_none_or(short)
    }

    /// Bytes of the whole item, if it has this key. `bytes` answers the item's first bytes.
    #[inline]
    pub(crate) fn len_if<'b>(bytes: impl Fn(usize) -> &'b [u8], key: &[u8]) -> Option<usize> {
        let word = bytes(HEAD_LEN);
        let word = u16::from_le_bytes([word[0], word[1]]);
        if word & LARGE != 0 {
            return Self::len_of_large_if(word, bytes, key);
        }
        let begin = HEAD_LEN + if word & EXPIRES != 0 { SHORT_EXPIRY_LEN } else { 0 };
        let len = usize::from(word >> KEY_SHIFT & 63);
        let same = len == key.len() && same(&bytes(begin + len)[begin..], key);
        same.then_some(begin + len + usize::from(word >> VALUE_SHIFT))
    }

    fn len_of_large_if<'b>(
        word: u16,
        bytes: impl Fn(usize) -> &'b [u8],
        key: &[u8],
    ) -> Option<usize> {
        let head = Self::read_large(word, &bytes);
        (&bytes(head.key().end)[head.begin..] == key).then_some(head.len())
    }

    /// Reads the head of an item in a segment whose time starts at `epoch_ms`. `bytes` answers the
    /// item's first bytes, as many as it is asked for: those behind an item may be somebody else's.
    #[inline]
    pub(crate) fn read<'b>(
        bytes: impl Fn(usize) -> &'b [u8],
        epoch_ms: impl FnOnce() -> u64,
    ) -> Self {
        let word = bytes(HEAD_LEN);
        let word = u16::from_le_bytes([word[0], word[1]]);
        if word & LARGE != 0 {
            return Self::read_large(word, bytes);
        }
        let mut facts = Facts::default();
        let mut at = HEAD_LEN;
        if word & EXPIRES != 0 {
            let bytes = bytes(HEAD_LEN + SHORT_EXPIRY_LEN);
            facts.expires_ms = Some(epoch_ms() + number::<SHORT_EXPIRY_LEN>(bytes, &mut at));
        }
        Self {
            facts,
            begin: at,
            key_len: usize::from(word >> KEY_SHIFT & 63),
            value_len: usize::from(word >> VALUE_SHIFT),
        }
    }

    fn read_large<'b>(word: u16, bytes: impl Fn(usize) -> &'b [u8]) -> Self {
        let len = |flag: u16, len: usize| if word & flag != 0 { len } else { 0 };
        let expires_len = len(EXPIRES, EXPIRY_LEN);
        let options_len = expires_len + len(FLAGS, FLAGS_LEN) + len(CAS, CAS_LEN);
        let bytes = bytes(HEAD_LEN + LENGTHS_LEN + options_len);
        let mut at = HEAD_LEN;
        let key_len = number::<KEY_LEN_LEN>(bytes, &mut at) as usize;
        let value_len = number::<VALUE_LEN_LEN>(bytes, &mut at) as usize;
        let expires_ms = (word & EXPIRES != 0).then(|| number::<EXPIRY_LEN>(bytes, &mut at));
        let flags = if word & FLAGS != 0 { number::<FLAGS_LEN>(bytes, &mut at) as u32 } else { 0 };
        let cas = (word & CAS != 0).then(|| number::<CAS_LEN>(bytes, &mut at));
        let marks = (word >> MARKS_SHIFT) as u8 & 3;
        Self { facts: Facts { expires_ms, flags, cas, marks }, begin: at, key_len, value_len }
    }

    /// Bytes of the whole item.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.begin + self.key_len + self.value_len
    }

    /// Where the key lies in the item.
    #[inline]
    pub(crate) fn key(&self) -> Range<usize> {
        self.begin..self.begin + self.key_len
    }

    /// Where the value lies in the item.
    #[inline]
    pub(crate) fn value(&self) -> Range<usize> {
        let start = self.begin + self.key_len;
        start..start + self.value_len
    }

    /// Writes head and key to the start of an item's bytes, and answers where the value goes.
    #[inline]
    pub(crate) fn write<'b>(&self, out: &'b mut [u8], key: &[u8], epoch_ms: u64) -> &'b mut [u8] {
        let (head, rest) = out.split_at_mut(self.begin);
        if self.begin < SMALL_UNTIL {
            let expires = u16::from(self.facts.expires_ms.is_some()) << 1;
            let word = expires
                | (self.key_len as u16) << KEY_SHIFT
                | (self.value_len as u16) << VALUE_SHIFT;
            head[..HEAD_LEN].copy_from_slice(&word.to_le_bytes());
            if let Some(at) = self.facts.expires_ms {
                let delta = (at - epoch_ms).to_le_bytes();
                head[HEAD_LEN..].copy_from_slice(&delta[..SHORT_EXPIRY_LEN]);
            }
        } else {
            self.write_large(head);
        }
        let (to, value) = rest.split_at_mut(self.key_len);
        to.copy_from_slice(key);
        value
    }

    fn write_large(&self, head: &mut [u8]) {
        let Facts { expires_ms, flags, cas, marks } = self.facts;
        let mut word = LARGE | u16::from(marks) << MARKS_SHIFT;
        let mut at = HEAD_LEN;
        let mut put = |bytes: &[u8]| {
            head[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&(self.key_len as u32).to_le_bytes()[..KEY_LEN_LEN]);
        put(&(self.value_len as u32).to_le_bytes());
        if let Some(expires) = expires_ms {
            word |= EXPIRES;
            put(&expires.to_le_bytes()[..EXPIRY_LEN]);
        }
        if flags != 0 {
            word |= FLAGS;
            put(&flags.to_le_bytes());
        }
        if let Some(cas) = cas {
            word |= CAS;
            put(&cas.to_le_bytes());
        }
        head[..HEAD_LEN].copy_from_slice(&word.to_le_bytes());
    }
}

/// Whether two strings of one length are the same. Most keys are of 8 to 16 bytes, and two words
/// take less than a call.
#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    let ends = |key: &[u8]| Some((*key.first_chunk::<8>()?, *key.last_chunk::<8>()?));
    if (8..=16).contains(&one.len()) { ends(one) == ends(other) } else { one == other }
}

/// A number that no session has.
pub(crate) const NO_SESSION: u64 = u64::MAX;

/// An item that was found. It stays as it is until the turn ends.
#[derive(Clone, Copy, Debug)]
pub struct Item<'t> {
    pub(crate) bytes: &'t [u8],
    pub(crate) head: Head,
    pub(crate) frequency: u32,
    /// The number of the session in whose turn it was read; none's if it is a lease's.
    pub(crate) session: u64,
}

impl<'t> Item<'t> {
    /// The key.
    #[inline]
    pub fn key(&self) -> &'t [u8] {
        &self.bytes[self.head.key()]
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &'t [u8] {
        &self.bytes[self.head.value()]
    }

    /// When it expires, in milliseconds since the beginning of 1970.
    #[inline]
    pub fn expires_ms(&self) -> Option<u64> {
        self.head.facts.expires_ms
    }

    /// The client's flags; memcached's clients keep the type of the value there.
    #[inline]
    pub fn flags(&self) -> u32 {
        self.head.facts.flags
    }

    /// The number for compare-and-set, if the item has got one:
    /// see [`Turn::with_cas`](crate::Turn::with_cas).
    #[inline]
    pub fn cas(&self) -> Option<u64> {
        self.head.facts.cas
    }

    /// The protocol's marks.
    #[inline]
    pub fn marks(&self) -> u8 {
        self.head.facts.marks
    }

    /// How often it was asked for lately: from 0 to 3, from there on no more is counted.
    #[inline]
    pub fn frequency(&self) -> u32 {
        self.frequency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(key: &[u8], value: &[u8], facts: Facts, epoch_ms: u64) -> usize {
        let head = Head::new(key.len(), value.len(), facts, epoch_ms);
        let mut bytes = vec![0xaa; head.len() + 1];
        let out = &mut bytes[..head.len()];
        head.write(out, key, epoch_ms).copy_from_slice(value);
        let read = Head::read(|len| &bytes[..len], || epoch_ms);
        assert_eq!(read, head);
        assert_eq!((&bytes[read.key()], &bytes[read.value()]), (key, value));
        assert_eq!(bytes[head.len()], 0xaa);
        head.len() - key.len() - value.len()
    }

    #[test]
    fn items_come_back_and_small_ones_take_little() {
        let expires = |at| Facts { expires_ms: Some(at), ..Facts::default() };
        let now = 1_700_000_000_000;
        assert_eq!(round_trip(b"", b"", Facts::default(), now), 2);
        assert_eq!(round_trip(&[b'k'; 63], &[b'v'; 255], Facts::default(), now), 2);
        assert_eq!(round_trip(b"key", b"value", expires(now + SHORT_EXPIRY_MOST), now), 5);
        assert_eq!(round_trip(&[b'k'; 64], b"", Facts::default(), now), 9);
        assert_eq!(round_trip(b"", &[b'v'; 256], Facts::default(), now), 9);
        assert_eq!(round_trip(b"key", b"value", expires(now + SHORT_EXPIRY_MOST + 1), now), 15);
        assert_eq!(round_trip(b"key", b"value", expires(now - 1), now), 15);
        let all = Facts { flags: 7, cas: Some(u64::MAX), marks: 3, ..expires(now) };
        assert_eq!(round_trip(&vec![0xff; 65_536], &vec![1; 100_000], all, now), Head::MOST);
    }
}
