//! A record: head, key, and the value or where to find it.

use crate::layout::{limits, record as at};
use crate::value::ValueType;

/// A record as it lies in the file, its parts known to lie within the data section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value_type: ValueType,
    pub(crate) compressed: bool,
    pub(crate) shared: bool,
    /// The stored bytes of the value: a zstd frame if compressed.
    pub(crate) stored: &'a [u8],
    /// Where `stored` begins in the file.
    pub(crate) stored_at: u64,
    /// Where the record ends in the file.
    pub(crate) end: u64,
}

/// What about a record contradicts the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) offset: u64,
    pub(crate) expected: &'static str,
    pub(crate) found: u64,
}

/// The data section, and where in the file it begins.
#[derive(Clone, Copy)]
pub(crate) struct DataSection<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) start: u64,
}

/// A record without flags: short lengths, its own value, not compressed. Nearly all are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRecord<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value_type: ValueType,
    pub(crate) value: &'a [u8],
}

#[inline]
fn aligned(offset: u64, align: usize) -> u64 {
    let mask = align as u64 - 1;
    (offset + mask) & !mask
}

impl<'a> DataSection<'a> {
    /// The bytes from this place of the file to the end of the section.
    #[inline]
    fn from(self, at: u64) -> Option<&'a [u8]> {
        self.bytes.get(usize::try_from(at.wrapping_sub(self.start)).ok()?..)
    }

    /// The record that begins at this place of the file, if it is a plain one and not at the very
    /// end. Otherwise [`record`](Self::record) reads it, or tells what is wrong with it.
    ///
    /// One check covers all of the record, since the section ends with as many bytes as a plain
    /// record can have.
    #[inline(always)]
    pub(crate) fn plain_record(self, at: u64) -> Option<PlainRecord<'a>> {
        let window: &[u8; at::PLAIN_MOST] = self.from(at)?.first_chunk()?;
        let value_type = ValueType::from_code(window[0])?;
        let key_end = at::SHORT_HEAD + usize::from(window[1]);
        let pad = (at as usize + key_end).wrapping_neg() & (value_type.align() - 1);
        let value = key_end + pad..key_end + pad + usize::from(window[2]);
        Some(PlainRecord { key: &window[at::SHORT_HEAD..key_end], value_type, value: &window[value] })
    }

    /// The record that begins at this place of the file.
    pub(crate) fn record(self, at: u64) -> Result<Record<'a>, Flaw> {
        let Some(rest) = self.from(at) else {
            return Err(flaw(at, "a record within the data section", at));
        };
        let [tag, short_key, short_value, ..] = *rest else {
            return Err(flaw(at, "a record head before the end of the data", rest.len() as u64));
        };
        if tag & at::LONG == 0 {
            let lens = (usize::from(short_key), u64::from(short_value));
            return self.parts(at, rest, (tag, at::SHORT_HEAD), lens);
        }
        let Some(&[_, k0, k1, v0, v1, v2, v3, v4]) = rest.first_chunk() else {
            let found = rest.len() as u64;
            return Err(flaw(at, "a long record head before the end of the data", found));
        };
        let value_len = u64::from_le_bytes([v0, v1, v2, v3, v4, 0, 0, 0]);
        if value_len > limits::VALUE_LEN {
            return Err(flaw(at + 3, "a value of at most 4 GiB", value_len));
        }
        let lens = (usize::from(u16::from_le_bytes([k0, k1])), value_len);
        self.parts(at, rest, (tag, at::LONG_HEAD), lens)
    }

    fn parts(
        self,
        at: u64,
        rest: &'a [u8],
        (tag, head): (u8, usize),
        (key_len, value_len): (usize, u64),
    ) -> Result<Record<'a>, Flaw> {
        let Some(value_type) = ValueType::from_code(tag & at::TYPE_MASK) else {
            return Err(flaw(at, "a known value type", u64::from(tag & at::TYPE_MASK)));
        };
        if tag & at::RESERVED != 0 {
            return Err(flaw(at, "the reserved bit of the tag to be zero", u64::from(tag)));
        }
        let key_end = head + key_len;
        let Some(key) = rest.get(head..key_end) else {
            return Err(flaw(at, "a key before the end of the data", key_len as u64));
        };
        let compressed = tag & at::ZSTD != 0;
        let align = if compressed { 1 } else { value_type.align() };
        let after_key = at + key_end as u64;
        let shared = tag & at::SHARED != 0;
        let stored_at = if shared {
            reference(rest, key_end).ok_or(flaw(after_key, "a reference", rest.len() as u64))?
        } else {
            aligned(after_key, align)
        };
        let stored = self.value(stored_at, value_len).ok_or(flaw(
            if shared { after_key } else { at },
            "a value within the data section",
            value_len,
        ))?;
        let end = if shared { after_key + at::REFERENCE_LEN as u64 } else { stored_at + value_len };
        Ok(Record { key, value_type, compressed, shared, stored, stored_at, end })
    }

    fn value(self, at: u64, len: u64) -> Option<&'a [u8]> {
        self.from(at)?.get(..usize::try_from(len).ok()?)
    }
}

