//! Records: parts that were written together, and the head that describes them.

use crate::checksum::seeded_checksum;
use crate::error::{Error, Result};
use crate::id::Id;
use crate::layout::{GRAIN, record as at};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// The end of a part in the data of its record, and the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The end, as an offset from the beginning of the data. The next part begins there.
    pub end: u64,
    /// The [`checksum`](crate::checksum()) of its bytes.
    pub checksum: u64,
}

/// A record to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The name of all parts.
    pub name: [u8; 16],
    /// The number of the first part. The others have consecutive numbers.
    pub first: u64,
    /// The label, which lookups compare: what the name identifies.
    pub label: &'a [u8],
    /// When the parts expire, in milliseconds since 1970; zero for never.
    pub expiry: u64,
    /// The parts. None may be empty.
    pub parts: &'a [Part],
    /// The bytes of all parts.
    pub data: &'a [u8],
}

impl Record<'_> {
    /// Checks the lengths of label, parts and data.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Length`] for the first that is out of range.
    pub(crate) fn validate(&self, max_part_len: u64) -> Result<()> {
        let length = |what, len: u64, range: (u64, u64)| {
            let fits = len >= range.0 && len <= range.1;
            if fits { Ok(()) } else { Err(Error::Length { what, len, range }) }
        };
        length("label", self.label.len() as u64, (0, at::MAX_LABEL_LEN as u64))?;
        length("parts", self.parts.len() as u64, (1, at::MAX_PARTS as u64))?;
        let mut start = 0;
        for part in self.parts {
            length("part", part.end.saturating_sub(start), (1, max_part_len))?;
            start = part.end;
        }
        length("data", self.data.len() as u64, (start, start))
    }

    /// Returns the length of the head, with padding.
    pub(crate) fn head_len(&self) -> u64 {
        head_len(self.label.len(), self.parts.len()).next_multiple_of(GRAIN as usize) as u64
    }

    /// Returns the length of the record, with padding.
    pub(crate) fn len(&self) -> u64 {
        self.head_len() + (self.data.len() as u64).next_multiple_of(GRAIN)
    }

    /// Encodes the head for an offset of a segment with a salt.
    pub(crate) fn encode(&self, salt: u64, offset: u64) -> Vec<u8> {
        let exact_len = head_len(self.label.len(), self.parts.len());
        let mut head = vec![0; self.head_len() as usize];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(at::MAGIC_AT, &at::MAGIC.to_le_bytes());
        put(at::HEAD_LEN, &(exact_len as u32).to_le_bytes());
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
            put(place + 8, &part.checksum.to_le_bytes());
            place += at::PART_LEN;
        }
        let check = seeded_checksum(&head[at::NAME..exact_len], salt ^ offset);
        head[at::CHECK..at::NAME].copy_from_slice(&check.to_le_bytes());
        head
    }
}

/// Returns the length of a head without padding.
fn head_len(label: usize, parts: usize) -> usize {
    at::LABEL + label.next_multiple_of(8) + parts * at::PART_LEN
}

/// What this process knows of the bytes of a part.
pub(crate) mod check_state {
    pub(crate) const UNCHECKED: u8 = 0;
    pub(crate) const GOOD: u8 = 1;
    pub(crate) const DAMAGED: u8 = 2;
}

/// A valid head that was read from a segment.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) name: [u8; 16],
    pub(crate) first: u64,
    pub(crate) expiry: u64,
    pub(crate) label: Box<[u8]>,
    pub(crate) parts: Box<[Part]>,
    /// The offset of the data in the segment.
    pub(crate) data_offset: u64,
    /// The state of each part: see [`check_state`].
    pub(crate) check_states: Box<[AtomicU8]>,
    /// When a use of each part was last counted: the number of the next segment at that time.
    pub(crate) last_used: Box<[AtomicU32]>,
    /// When a use of all parts at once was last counted.
    pub(crate) last_used_all: AtomicU32,
    /// Whether all parts are in the state `GOOD`.
    pub(crate) all_good: AtomicBool,
    /// Whether the file was long enough for the record when it was last checked.
    pub(crate) fits_file: AtomicBool,
    /// The length of all parts but the last, if they have the same length and the last is not
    /// longer.
    pub(crate) uniform_len: Option<u64>,
}

impl Head {
    /// Returns whether the record has a part, under this label.
    pub(crate) fn holds(&self, id: &Id, label: &[u8]) -> bool {
        self.name == id.name && self.position(id.number).is_some() && *self.label == *label
    }

    /// Returns the hashes of the parts.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> + use<> {
        let (name, first) = (self.name, self.first);
        (0..self.parts.len() as u64).map(move |part| Id::new(name, first + part).hash())
    }

    /// Returns the index in `parts` of the part with a number.
    pub(crate) fn position(&self, number: u64) -> Option<usize> {
        let position = usize::try_from(number.checked_sub(self.first)?).ok()?;
        (position < self.parts.len()).then_some(position)
    }

    /// Returns whether this process found the part with a number damaged.
    pub(crate) fn is_known_damaged(&self, number: u64) -> bool {
        let part = self.position(number);
        part.is_some_and(|part| {
            self.check_states[part].load(Ordering::Relaxed) == check_state::DAMAGED
        })
    }

    /// Returns the range of a part in the data.
    pub(crate) fn range(&self, part: usize) -> Range<u64> {
        let start = part.checked_sub(1).map_or(0, |before| self.parts[before].end);
        start..self.parts[part].end
    }

    pub(crate) fn data_len(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// Returns the offset where the next record may begin.
    pub(crate) fn end(&self) -> u64 {
        self.data_offset + self.data_len().next_multiple_of(GRAIN)
    }

    pub(crate) fn is_expired(&self, now_ms: u64) -> bool {
        self.expiry != 0 && now_ms >= self.expiry
    }
}

