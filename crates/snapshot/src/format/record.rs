//! A record: head, key, and the value or a reference to it.

use super::hash::is_common_len;
use super::layout::{limits, record as at};
use crate::values::ValueType;
use std::ops::Range;

/// A decoded record. Its parts are within the data section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value_type: ValueType,
    pub(crate) compressed: bool,
    pub(crate) shared: bool,
    /// The stored bytes of the value: a zstd frame if `compressed`.
    pub(crate) stored: &'a [u8],
    /// The offset in the data section at which the record ends.
    pub(crate) end: u64,
}

/// Why bytes are not a record. The offset is in the data section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidRecord {
    pub(crate) offset: u64,
    pub(crate) expected: &'static str,
    pub(crate) found: u64,
}

/// The data section. Offsets count from its start.
#[derive(Clone, Copy)]
pub(crate) struct DataSection<'a>(pub(crate) &'a [u8]);

/// Returns the type code and the value of a plain record with this key, or `None` if the record is
/// not plain or has another key.
///
/// The tag of a plain record is its type code, without flags: the record has short lengths, and its
/// value is neither shared nor compressed. Nearly all records are plain. `window` begins with the
/// record. If `code` is given, the record must have this type code.
///
/// All instructions here wait until the record arrives from memory, and take space in the reorder
/// buffer of the processor meanwhile. To keep them few, tag and key length are checked in one
/// comparison, and branches depend on the length of the caller's key instead of the record's.
#[inline(always)]
pub(crate) fn plain_value<'a>(
    window: &'a [u8; at::MAX_SHORT_LEN],
    key: &[u8],
    code: Option<u8>,
) -> Option<(u8, &'a [u8])> {
    let head = usize::from(u16::from_le_bytes([window[0], window[1]]));
    let type_bits = if code.is_some() { 0 } else { usize::from(at::TYPE_MASK) };
    if head & !type_bits != key.len() << 8 | usize::from(code.unwrap_or(0)) {
        return None;
    }
    // Equal to `key.len()`: the comparison above shows that it fits `u8`.
    let key_end = at::SHORT_HEAD + usize::from(key.len() as u8);
    if !same_key(key, &window[at::SHORT_HEAD..key_end]) {
        return None;
    }
    let value = &window[key_end..key_end + usize::from(window[2])];
    Some((head as u8, value))
}

/// Returns the type code of the value, and its range in the data section, of a record with long
/// lengths and this key that begins at `at`. The value must be neither shared nor compressed.
/// Otherwise as [`plain_value`]. The range may reach beyond the data section.
pub(crate) fn long_value(
    window: &[u8; at::MAX_SHORT_LEN],
    at: u64,
    key: &[u8],
    code: Option<u8>,
) -> Option<(u8, Range<usize>)> {
    let [tag, k0, k1, v0, v1, v2, v3, v4] = *window.first_chunk()?;
    let value_type = ValueType::from_code(tag & at::TYPE_MASK)?;
    let same_type = code.is_none_or(|code| code == value_type.code());
    if tag & !at::TYPE_MASK != at::LONG || !same_type {
        return None;
    }
    let key_len = usize::from(u16::from_le_bytes([k0, k1]));
    if key.len() != key_len || !same_key(key, window.get(at::LONG_HEAD..at::LONG_HEAD + key_len)?) {
        return None;
    }
    let begin = aligned(at + (at::LONG_HEAD + key_len) as u64, value_type.align());
    let len = u64::from_le_bytes([v0, v1, v2, v3, v4, 0, 0, 0]);
    let within_limits = len <= limits::MAX_VALUE_LEN;
    within_limits.then(|| (value_type.code(), begin as usize..(begin + len) as usize))
}

#[inline]
fn aligned(offset: u64, align: usize) -> u64 {
    let mask = align as u64 - 1;
    (offset + mask) & !mask
}

