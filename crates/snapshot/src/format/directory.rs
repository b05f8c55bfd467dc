//! The directory: location and checksums of each partition.

use super::header::Section;
use super::layout::directory as at;

/// The directory entry of one partition. Not validated: only the directory as a whole has a
/// checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectoryEntry {
    /// The partition's data, relative to the data section.
    pub(crate) data: Section,
    pub(crate) index_hash: u64,
    pub(crate) data_hash: u64,
}

impl DirectoryEntry {
    /// Decodes the entry of a partition.
    ///
    /// # Panics
    /// Panics if the directory is not within `bytes` or has no such entry.
    pub(crate) fn decode(bytes: &[u8], directory: Section, partition: u64) -> Self {
        let start = (directory.offset + partition * at::ENTRY_LEN as u64) as usize;
        let entry = &bytes[start..start + at::ENTRY_LEN];
        let field = |offset: usize| {
            u64::from_le_bytes(entry[offset..offset + 8].try_into().expect("eight bytes"))
        };
        Self {
            data: Section { offset: field(at::DATA_OFFSET), len: field(at::DATA_LEN) },
            index_hash: field(at::INDEX_HASH),
            data_hash: field(at::DATA_HASH),
        }
    }

    /// Encodes the entry.
    pub(crate) fn to_bytes(self) -> [u8; at::ENTRY_LEN] {
        let mut bytes = [0; at::ENTRY_LEN];
        for (offset, number) in [
            (at::DATA_OFFSET, self.data.offset),
            (at::DATA_LEN, self.data.len),
            (at::INDEX_HASH, self.index_hash),
            (at::DATA_HASH, self.data_hash),
        ] {
            bytes[offset..offset + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}
