//! A record: parts that were written together, behind a head that says what they are.

use crate::error::{Error, Result};
use crate::id::Id;
use crate::layout::{GRAIN, record as at};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Where a part ends in the data of its record, and the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The end, counted from the beginning of the data; where the next part begins.
    pub end: u64,
    /// What [`checksum`](crate::checksum) says of its bytes.
    pub sum: u64,
}

/// Parts to be written together.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The name of all parts.
    pub name: [u8; 16],
    /// The number of the first; those of the others follow.
    pub first: u64,
    /// What the name stands for, in full. It is compared when a part is looked up.
    pub label: &'a [u8],
    /// When the parts are no longer there, in milliseconds since 1970; zero for never.
    pub expiry: u64,
    /// The parts. None is empty.
    pub parts: &'a [Part],
    /// Their bytes, one after the other.
    pub data: &'a [u8],
}

impl Record<'_> {
    pub(crate) fn validate(&self, part_most: u64) -> Result<()> {
        let length = |what, len: u64, range: (u64, u64)| {
            let fits = len >= range.0 && len <= range.1;
            if fits { Ok(()) } else { Err(Error::Length { what, len, range }) }
        };
        length("label", self.label.len() as u64, (0, at::LABEL_MOST as u64))?;
        length("parts", self.parts.len() as u64, (1, at::PARTS_MOST as u64))?;
        let mut start = 0;
        for part in self.parts {
            length("part", part.end.saturating_sub(start), (1, part_most))?;
            start = part.end;
        }
        length("data", self.data.len() as u64, (start, start))
    }

    /// Bytes of the head, with what fills it up.
    pub(crate) fn head_len(&self) -> u64 {
        head_len(self.label.len(), self.parts.len()).next_multiple_of(GRAIN as usize) as u64
    }

    /// Bytes of the whole record, with what fills it up.
    pub(crate) fn len(&self) -> u64 {
        self.head_len() + (self.data.len() as u64).next_multiple_of(GRAIN)
    }

    /// The head, as it lies at an offset of a segment with a salt.
    pub(crate) fn encode(&self, salt: u64, offset: u64) -> Vec<u8> {
        let exact = head_len(self.label.len(), self.parts.len());
        let mut head = vec![0; self.head_len() as usize];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(at::MAGIC_AT, &at::MAGIC.to_le_bytes());
        put(at::HEAD_LEN, &(exact as u32).to_le_bytes());
        put(at::NAME, &self.name);
        put(at::FIRST, &self.first.to_le_bytes());
        put(at::EXPIRY, &self.expiry.to_le_bytes());
        put(at::DATA_LEN, &(self.data.len() as u64).to_le_bytes());
        put(at::PARTS, &(self.parts.len() as u32).to_le_bytes());
        put(at::LABEL_LEN, &(self.label.len() as u32).to_le_bytes());
        put(at::LABEL, self.label);
        let mut place = at::LABEL + self.label.len().next_multiple_of(8);
        for part in self.parts {
            put(place, &part.end.to_le_bytes());
            put(place + 8, &part.sum.to_le_bytes());
            place += at::PART_LEN;
        }
        let check = xxh3_64_with_seed(&head[at::NAME..exact], salt ^ offset);
        head[at::CHECK..at::NAME].copy_from_slice(&check.to_le_bytes());
        head
    }
}

fn head_len(label: usize, parts: usize) -> usize {
    at::LABEL + label.next_multiple_of(8) + parts * at::PART_LEN
}

/// What this process knows of a part's bytes.
pub(crate) mod known {
    pub(crate) const NOTHING: u8 = 0;
    pub(crate) const GOOD: u8 = 1;
    pub(crate) const BAD: u8 = 2;
}

/// The head of a record, as it was found and checked.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) name: [u8; 16],
    pub(crate) first: u64,
    pub(crate) expiry: u64,
    pub(crate) label: Box<[u8]>,
    pub(crate) parts: Box<[Part]>,
    /// Where the data begins in the segment.
    pub(crate) data_at: u64,
    /// What is known of each part.
    pub(crate) known: Box<[AtomicU8]>,
    /// When a use of each part was last counted.
    pub(crate) used: Box<[AtomicU32]>,
    /// When a use of all of them was last counted at once.
    pub(crate) all_used: AtomicU32,
    /// Whether all parts are known to be good.
    pub(crate) all_good: AtomicBool,
    /// Whether the file was seen to be long enough for the record.
    pub(crate) long_enough: AtomicBool,
    /// The length of all parts but the last, which is no longer, if they have one.
    pub(crate) uniform: Option<u64>,
}

impl Head {
    /// Whether it holds a part, under a label.
    pub(crate) fn holds(&self, id: &Id, label: &[u8]) -> bool {
        self.name == id.name && self.position(id.number).is_some() && *self.label == *label
    }

    /// Returns the hashes of the parts.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> + use<> {
        let (name, first) = (self.name, self.first);
        (0..self.parts.len() as u64).map(move |part| Id::new(name, first + part).hash())
    }

    /// Which of the parts has a number.
    pub(crate) fn position(&self, number: u64) -> Option<usize> {
        let position = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (position < self.parts.len()).then_some(position)
    }

    /// Whether this process found the part with a number damaged.
    pub(crate) fn known_bad(&self, number: u64) -> bool {
        let part = self.position(number);
        part.is_some_and(|part| self.known[part].load(Ordering::Relaxed) == known::BAD)
    }

    /// Where the bytes of a part lie in the data.
    pub(crate) fn range(&self, part: usize) -> Range<u64> {
        let start = part.checked_sub(1).map_or(0, |before| self.parts[before].end);
        start..self.parts[part].end
    }

    pub(crate) fn data_len(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// Where the record after this one may begin.
    pub(crate) fn end(&self) -> u64 {
        self.data_at + self.data_len().next_multiple_of(GRAIN)
    }

    pub(crate) fn expired(&self, now_ms: u64) -> bool {
        self.expiry != 0 && now_ms >= self.expiry
    }
}

