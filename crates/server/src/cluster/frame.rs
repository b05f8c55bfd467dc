//! Items on their way to another node. docs/formats/cluster.md has the bytes.

use nuthatch_cache::{Expiry, Item, Write};

const ITEM: u8 = 1;
const REMOVAL: u8 = 2;

/// The length of a record without its key and its value.
const HEADER_LEN: usize = 30;

/// What a frame has for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'f> {
    /// The key has this item.
    Item {
        key: &'f [u8],
        value: &'f [u8],
        /// How often it was read: see [`Item::frequency`].
        frequency: u8,
        flags: u32,
        expires_ms: Option<u64>,
        cas: Option<u64>,
    },
    /// The key has no item.
    Removal { key: &'f [u8] },
}

impl<'f> Record<'f> {
    /// Creates the record of an item with an uncompressed value.
    pub(super) fn of(item: &'f Item<'f>) -> Self {
        Self::Item {
            key: item.key(),
            value: item.value(),
            frequency: item.frequency() as u8,
            flags: item.flags(),
            expires_ms: item.expires_ms(),
            cas: item.cas(),
        }
    }

    /// Returns the key.
    pub(crate) fn key(&self) -> &'f [u8] {
        match *self {
            Self::Item { key, .. } | Self::Removal { key } => key,
        }
    }

    /// Returns the length of the value in bytes.
    pub(super) fn value_len(&self) -> usize {
        if let Self::Item { value, .. } = self { value.len() } else { 0 }
    }

    /// Appends the record to a frame.
    pub(super) fn append_to(&self, frame: &mut Vec<u8>) {
        let none: (&[u8], u8, u32, Option<u64>, Option<u64>) = (b"", 0, 0, None, None);
        let (kind, (value, frequency, flags, expires_ms, cas)) = match *self {
            Self::Item { value, frequency, flags, expires_ms, cas, .. } => {
                (ITEM, (value, frequency, flags, expires_ms, cas))
            }
            Self::Removal { .. } => (REMOVAL, none),
        };
        let key = self.key();
        frame.extend_from_slice(&[kind, frequency]);
        frame.extend_from_slice(&(key.len() as u32).to_le_bytes());
        frame.extend_from_slice(&(value.len() as u32).to_le_bytes());
        frame.extend_from_slice(&flags.to_le_bytes());
        frame.extend_from_slice(&expires_ms.unwrap_or(0).to_le_bytes());
        frame.extend_from_slice(&cas.unwrap_or(0).to_le_bytes());
        frame.extend_from_slice(key);
        frame.extend_from_slice(value);
    }
}

/// Returns how to store an item with these properties.
pub(crate) fn write_of(flags: u32, expires_ms: Option<u64>, cas: Option<u64>) -> Write<'static> {
    let write = Write::new().expiry(expires_ms.map_or(Expiry::Never, Expiry::At)).flags(flags);
    cas.map_or(write, |cas| write.cas(cas))
}

/// Iterates over the records of a frame. `None` in place of a record is the end of a frame that is
/// not valid.
pub(crate) fn records(frame: &[u8]) -> impl Iterator<Item = Option<Record<'_>>> {
    let mut rest = Some(frame);
    std::iter::from_fn(move || {
        let bytes = rest.filter(|bytes| !bytes.is_empty())?;
        let next = split_record(bytes);
        rest = next.map(|(_, rest)| rest);
        Some(next.map(|(record, _)| record))
    })
}

fn split_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let number = |at: usize| header[at..].first_chunk().copied().map(u32::from_le_bytes);
    let long = |at: usize| header[at..].first_chunk().copied().map(u64::from_le_bytes);
    let (key, rest) = rest.split_at_checked(number(2)? as usize)?;
    let (value, rest) = rest.split_at_checked(number(6)? as usize)?;
    let record = match header[0] {
        ITEM => Record::Item {
            key,
            value,
            frequency: header[1],
            flags: number(10)?,
            expires_ms: long(14).filter(|ms| *ms > 0),
            cas: long(22).filter(|cas| *cas > 0),
        },
        REMOVAL => Record::Removal { key },
        _ => return None,
    };
    Some((record, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Record<'static>> {
        let item = |expires_ms, cas| Record::Item {
            key: b"key",
            value: b"value",
            frequency: 2,
            flags: 0xAABB_CCDD,
            expires_ms,
            cas,
        };
        vec![item(None, None), Record::Removal { key: b"gone" }, item(Some(1 << 45), Some(7))]
    }

    fn encode(all: &[Record<'_>]) -> Vec<u8> {
        let mut frame = Vec::new();
        for record in all {
            record.append_to(&mut frame);
        }
        frame
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let all = sample();
        let frame = encode(&all);
        let found: Option<Vec<_>> = records(&frame).collect();
        assert_eq!(found.as_deref(), Some(&all[..]));
        assert_eq!(records(&[]).count(), 0);
    }

    #[test]
    fn a_frame_that_ends_within_a_record_is_not_valid() {
        let all = sample();
        let frame = encode(&all);
        let ends: Vec<usize> = (1..=all.len()).map(|count| encode(&all[..count]).len()).collect();
        for len in 1..frame.len() {
            let is_valid = records(&frame[..len]).all(|record| record.is_some());
            assert_eq!(is_valid, ends.contains(&len), "{len}");
        }
        let mut other = frame.clone();
        other[0] = 3;
        assert_eq!(records(&other).next(), Some(None));
    }

    /// The bytes of docs/formats/cluster.md.
    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let record = Record::Item {
            key: b"k",
            value: b"v",
            frequency: 3,
            flags: 1,
            expires_ms: Some(2),
            cas: Some(3),
        };
        let mut expected = vec![1, 3];
        for number in [1u32, 1, 1] {
            expected.extend(number.to_le_bytes());
        }
        for number in [2u64, 3] {
            expected.extend(number.to_le_bytes());
        }
        expected.extend(b"kv");
        assert_eq!(encode(&[record]), expected);
    }
}
