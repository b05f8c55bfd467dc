//! The Python class of statistics.

use crate::convert::repr_fields;
use nuthatch_snapshot::{Stats, ValueType};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Statistics of a snapshot, with the names of `nuthatch info --json`. For a set, `max_probe` is
/// the maximum of all shards, `version` is the highest, and other numbers are sums.
#[pyclass(frozen, get_all, module = "nuthatch")]
#[derive(Clone, Debug)]
pub(crate) struct SnapshotStats {
    /// Version of the format, such as `1.0`.
    version: String,
    /// Number of shards; 0 for a file that was opened without a manifest.
    shards: u32,
    /// Length of the files in bytes, without the manifest.
    file_bytes: u64,
    /// Number of entries.
    entries: u64,
    /// Sum of the lengths of all keys in bytes.
    key_bytes: u64,
    /// Sum of the lengths of all values in bytes, decompressed.
    value_bytes: u64,
    /// Sum of the lengths of all stored values in bytes. A shared value counts once.
    stored_value_bytes: u64,
    /// Number of entries that refer to a value that another entry stores.
    shared_entries: u64,
    /// Number of entries whose value is compressed.
    compressed_entries: u64,
    /// Length of the compression dictionary in bytes.
    dictionary_bytes: u64,
    /// Length of the metadata in bytes.
    metadata_bytes: u64,
    /// Length of the index in bytes.
    index_bytes: u64,
    /// Length of the data in bytes.
    data_bytes: u64,
    /// Number of partitions of the index.
    partitions: u64,
    /// Number of lines of the index.
    lines: u64,
    /// Maximum number of lines from the home line of a key to the line that holds it.
    max_probe: u32,
    /// Seed of the key hash.
    seed: u64,
    /// Fraction of the slots of the index that are in use, from 0 to 1.
    load: f64,
    /// Number of bytes per entry that the files take beyond keys and stored values.
    overhead_bytes_per_entry: f64,
    /// Number of entries by the name of their type, without types that have none.
    entries_by_type: BTreeMap<&'static str, u64>,
}

repr_fields! {
    SnapshotStats: version file_bytes entries entries_by_type;
}

impl From<Stats> for SnapshotStats {
    fn from(stats: Stats) -> Self {
        let by_type = ValueType::ALL.into_iter().map(|each| (each.name(), stats.entries_of(each)));
        Self {
            version: format!("{}.{}", stats.version.0, stats.version.1),
            shards: stats.shards,
            file_bytes: stats.file_len,
            entries: stats.entries,
            key_bytes: stats.key_bytes,
            value_bytes: stats.value_bytes,
            stored_value_bytes: stats.stored_value_bytes,
            shared_entries: stats.shared_entries,
            compressed_entries: stats.compressed_entries,
            dictionary_bytes: stats.dictionary_bytes,
            metadata_bytes: stats.metadata_bytes,
            index_bytes: stats.index_bytes,
            data_bytes: stats.data_bytes,
            partitions: stats.partitions,
            lines: stats.lines,
            max_probe: stats.max_probe,
            seed: stats.seed,
            load: stats.load(),
            overhead_bytes_per_entry: stats.overhead_per_entry(),
            entries_by_type: by_type.filter(|(_, entries)| *entries > 0).collect(),
        }
    }
}
