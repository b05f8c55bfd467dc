//! The directory of an item file: an entry for each record, in the order of the records.

use crate::fields::{half, put_half, put_word, word};
use crate::layout::entry as at;
use crate::layout::{BLOCK, UNIT, UNIT_BITS, batch, blocks_len, record};
use crate::place::Place;
use crate::record::Record;

/// An entry of a directory, as it is stored.
pub(crate) type EntryBytes = [u8; at::LEN];

/// What a directory contains about a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The hash of the key.
    pub hash: u64,
    /// The place of the record. For records of more than 254 blocks, `blocks` is an upper bound.
    pub place: Place,
    /// When the item expires, in milliseconds since the Unix epoch: rounded up by less than a
    /// second, and at least a second after its file was created. The record has the exact time.
    pub expires_ms: Option<u64>,
    /// The number of reads that was stored with the item, at most 3.
    pub frequency: u8,
}

/// Encodes the entry of a record in a file that was created at `created_ms`.
pub(crate) fn encode(record: &Record<'_>, place: Place, created_ms: u64) -> EntryBytes {
    let mut bytes = [0; at::LEN];
    put_word(&mut bytes, at::HASH, record.hash);
    let blocks = place.blocks.min(at::MANY_BLOCKS) << UNIT_BITS;
    let frequency = u32::from(record.frequency.min(record::MAX_FREQUENCY)) << (u32::BITS - 2);
    put_half(&mut bytes, at::LOCATION, place.unit | blocks | frequency);
    let expiry = record.expires_ms.map_or(0, |expires_ms| {
        let seconds = expires_ms.saturating_sub(created_ms).div_ceil(1000);
        u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
    });
    put_half(&mut bytes, at::EXPIRY, expiry);
    bytes
}

/// The directory of an item file, read or rebuilt.
#[derive(Clone, Debug)]
pub struct Directory {
    pub(crate) slot: u32,
    pub(crate) created_ms: u64,
    /// The offset at which the batches end.
    pub(crate) data_end: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Directory {
    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / at::LEN
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Iterates over the entries in the order in which the records were written. Of two entries of
    /// one key, the later one is valid.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.entry(index))
    }

    fn entry(&self, index: usize) -> Entry {
        let bytes = &self.bytes[index * at::LEN..][..at::LEN];
        let packed = half(bytes, at::LOCATION);
        let unit = packed & ((1 << UNIT_BITS) - 1);
        let blocks = match packed >> UNIT_BITS & at::MANY_BLOCKS {
            at::MANY_BLOCKS => self.blocks_to_next(index, unit),
            blocks => blocks,
        };
        let expires_ms = match half(bytes, at::EXPIRY) {
            0 => None,
            seconds => Some(self.created_ms.saturating_add(u64::from(seconds) * 1000)),
        };
        Entry {
            hash: word(bytes, at::HASH),
            place: Place { slot: self.slot, unit, blocks },
            expires_ms,
            frequency: (packed >> (u32::BITS - 2)) as u8,
        }
    }

    /// Returns the number of blocks from a record to the next one, or to the end of the batches.
    fn blocks_to_next(&self, index: usize, unit: u32) -> u32 {
        let start = u64::from(unit) * UNIT as u64;
        let next = self.bytes.get((index + 1) * at::LEN..).filter(|rest| rest.len() >= at::LEN);
        let end = next.map_or(self.data_end, |next| {
            u64::from(half(next, at::LOCATION) & ((1 << UNIT_BITS) - 1)) * UNIT as u64
        });
        Place::of_bytes(0, start, end.saturating_sub(start)).blocks
    }
}

/// Returns the length of a directory with `entries`, padded to blocks.
pub(crate) fn padded_len(entries: u64) -> u64 {
    blocks_len(entries * at::LEN as u64)
}

/// Returns the length of an item file with batches that end at `data_end`: with its directory and
/// its footer.
pub(crate) fn sealed_len(data_end: u64, entries: u64) -> u64 {
    data_end + padded_len(entries) + BLOCK as u64
}

/// Returns the length of an item file with one batch of one record of `record_len` bytes.
pub(crate) fn single_record_len(record_len: u64) -> u64 {
    let data_end = BLOCK as u64 + blocks_len(batch::HEADER_LEN as u64 + record_len);
    sealed_len(data_end, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_of(record: &Record<'_>, place: Place) -> Entry {
        let bytes = encode(record, place, 5000).to_vec();
        let directory = Directory { slot: place.slot, created_ms: 5000, data_end: 1 << 30, bytes };
        directory.iter().next().expect("an entry")
    }

    #[test]
    fn entries_are_decoded_as_they_were_encoded() {
        let place = Place { slot: 9, unit: 260, blocks: 254 };
        let record = Record { hash: 7, frequency: 3, expires_ms: Some(6001), ..Record::default() };
        let expected = Entry { hash: 7, place, expires_ms: Some(7000), frequency: 3 };
        assert_eq!(entry_of(&record, place), expected);
    }

    #[test]
    fn expiry_is_rounded_up_and_never_lost() {
        let place = Place { slot: 0, unit: 260, blocks: 1 };
        let rounded =
            |expires_ms| entry_of(&Record { expires_ms, ..Record::default() }, place).expires_ms;
        assert_eq!(rounded(None), None);
        assert_eq!(rounded(Some(0)), Some(6000), "before the file was created");
        assert_eq!(rounded(Some(5001)), Some(6000));
        let longest = 5000 + u64::from(u32::MAX) * 1000;
        assert_eq!(rounded(Some(u64::MAX)), Some(longest), "136 years");
    }

    #[test]
    fn the_length_of_a_long_record_follows_from_the_next_entry() {
        let long = Place { slot: 0, unit: 260, blocks: 300 };
        let next = Place { slot: 0, unit: 260 + 256 * 400, blocks: 1 };
        let record = Record::default();
        let bytes = [encode(&record, long, 0), encode(&record, next, 0)].concat();
        let directory = Directory { slot: 0, created_ms: 0, data_end: 500 * 4096, bytes };
        let blocks: Vec<_> = directory.iter().map(|entry| entry.place.blocks).collect();
        assert_eq!(blocks, [401, 1]);
    }
}
