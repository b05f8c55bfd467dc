//! What the header tells about a snapshot.

use crate::header::Header;
use crate::layout::{header as header_at, line};
use crate::reader::Snapshot;
use crate::value::ValueType;

/// Facts about a snapshot, all known without reading its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Version of the format, major and minor.
    pub version: (u16, u16),
    /// Length of the file in bytes.
    pub file_len: u64,
    /// Number of entries.
    pub entries: u64,
    /// Sum of the lengths of all keys.
    pub key_bytes: u64,
    /// Sum of the lengths of all values as users see them.
    pub value_bytes: u64,
    /// Sum of the lengths of all values as stored: compressed, and shared ones once.
    pub stored_value_bytes: u64,
    /// Entries whose value is stored with another entry.
    pub shared_entries: u64,
    /// Entries whose value is compressed.
    pub compressed_entries: u64,
    /// Number of partitions of the index.
    pub partitions: u64,
    /// Number of lines of the index.
    pub lines: u64,
    /// Length of the index in bytes.
    pub index_bytes: u64,
    /// Length of the data in bytes.
    pub data_bytes: u64,
    /// Length of the compression dictionary in bytes.
    pub dictionary_bytes: u64,
    /// The farthest any key lies from its home line, in lines.
    pub max_probe: u32,
    /// Seed of the key hash.
    pub seed: u64,
    entries_by_type: [u64; 16],
}

impl Stats {
    /// Number of entries with a value of this type.
    pub fn entries_of(&self, value_type: ValueType) -> u64 {
        self.entries_by_type[usize::from(value_type.code())]
    }

    /// Bytes of the file beyond keys and values as stored, for each entry.
    pub fn overhead_per_entry(&self) -> f64 {
        overhead_per_entry(self.file_len, self.key_bytes + self.stored_value_bytes, self.entries)
    }

    /// How full the index is, from 0 to 1.
    pub fn load(&self) -> f64 {
        self.entries as f64 / (self.lines.max(1) * line::SLOTS as u64) as f64
    }
}

/// Of no entries there is none.
pub(crate) fn overhead_per_entry(file_len: u64, payload: u64, entries: u64) -> f64 {
    if entries == 0 { 0.0 } else { file_len.saturating_sub(payload) as f64 / entries as f64 }
}

impl Snapshot {
    /// Facts about this snapshot.
    pub fn stats(&self) -> Stats {
        let header = &self.header;
        let Header { entries, key_bytes, value_bytes, stored_value_bytes, .. } = *header;
        Stats {
            version: (crate::layout::VERSION_MAJOR, header.version_minor),
            file_len: header.file_len.max(header_at::LEN as u64),
            entries,
            key_bytes,
            value_bytes,
            stored_value_bytes,
            shared_entries: header.shared_entries,
            compressed_entries: header.compressed_entries,
            partitions: header.partitions(),
            lines: header.index.len / line::LEN as u64,
            index_bytes: header.index.len,
            data_bytes: header.data.len,
            dictionary_bytes: header.dictionary.len,
            max_probe: header.max_probe,
            seed: header.seed,
            entries_by_type: header.entries_by_type,
        }
    }
}
