//! The fields of the header, and their encoding.

use super::hash::checksum;
use super::layout::{self, additional, header as at, line};

/// A byte range of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Section {
    /// Returns the offset after the last byte.
    pub(crate) fn end(self) -> u64 {
        self.offset + self.len
    }
}

/// A section that follows the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdditionalSection {
    pub(crate) kind: u32,
    /// Whether a reader that does not know the kind must reject the file.
    pub(crate) is_required: bool,
    pub(crate) section: Section,
    pub(crate) hash: u64,
}

impl AdditionalSection {
    fn to_bytes(self) -> [u8; additional::ENTRY_LEN] {
        let mut bytes = [0; additional::ENTRY_LEN];
        let mut put = |offset: usize, field: &[u8]| {
            bytes[offset..offset + field.len()].copy_from_slice(field);
        };
        put(additional::KIND, &self.kind.to_le_bytes());
        put(additional::REQUIRED, &u32::from(self.is_required).to_le_bytes());
        put(additional::OFFSET, &self.section.offset.to_le_bytes());
        put(additional::LENGTH, &self.section.len.to_le_bytes());
        put(additional::CHECKSUM, &self.hash.to_le_bytes());
        bytes
    }
}

/// The place of a file in a set of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// The number of the shard, from 0.
    pub(crate) number: u32,
    /// The number of shards of the set.
    pub(crate) of: u32,
}

/// The fields of a header. One that [`RawHeader::validate`] returns fits its file: all sections are
/// within the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version_minor: u16,
    pub(crate) file_len: u64,
    pub(crate) seed: u64,
    pub(crate) entries: u64,
    pub(crate) partition_bits: u32,
    pub(crate) lines_per_partition: u32,
    pub(crate) max_probe: u32,
    pub(crate) flags: u32,
    pub(crate) dictionary: Section,
    pub(crate) directory: Section,
    pub(crate) index: Section,
    pub(crate) data: Section,
    pub(crate) dictionary_hash: u64,
    pub(crate) directory_hash: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) stored_value_bytes: u64,
    pub(crate) shared_entries: u64,
    pub(crate) compressed_entries: u64,
    pub(crate) entries_by_type: [u64; 16],
    /// `None` for a file that is not a shard.
    pub(crate) shard: Option<Shard>,
    /// The sections after the data, in the order of the file.
    pub(crate) additional: Vec<AdditionalSection>,
}

impl Header {
    /// Returns the number of partitions.
    pub(crate) fn partitions(&self) -> u64 {
        1 << self.partition_bits
    }

    /// Encodes the header, with its checksum.
    pub(crate) fn to_bytes(&self) -> [u8; at::LEN] {
        let mut bytes = [0; at::LEN];
        let mut put = |offset: usize, field: &[u8]| {
            bytes[offset..offset + field.len()].copy_from_slice(field);
        };
        put(at::MAGIC, &layout::MAGIC);
        put(at::VERSION_MAJOR, &layout::VERSION_MAJOR.to_le_bytes());
        put(at::VERSION_MINOR, &self.version_minor.to_le_bytes());
        put(at::HEADER_LEN, &(at::LEN as u32).to_le_bytes());
        put(at::PARTITION_BITS, &self.partition_bits.to_le_bytes());
        put(at::LINES_PER_PARTITION, &self.lines_per_partition.to_le_bytes());
        put(at::MAX_PROBE, &self.max_probe.to_le_bytes());
        put(at::FLAGS, &self.flags.to_le_bytes());
        for (offset, section) in [
            (at::DICTIONARY, self.dictionary),
            (at::DIRECTORY, self.directory),
            (at::INDEX, self.index),
            (at::DATA, self.data),
        ] {
            put(offset, &section.offset.to_le_bytes());
            put(offset + 8, &section.len.to_le_bytes());
        }
        for (offset, number) in [
            (at::FILE_LEN, self.file_len),
            (at::SEED, self.seed),
            (at::ENTRIES, self.entries),
            (at::DICTIONARY_HASH, self.dictionary_hash),
            (at::DIRECTORY_HASH, self.directory_hash),
            (at::KEY_BYTES, self.key_bytes),
            (at::VALUE_BYTES, self.value_bytes),
            (at::STORED_VALUE_BYTES, self.stored_value_bytes),
            (at::SHARED_ENTRIES, self.shared_entries),
            (at::COMPRESSED_ENTRIES, self.compressed_entries),
        ] {
            put(offset, &number.to_le_bytes());
        }
        for (code, count) in self.entries_by_type.iter().enumerate() {
            put(at::ENTRIES_BY_TYPE + 8 * code, &count.to_le_bytes());
        }
        if let Some(shard) = self.shard {
            put(at::SHARD, &shard.number.to_le_bytes());
            put(at::SHARDS, &shard.of.to_le_bytes());
        }
        put(at::INDEX_KIND, &line::INDEX_KIND.to_le_bytes());
        put(at::ADDITIONAL_COUNT, &(self.additional.len() as u32).to_le_bytes());
        for (number, section) in self.additional.iter().enumerate() {
            put(at::ADDITIONAL + number * additional::ENTRY_LEN, &section.to_bytes());
        }
        let hash = checksum(&bytes[..at::HASH]);
        bytes[at::HASH..].copy_from_slice(&hash.to_le_bytes());
        bytes
    }

    /// Returns the section of the metadata, and its number among the additional sections, if there
    /// is one.
    pub(crate) fn metadata(&self) -> Option<(usize, &AdditionalSection)> {
        let mut sections = self.additional.iter().enumerate();
        sections.find(|(_, section)| section.kind == additional::METADATA)
    }
}

/// Returns the number of bytes per entry that a file of `file_len` bytes takes beyond `payload`,
/// the sum of key and stored value lengths. 0 for a file without entries.
pub(crate) fn overhead_per_entry(file_len: u64, payload: u64, entries: u64) -> f64 {
    if entries == 0 { 0.0 } else { file_len.saturating_sub(payload) as f64 / entries as f64 }
}
