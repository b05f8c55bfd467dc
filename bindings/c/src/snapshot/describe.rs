//! Length, statistics, metadata and verification of snapshots.

use super::open::nuthatch_snapshot;
use crate::error::nuthatch_error;
use crate::memory::{export_body, nuthatch_progress, nuthatch_snapshot_bytes};
use snapshot_engine::{Stats, ValueType};
use std::ffi::c_void;

/// Statistics of a snapshot, with the names of `nuthatch info --json`. For a set they are sums over
/// the shards, without the manifest, unless stated otherwise.
#[repr(C)]
pub struct nuthatch_snapshot_stats {
    /// Length of the file in bytes.
    pub file_bytes: u64,
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
    /// Length of the compression dictionary in bytes.
    pub dictionary_bytes: u64,
    /// Length of the index in bytes.
    pub index_bytes: u64,
    /// Length of the data in bytes.
    pub data_bytes: u64,
    /// Length of the metadata in bytes, that of a manifest for a set.
    pub metadata_bytes: u64,
    /// Number of partitions of the index.
    pub partitions: u64,
    /// Number of lines of the index.
    pub lines: u64,
    /// Seed of the key hash, the same in all shards.
    pub seed: u64,
    /// Number of entries of each type: `entries_by_type[NUTHATCH_SNAPSHOT_STRING]` of strings.
    pub entries_by_type: [u64; 16],
    /// Maximum number of index lines from the home line of a key to the line that holds it: 0 if
    /// all keys are in their home lines. For a set, the maximum of all shards.
    pub max_probe: u32,
    /// Number of shards; 0 for a file that was opened without a manifest.
    pub shards: u32,
    /// Major version of the format.
    pub version_major: u32,
    /// Minor version of the format; the highest of all shards.
    pub version_minor: u32,
}

/// A name and a value of the metadata.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_snapshot_metadata_pair {
    /// The name, in UTF-8.
    pub name: nuthatch_snapshot_bytes,
    /// The value.
    pub value: nuthatch_snapshot_bytes,
}

/// Returns the number of entries in `len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_len(
    snapshot: *const nuthatch_snapshot,
    len: *mut u64,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("len", len)?;
        out.put(caller.one("snapshot", snapshot)?.get()?.len());
        Ok(())
    })
}

/// Returns statistics of a snapshot in `stats`. Reads headers only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_stats_of(
    snapshot: *const nuthatch_snapshot,
    stats: *mut nuthatch_snapshot_stats,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("stats", stats)?;
        out.put(stats_of(&caller.one("snapshot", snapshot)?.get()?.stats()));
        Ok(())
    })
}

fn stats_of(stats: &Stats) -> nuthatch_snapshot_stats {
    let mut entries_by_type = [0; 16];
    for value_type in ValueType::ALL {
        entries_by_type[usize::from(value_type.code())] = stats.entries_of(value_type);
    }
    nuthatch_snapshot_stats {
        file_bytes: stats.file_len,
        entries: stats.entries,
        key_bytes: stats.key_bytes,
        value_bytes: stats.value_bytes,
        stored_value_bytes: stats.stored_value_bytes,
        shared_entries: stats.shared_entries,
        compressed_entries: stats.compressed_entries,
        dictionary_bytes: stats.dictionary_bytes,
        index_bytes: stats.index_bytes,
        data_bytes: stats.data_bytes,
        metadata_bytes: stats.metadata_bytes,
        partitions: stats.partitions,
        lines: stats.lines,
        seed: stats.seed,
        entries_by_type,
        max_probe: stats.max_probe,
        shards: stats.shards,
        version_major: u32::from(stats.version.0),
        version_minor: u32::from(stats.version.1),
    }
}

/// Returns the metadata that the writer was given, in ascending order of the names: the first
/// `capacity` pairs in `pairs`, and the number of all pairs in `count`. Names and values are valid
/// until the last reference to the snapshot is released. Checks the checksum of the metadata, and
/// fails with `corrupt` if it is wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_metadata(
    snapshot: *const nuthatch_snapshot,
    pairs: *mut nuthatch_snapshot_metadata_pair,
    capacity: usize,
    count: *mut usize,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("count", count)?;
        let room = caller.blank("pairs", pairs, capacity)?;
        let bytes =
            |bytes: &[u8]| nuthatch_snapshot_bytes { data: bytes.as_ptr(), len: bytes.len() };
        let metadata = caller.one("snapshot", snapshot)?.get()?.metadata()?;
        for (place, (name, value)) in room.iter_mut().zip(metadata.iter()) {
            let (name, value) = (bytes(name.as_bytes()), bytes(value));
            place.write(nuthatch_snapshot_metadata_pair { name, value });
        }
        out.put(metadata.len());
        Ok(())
    })
}

/// Verifies every byte of a snapshot on `threads` threads; 0: one for each core. Returns when all
/// bytes are verified, or at the first damage, with `corrupt`. `progress` may be null. Several
/// threads call it at once, with `user`, the number of verified entries and that of all entries. It
/// must not throw an exception of C++.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_verify(
    snapshot: *const nuthatch_snapshot,
    threads: u32,
    progress: nuthatch_progress,
    user: *mut c_void,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads as usize,
        };
        let progress = caller.shared_progress(progress, user);
        let snapshot = caller.one("snapshot", snapshot)?.get()?;
        Ok(snapshot.verify_with(threads, |done, all| progress.call(done, all))?)
    })
}

/// Checks that every page read so far was readable: if this succeeds, everything that was read
/// before the call came from the file. Fails with `unreadable` if the file was truncated or its
/// device failed. Detects that only if the snapshot was opened with the option `guard`; without it,
/// the call always succeeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_check_readable(
    snapshot: *const nuthatch_snapshot,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| Ok(caller.one("snapshot", snapshot)?.get()?.check_readable()?))
}