/// The length of all parts but the last, if it is the same and the last is no longer.
fn uniform(parts: &[Part]) -> Option<u64> {
    let len = parts.first()?.end;
    let (last, others) = parts.split_last()?;
    let mut ends = (1..).map(|part| part * len);
    let same = others.iter().zip(&mut ends).all(|(part, end)| part.end == end);
    let before = others.last().map_or(0, |part| part.end);
    (same && last.end - before <= len).then_some(len)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Overwrites the head of an incomplete record, so that no scan finds the record.
pub(crate) fn erase_head(file: &File, offset: u64) -> io::Result<()> {
    file.write_all_at(&[0; GRAIN as usize], offset)
}

/// How long a head says it is, if what it begins with is a head.
pub(crate) fn length_of_head(bytes: &[u8]) -> Option<usize> {
    let len = u32_at(bytes, at::HEAD_LEN)? as usize;
    let fits = (at::LABEL + at::PART_LEN..=at::HEAD_MOST).contains(&len);
    (fits && u32_at(bytes, at::MAGIC_AT)? == at::MAGIC).then_some(len)
}

/// The head at an offset of a segment with a salt, if these bytes are one: nothing in them is
/// believed before the checksum is right, and no length after it without a look.
pub(crate) fn decode(bytes: &[u8], salt: u64, offset: u64, turn: u64) -> Option<Head> {
    let exact = length_of_head(bytes)?;
    let bytes = bytes.get(..exact)?;
    let check = xxh3_64_with_seed(&bytes[at::NAME..], salt ^ offset);
    if check != u64_at(bytes, at::CHECK)? {
        return None;
    }
    let label_len = u32_at(bytes, at::LABEL_LEN)? as usize;
    let count = u32_at(bytes, at::PARTS)? as usize;
    let fits = label_len <= at::LABEL_MOST && (1..=at::PARTS_MOST).contains(&count);
    if !fits || head_len(label_len, count) != exact {
        return None;
    }
    let table = &bytes[at::LABEL + label_len.next_multiple_of(8)..];
    let mut before = 0;
    let mut parts = Vec::with_capacity(count);
    for row in table.chunks_exact(at::PART_LEN) {
        let part = Part { end: u64_at(row, 0)?, sum: u64_at(row, 8)? };
        if part.end <= before {
            return None;
        }
        before = part.end;
        parts.push(part);
    }
    let whole =
        u64_at(bytes, at::DATA_LEN)? == before && before <= crate::layout::segment::LEN_MOST;
    let first = u64_at(bytes, at::FIRST)?;
    first.checked_add(count as u64).filter(|_| whole)?;
    Some(Head {
        name: bytes[at::NAME..at::FIRST].try_into().ok()?,
        first,
        expiry: u64_at(bytes, at::EXPIRY)?,
        label: bytes[at::LABEL..at::LABEL + label_len].into(),
        known: parts.iter().map(|_| AtomicU8::new(known::NOTHING)).collect(),
        used: parts.iter().map(|_| AtomicU32::new(turn as u32)).collect(),
        all_used: AtomicU32::new(turn as u32),
        all_good: AtomicBool::new(false),
        long_enough: AtomicBool::new(false),
        uniform: uniform(&parts),
        parts: parts.into(),
        data_at: offset + (exact as u64).next_multiple_of(GRAIN),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(offset: u64) -> Vec<u8> {
        let parts = [Part { end: 3, sum: 1 }, Part { end: 9, sum: 2 }];
        let record = Record {
            name: [7; 16],
            first: 40,
            label: b"a label",
            expiry: 5,
            parts: &parts,
            data: b"123456789",
        };
        record.encode(99, offset)
    }

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = decode(&encoded(128), 99, 128, 0).expect("a head");
        assert_eq!((head.first, head.expiry, &*head.label), (40, 5, &b"a label"[..]));
        assert_eq!((head.range(0), head.range(1), head.data_at), (0..3, 3..9, 128 + 128));
        assert!(head.holds(&Id::new([7; 16], 41), b"a label"));
        assert!(!head.holds(&Id::new([7; 16], 42), b"a label"));
        assert!(!head.holds(&Id::new([7; 16], 41), b"a libel"));
    }

    #[test]
    fn a_head_is_believed_only_where_it_was_written() {
        assert!(decode(&encoded(128), 99, 192, 0).is_none(), "another offset");
        assert!(decode(&encoded(128), 98, 128, 0).is_none(), "another segment");
    }

    #[test]
    fn no_bit_of_a_head_can_change_unseen() {
        let good = encoded(128);
        let exact = length_of_head(&good).expect("a head");
        for bit in 0..exact * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad, 99, 128, 0).is_none(), "bit {bit}");
        }
        for len in 0..exact {
            assert!(decode(&good[..len], 99, 128, 0).is_none(), "{len} bytes");
        }
    }
}
