//! Statistics of a snapshot.

use super::file::SnapshotFile;
use super::snapshot::Snapshot;
use crate::format::header::{Header, overhead_per_entry};
use crate::format::layout::{VERSION_MAJOR, header as header_at, line};
use crate::values::ValueType;

/// Statistics of a snapshot, from the headers of its files. For a set they are sums over the
/// shards, without the manifest, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Major and minor version of the format; the highest of all shards.
    pub version: (u16, u16),
    /// Number of shards; 0 for a file that was opened without a manifest.
    pub shards: u32,
    /// Length of the file in bytes.
    pub file_len: u64,
    /// Number of entries.
    pub entries: u64,
    /// Sum of the lengths of all keys in bytes.
    pub key_bytes: u64,
    /// Sum of the lengths of all values in bytes, decompressed.
    pub value_bytes: u64,
    /// Sum of the lengths of all stored values in bytes. A shared value counts once.
    pub stored_value_bytes: u64,
    /// Number of entries that refer to a value that another entry stores.
    pub shared_entries: u64,
    /// Number of entries whose value is compressed.
    pub compressed_entries: u64,
    /// Number of partitions of the index.
    pub partitions: u64,
    /// Number of lines of the index.
    pub lines: u64,
    /// Length of the index section in bytes.
    pub index_bytes: u64,
    /// Length of the data section in bytes.
    pub data_bytes: u64,
    /// Length of the compression dictionary in bytes.
    pub dictionary_bytes: u64,
    /// Length of the metadata in bytes, that of a manifest for a set.
    pub metadata_bytes: u64,
    /// Maximum number of lines from the home line of a key to the line that holds it: 0 if all keys
    /// are in their home lines. For a set, the maximum of all shards.
    pub max_probe: u32,
    /// Seed of the key hash, the same in all shards.
    pub seed: u64,
    entries_by_type: [u64; 16],
}

impl Stats {
    /// Returns the number of entries whose value has this type.
    pub fn entries_of(&self, value_type: ValueType) -> u64 {
        self.entries_by_type[usize::from(value_type.code())]
    }

    /// Returns the number of bytes per entry that the file takes beyond keys and stored values; 0
    /// for a file without entries.
    pub fn overhead_per_entry(&self) -> f64 {
        overhead_per_entry(self.file_len, self.key_bytes + self.stored_value_bytes, self.entries)
    }

    /// Returns the statistics of these files and another one. Version, seed, shards and metadata
    /// are those of these files, except that a higher version takes precedence.
    fn plus(mut self, other: &Self) -> Self {
        self.version = self.version.max(other.version);
        self.max_probe = self.max_probe.max(other.max_probe);
        for (sum, number) in [
            (&mut self.file_len, other.file_len),
            (&mut self.entries, other.entries),
            (&mut self.key_bytes, other.key_bytes),
            (&mut self.value_bytes, other.value_bytes),
            (&mut self.stored_value_bytes, other.stored_value_bytes),
            (&mut self.shared_entries, other.shared_entries),
            (&mut self.compressed_entries, other.compressed_entries),
            (&mut self.partitions, other.partitions),
            (&mut self.lines, other.lines),
            (&mut self.index_bytes, other.index_bytes),
            (&mut self.data_bytes, other.data_bytes),
            (&mut self.dictionary_bytes, other.dictionary_bytes),
        ] {
            *sum += number;
        }
        for (sum, number) in self.entries_by_type.iter_mut().zip(other.entries_by_type) {
            *sum += number;
        }
        self
    }

    /// Returns the share of index slots that are in use, from 0 to 1.
    pub fn load(&self) -> f64 {
        self.entries as f64 / (self.lines.max(1) * line::SLOTS as u64) as f64
    }
}

impl Snapshot {
    /// Returns the statistics of this snapshot. Reads headers only.
    pub fn stats(&self) -> Stats {
        let (first, others) = self.files();
        let mut stats = others.iter().fold(first.stats(), |sum, file| sum.plus(&file.stats()));
        if let Some((shards, metadata_bytes)) = self.set_stats() {
            (stats.shards, stats.metadata_bytes) = (shards, metadata_bytes);
        }
        stats
    }
}

impl SnapshotFile {
    fn stats(&self) -> Stats {
        let header = &self.header;
        let Header { entries, key_bytes, value_bytes, stored_value_bytes, .. } = *header;
        Stats {
            version: (VERSION_MAJOR, header.version_minor),
            shards: 0,
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
            metadata_bytes: header.metadata().map_or(0, |(_, metadata)| metadata.section.len),
            max_probe: header.max_probe,
            seed: header.seed,
            entries_by_type: header.entries_by_type,
        }
    }
}