impl<'a> DataSection<'a> {
    fn from(self, at: u64) -> Option<&'a [u8]> {
        self.0.get(usize::try_from(at).ok()?..)
    }

    /// Decodes the record that begins at this offset.
    ///
    /// # Errors
    /// Returns [`InvalidRecord`] if the record contradicts the format or is not within the section.
    pub(crate) fn record(self, at: u64) -> Result<Record<'a>, InvalidRecord> {
        let Some(rest) = self.from(at) else {
            return Err(invalid(at, "a record within the data section", at));
        };
        let [tag, short_key, short_value, ..] = *rest else {
            return Err(invalid(at, "a record head before the end of the data", rest.len() as u64));
        };
        if tag & at::LONG == 0 {
            let lens = (usize::from(short_key), u64::from(short_value));
            return self.decode_parts(at, rest, (tag, at::SHORT_HEAD), lens);
        }
        let Some(&[_, k0, k1, v0, v1, v2, v3, v4]) = rest.first_chunk() else {
            let found = rest.len() as u64;
            return Err(invalid(at, "a long record head before the end of the data", found));
        };
        let value_len = u64::from_le_bytes([v0, v1, v2, v3, v4, 0, 0, 0]);
        if value_len > limits::MAX_VALUE_LEN {
            return Err(invalid(at + 3, "a value of at most 4 GiB", value_len));
        }
        let lens = (usize::from(u16::from_le_bytes([k0, k1])), value_len);
        self.decode_parts(at, rest, (tag, at::LONG_HEAD), lens)
    }

    /// Decodes the record after its head, whose lengths are known.
    fn decode_parts(
        self,
        at: u64,
        rest: &'a [u8],
        (tag, head): (u8, usize),
        (key_len, value_len): (usize, u64),
    ) -> Result<Record<'a>, InvalidRecord> {
        let Some(value_type) = ValueType::from_code(tag & at::TYPE_MASK) else {
            return Err(invalid(at, "a known value type", u64::from(tag & at::TYPE_MASK)));
        };
        if tag & at::RESERVED != 0 {
            return Err(invalid(at, "the reserved bit of the tag to be zero", u64::from(tag)));
        }
        let key_end = head + key_len;
        let Some(key) = rest.get(head..key_end) else {
            return Err(invalid(at, "a key before the end of the data", key_len as u64));
        };
        let compressed = tag & at::ZSTD != 0;
        let align = if compressed { 1 } else { value_type.align() };
        let after_key = at + key_end as u64;
        let shared = tag & at::SHARED != 0;
        let stored_at = if shared {
            reference(rest, key_end).ok_or(invalid(after_key, "a reference", rest.len() as u64))?
        } else if tag & at::LONG != 0 {
            aligned(after_key, align)
        } else {
            after_key
        };
        if stored_at % align as u64 != 0 {
            return Err(invalid(at, "an aligned value", stored_at));
        }
        let stored = self.value(stored_at, value_len).ok_or(invalid(
            if shared { after_key } else { at },
            "a value within the data section",
            value_len,
        ))?;
        let end = if shared { after_key + at::REFERENCE_LEN as u64 } else { stored_at + value_len };
        Ok(Record { key, value_type, compressed, shared, stored, end })
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
fn invalid(offset: u64, expected: &'static str, found: u64) -> InvalidRecord {
    InvalidRecord { offset, expected, found }
}

/// Compares a key with the key of a record, which must have the same length. Compares a key of 9 to
/// 16 bytes with one branch.
#[inline(always)]
fn same_key(key: &[u8], record: &[u8]) -> bool {
    if !is_common_len(key) {
        return same_bytes(key, record);
    }
    let (Some((first, last)), Some((record_first, record_last))) = (ends(key), ends(record)) else {
        return false;
    };
    (first ^ record_first) | (last ^ record_last) == 0
}

/// Returns the first and the last eight bytes as numbers.
#[inline(always)]
fn ends(key: &[u8]) -> Option<(u64, u64)> {
    Some((u64::from_le_bytes(*key.first_chunk()?), u64::from_le_bytes(*key.last_chunk()?)))
}

/// Compares two slices. Out of line, so that the common path need not save registers for the call.
#[inline(never)]
fn same_bytes(key: &[u8], record: &[u8]) -> bool {
    key == record
}

/// The encoding of a record that is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordPlan {
    pub(crate) value_type: ValueType,
    pub(crate) compressed: bool,
    pub(crate) shared: bool,
    pub(crate) key_len: usize,
    pub(crate) stored_len: u64,
}

impl RecordPlan {
    /// Returns whether the record needs a long head: for long lengths, or to align its value. In a
    /// line whose offsets count in units above one byte, a record cannot begin where its value
    /// would be aligned without padding, and only long records have padding after the key.
    fn is_long(self, shift: u8) -> bool {
        self.key_len > 255 || self.stored_len > 255 || (shift > 0 && self.align() > 1)
    }

    fn head_len(self, shift: u8) -> usize {
        if self.is_long(shift) { at::LONG_HEAD } else { at::SHORT_HEAD }
    }

    /// Returns the alignment of the value or reference after the key.
    pub(crate) fn align(self) -> usize {
        if self.compressed || self.shared { 1 } else { self.value_type.align() }
    }

    /// Returns the offset at which the record begins if the record before it in its line ends at
    /// `at`. Both count from the line's base, which is aligned for all values of the line.
    pub(crate) fn begin(self, at: u64, shift: u8) -> u64 {
        if self.is_long(shift) || self.align() == 1 {
            return at.next_multiple_of(1 << shift);
        }
        let before_value = (at::SHORT_HEAD + self.key_len) as u64;
        aligned(at + before_value, self.align()) - before_value
    }

    /// Returns the offset of the stored value, or of the reference to it, in a record that begins
    /// at `at`.
    pub(crate) fn value_at(self, at: u64, shift: u8) -> u64 {
        aligned(at + (self.head_len(shift) + self.key_len) as u64, self.align())
    }

    /// Returns the offset at which a record that begins at `at` ends.
    pub(crate) fn end(self, at: u64, shift: u8) -> u64 {
        let len = if self.shared { at::REFERENCE_LEN as u64 } else { self.stored_len };
        self.value_at(at, shift) + len
    }

    /// Appends the head of the record.
    #[inline]
    pub(crate) fn write_head(self, out: &mut Vec<u8>, shift: u8) {
        let mut tag = self.value_type.code();
        if self.compressed {
            tag |= at::ZSTD;
        }
        if self.shared {
            tag |= at::SHARED;
        }
        if self.is_long(shift) {
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
    fn keys_of_every_length_compare() {
        for len in 0..40 {
            let key: Vec<u8> = (0..len).collect();
            assert!(same_key(&key, &key.clone()), "length {len}");
            for i in 0..usize::from(len) {
                let mut other = key.clone();
                other[i] ^= 0x40;
                assert!(!same_key(&key, &other), "length {len}, byte {i}");
            }
        }
    }
}
