//! The offsets of the parts of a file, computed from its bytes and the constants of `layout.rs`.

use nuthatch_snapshot::layout::{directory, header, line, record};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The bytes of a good file, and the offsets of its parts.
pub(crate) struct Anatomy {
    pub(crate) bytes: Vec<u8>,
}

/// The offsets in the file of a record and of its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Fingerprint of the slot.
    pub(crate) fingerprint: usize,
    /// Offset field of the slot.
    pub(crate) offset: usize,
    /// First byte of the record.
    pub(crate) at: usize,
    pub(crate) key: usize,
    /// First byte after the key: of the value, of its padding, or of the reference.
    pub(crate) after_key: usize,
}

impl Anatomy {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Returns a little-endian number of `len` bytes.
    pub(crate) fn number(&self, at: usize, len: usize) -> usize {
        self.bytes[at..at + len]
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | usize::from(*byte))
    }

    /// Returns a section, by the offset of its field in the header.
    pub(crate) fn section(&self, field: usize) -> Range<usize> {
        let start = self.number(field, 8);
        start..start + self.number(field + 8, 8)
    }

    pub(crate) fn data(&self) -> Range<usize> {
        self.section(header::DATA)
    }

    pub(crate) fn partitions(&self) -> usize {
        1 << self.number(header::PARTITION_BITS, 4)
    }

    /// Returns the offset of a partition's directory entry.
    pub(crate) fn entry(&self, partition: usize) -> usize {
        self.section(header::DIRECTORY).start + partition * directory::ENTRY_LEN
    }

    /// Returns the lines of a partition.
    pub(crate) fn index(&self, partition: usize) -> Range<usize> {
        let len = self.number(header::LINES_PER_PARTITION, 4) * line::LEN;
        let start = self.section(header::INDEX).start + partition * len;
        start..start + len
    }

    /// Returns the offset of each line of the index.
    pub(crate) fn lines(&self) -> impl Iterator<Item = usize> + use<> {
        self.section(header::INDEX).step_by(line::LEN)
    }

    /// Returns the number of slots in use of a line.
    pub(crate) fn used(&self, line: usize) -> usize {
        (0..line::SLOTS).take_while(|slot| self.number(line + 2 * slot, 2) != 0).count()
    }

    pub(crate) fn place(&self, line: usize, slot: usize) -> Place {
        let offset = line + line::OFFSETS + 2 * slot;
        let base = self.data().start + self.number(line + line::BASE, 6);
        let at = base + (self.number(offset, 2) << self.bytes[line + line::SHIFT]);
        let long = self.bytes[at] & record::LONG != 0;
        let (head, len) = if long { (record::LONG_HEAD, 2) } else { (record::SHORT_HEAD, 1) };
        let key = at + head;
        let after_key = key + self.number(at + 1, len);
        Place { fingerprint: line + 2 * slot, offset, at, key, after_key }
    }

    /// Returns all records, in the order of the file.
    pub(crate) fn places(&self) -> Vec<Place> {
        let slots = |line| (0..self.used(line)).map(move |slot| self.place(line, slot));
        self.lines().flat_map(slots).collect()
    }

    pub(crate) fn key(&self, place: &Place) -> &[u8] {
        &self.bytes[place.key..place.after_key]
    }

    /// Returns the record of a key.
    pub(crate) fn find(&self, key: &[u8]) -> Place {
        let places = self.places();
        *places.iter().find(|place| self.key(place) == key).expect("a key that is there")
    }

    /// Returns the records that are not in the home line of their key, with the numbers of the home
    /// line and of their line.
    pub(crate) fn moved(&self) -> Vec<(usize, usize, Place)> {
        let seed = self.number(header::SEED, 8) as u64;
        let lines = self.lines().count();
        let home = |place: &Place| {
            let hash = u128::from(xxh3_64_with_seed(self.key(place), seed));
            ((hash * lines as u128) >> 64) as usize
        };
        let number =
            |place: &Place| (place.fingerprint - self.section(header::INDEX).start) / line::LEN;
        let places = self.places().into_iter();
        let places = places.map(|place| (home(&place), number(&place), place));
        places.filter(|(home, line, _)| home != line).collect()
    }
}