#[inline]
fn reference(rest: &[u8], key_end: usize) -> Option<u64> {
    let [b0, b1, b2, b3, b4, b5] = *rest.get(key_end..)?.first_chunk::<{ at::REFERENCE_LEN }>()?;
    Some(u64::from_le_bytes([b0, b1, b2, b3, b4, b5, 0, 0]))
}

#[cold]
fn flaw(offset: u64, expected: &'static str, found: u64) -> Flaw {
    Flaw { offset, expected, found }
}

/// Whether two keys are equal. Most keys are short, and a call of the library's comparison costs
/// more than two loads from each end.
#[inline]
pub(crate) fn same_key(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>(), a.last_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(a0), Some(b0), Some(a1), Some(b1)) if a.len() <= 16 => {
            let differ = |a: &[u8; 8], b: &[u8; 8]| u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
            differ(a0, b0) | differ(a1, b1) == 0
        }
        _ => a == b,
    }
}

/// How a record is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordPlan {
    pub(crate) value_type: ValueType,
    pub(crate) compressed: bool,
    pub(crate) shared: bool,
    pub(crate) key_len: usize,
    pub(crate) stored_len: u64,
}

impl RecordPlan {
    fn is_long(self) -> bool {
        self.key_len > 255 || self.stored_len > 255
    }

    fn head_len(self) -> usize {
        if self.is_long() { at::LONG_HEAD } else { at::SHORT_HEAD }
    }

    /// Where the stored value, or the reference to it, begins when the record begins at `at`.
    pub(crate) fn value_at(self, at: u64) -> u64 {
        let after_key = at + (self.head_len() + self.key_len) as u64;
        let align = if self.compressed || self.shared { 1 } else { self.value_type.align() };
        aligned(after_key, align)
    }

    /// Where the record ends when it begins at `at`.
    pub(crate) fn end(self, at: u64) -> u64 {
        let len = if self.shared { at::REFERENCE_LEN as u64 } else { self.stored_len };
        self.value_at(at) + len
    }

    /// Appends the head of the record.
    pub(crate) fn write_head(self, out: &mut Vec<u8>) {
        let mut tag = self.value_type.code();
        if self.compressed {
            tag |= at::ZSTD;
        }
        if self.shared {
            tag |= at::SHARED;
        }
        if self.is_long() {
            let key = (self.key_len as u16).to_le_bytes();
            let [v0, v1, v2, v3, v4, ..] = self.stored_len.to_le_bytes();
            out.extend_from_slice(&[tag | at::LONG, key[0], key[1], v0, v1, v2, v3, v4]);
        } else {
            out.extend_from_slice(&[tag, self.key_len as u8, self.stored_len as u8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_at_every_length() {
        for len in 0..40 {
            let key: Vec<u8> = (0..len).collect();
            assert!(same_key(&key, &key.clone()), "length {len}");
            assert!(!same_key(&key, &[&key[..], b"x"].concat()));
            for i in 0..usize::from(len) {
                let mut other = key.clone();
                other[i] ^= 0x40;
                assert!(!same_key(&key, &other), "length {len}, byte {i}");
            }
        }
    }
}