/// Returns the length of all parts but the last, if they have the same length and the last is not
/// longer.
fn uniform_len(parts: &[Part]) -> Option<u64> {
    let len = parts.first()?.end;
    let (last, all_but_last) = parts.split_last()?;
    let mut ends = (1..).map(|part| part * len);
    let is_uniform = all_but_last.iter().zip(&mut ends).all(|(part, end)| part.end == end);
    let last_start = all_but_last.last().map_or(0, |part| part.end);
    (is_uniform && last.end - last_start <= len).then_some(len)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Overwrites the head of an incomplete record, so that no scan finds the record.
///
/// # Errors
///
/// Returns the error of the system.
pub(crate) fn erase_head(file: &File, offset: u64) -> io::Result<()> {
    file.write_all_at(&[0; GRAIN as usize], offset)
}

/// Returns the length field of a head. `None` if the bytes do not begin with a head.
pub(crate) fn encoded_head_len(bytes: &[u8]) -> Option<usize> {
    let len = u32_at(bytes, at::HEAD_LEN)? as usize;
    let fits = (at::LABEL + at::PART_LEN..=at::MAX_HEAD_LEN).contains(&len);
    (fits && u32_at(bytes, at::MAGIC_AT)? == at::MAGIC).then_some(len)
}

/// Decodes the head at an offset of a segment with a salt. Validates the checksum before it uses
/// any field, and all lengths. `now` is the time for the first count of uses. Returns `None` if the
/// bytes are not a valid head.
pub(crate) fn decode(bytes: &[u8], salt: u64, offset: u64, now: u64) -> Option<Head> {
    let exact_len = encoded_head_len(bytes)?;
    let bytes = bytes.get(..exact_len)?;
    let check = seeded_checksum(&bytes[at::NAME..], salt ^ offset);
    if check != u64_at(bytes, at::CHECK)? {
        return None;
    }
    let label_len = u32_at(bytes, at::LABEL_LEN)? as usize;
    let count = u32_at(bytes, at::PARTS)? as usize;
    let fits = label_len <= at::MAX_LABEL_LEN && (1..=at::MAX_PARTS).contains(&count);
    if !fits || head_len(label_len, count) != exact_len {
        return None;
    }
    let table = &bytes[at::LABEL + label_len.next_multiple_of(8)..];
    let mut before = 0;
    let mut parts = Vec::with_capacity(count);
    for row in table.chunks_exact(at::PART_LEN) {
        let part = Part { end: u64_at(row, 0)?, checksum: u64_at(row, 8)? };
        if part.end <= before {
            return None;
        }
        before = part.end;
        parts.push(part);
    }
    let is_consistent =
        u64_at(bytes, at::DATA_LEN)? == before && before <= crate::layout::segment::MAX_LEN;
    let first = u64_at(bytes, at::FIRST)?;
    first.checked_add(count as u64).filter(|_| is_consistent)?;
    Some(Head {
        name: bytes[at::NAME..at::FIRST].try_into().ok()?,
        first,
        expiry: u64_at(bytes, at::EXPIRY)?,
        label: bytes[at::LABEL..at::LABEL + label_len].into(),
        check_states: parts.iter().map(|_| AtomicU8::new(check_state::UNCHECKED)).collect(),
        last_used: parts.iter().map(|_| AtomicU32::new(now as u32)).collect(),
        last_used_all: AtomicU32::new(now as u32),
        all_good: AtomicBool::new(false),
        fits_file: AtomicBool::new(false),
        uniform_len: uniform_len(&parts),
        parts: parts.into(),
        data_offset: offset + (exact_len as u64).next_multiple_of(GRAIN),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(offset: u64) -> Vec<u8> {
        let parts = [Part { end: 3, checksum: 1 }, Part { end: 9, checksum: 2 }];
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
    fn a_head_is_decoded_as_it_was_encoded() {
        let head = decode(&encoded(128), 99, 128, 0).expect("a head");
        assert_eq!((head.first, head.expiry, &*head.label), (40, 5, &b"a label"[..]));
        assert_eq!((head.range(0), head.range(1), head.data_offset), (0..3, 3..9, 128 + 128));
        assert!(head.holds(&Id::new([7; 16], 41), b"a label"));
        assert!(!head.holds(&Id::new([7; 16], 42), b"a label"));
        assert!(!head.holds(&Id::new([7; 16], 41), b"a libel"));
    }

    #[test]
    fn a_head_is_valid_only_at_its_offset_in_its_segment() {
        assert!(decode(&encoded(128), 99, 192, 0).is_none(), "another offset");
        assert!(decode(&encoded(128), 98, 128, 0).is_none(), "another segment");
    }

    #[test]
    fn every_flipped_bit_of_a_head_is_detected() {
        let good = encoded(128);
        let exact_len = encoded_head_len(&good).expect("a head");
        for bit in 0..exact_len * 8 {
            let mut flipped = good.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped, 99, 128, 0).is_none(), "bit {bit}");
        }
        for len in 0..exact_len {
            assert!(decode(&good[..len], 99, 128, 0).is_none(), "{len} bytes");
        }
    }
}
