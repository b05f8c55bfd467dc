//! Lookups of many keys at once. Keys are processed in groups: hash all keys of a group and
//! prefetch their index lines, find their records in these lines, prefetch the records, then read
//! them. So the memory latencies of a group overlap.

use super::file::SnapshotFile;
use super::lookup::FastResult;
use super::snapshot::Snapshot;
use super::stored::StoredValue;
use crate::error::Result;
use crate::format::hash::KeyHash;
use crate::prefetch::prefetch;
use crate::values::CowValue;

/// Number of keys in a group: enough to hide the memory latency, few enough that prefetched lines
/// are still in the second-level cache when they are used.
const PREFETCH_GROUP: usize = 64;

/// Number of bytes of a record that are prefetched. If they reach into a second cache line, both
/// are prefetched.
const PREFETCH_BYTES: u64 = 24;

/// Number of cache lines of a record that are prefetched for a caller that reads its value.
const PREFETCH_RECORD_LINES: usize = 4;

/// The offset for a key whose home line has no slot with its fingerprint.
const NO_CANDIDATE: u64 = u64::MAX;

impl Snapshot {
    /// Looks up many keys: sets `out[i]` to the result of [`get`](Self::get) for `keys[i]`. Faster
    /// than single lookups in large files, because the memory accesses of several keys overlap.
    /// Allocates memory only for compressed values, or for an error.
    ///
    /// # Errors
    /// Returns the error of `get` for the first key for which it fails. The elements of `out` from
    /// that key on are unspecified.
    ///
    /// # Panics
    /// Panics if `out` is shorter than `keys`.
    pub fn get_many<'a, K: AsRef<[u8]>>(
        &'a self,
        keys: &[K],
        out: &mut [Option<CowValue<'a>>],
    ) -> Result<()> {
        match self.one_file() {
            Some(file) => OneFile(file).get_many(keys, out),
            None => Shards(self).get_many(keys, out),
        }
    }

    /// Finds the stored values of many keys: sets `out[i]` to the result of [`find`](Self::find)
    /// for `keys[i]`. Allocates no memory, except for an error.
    ///
    /// # Errors
    /// Returns the error of `find` for the first key for which it fails. The elements of `out` from
    /// that key on are unspecified.
    ///
    /// # Panics
    /// Panics if `out` is shorter than `keys`.
    pub fn find_many<'a, K: AsRef<[u8]>>(
        &'a self,
        keys: &[K],
        out: &mut [Option<StoredValue<'a>>],
    ) -> Result<()> {
        match self.one_file() {
            Some(file) => OneFile(file).find_many(keys, out),
            None => Shards(self).find_many(keys, out),
        }
    }
}

/// A key whose index line is prefetched, from [`Snapshot::prefetch`].
#[derive(Clone, Copy, Debug)]
pub struct Prefetched(KeyHash);

impl Snapshot {
    /// Prefetches the index line of a key. For callers that look up many keys, each by itself: they
    /// call this for all keys, then [`prefetch_record`](Self::prefetch_record) for all, then look
    /// the keys up. [`get_many`](Self::get_many) needs neither.
    #[inline]
    pub fn prefetch(&self, key: &[u8]) -> Prefetched {
        let (file, hash) = self.shard_of(key);
        prefetch(&file.map.line_at(hash.0)[0]);
        Prefetched(hash)
    }

    /// Reads the prefetched index line of a key, and prefetches the first 256 bytes of the record
    /// to which it points: key, and all of a short value, since the caller reads it soon.
    #[inline]
    pub fn prefetch_record(&self, Prefetched(hash): Prefetched) {
        let file = self.shard_at(hash);
        let record = file.candidate(hash);
        file.prefetch(record);
        if let Some(window) = file.map.window(record) {
            for line in 1..PREFETCH_RECORD_LINES {
                prefetch(&window[line * 64]);
            }
        }
    }
}

/// The files of a snapshot. Lookups in one file are compiled without the choice of a file.
trait Files<'a>: Copy {
    /// Returns the file for keys with this hash.
    fn file_at(self, hash: KeyHash) -> &'a SnapshotFile;

    /// Returns the seed of the key hash.
    fn seed(self) -> u64;

    /// Does the same as [`Snapshot::get_many`].
    fn get_many<K: AsRef<[u8]>>(self, keys: &[K], out: &mut [Option<CowValue<'a>>]) -> Result<()> {
        for_each_key(self, keys, out, |file, fast, key, hash, out| {
            *out = file.value_of(fast, key, hash)?;
            Ok(())
        })
    }

    /// Does the same as [`Snapshot::find_many`].
    fn find_many<K: AsRef<[u8]>>(
        self,
        keys: &[K],
        out: &mut [Option<StoredValue<'a>>],
    ) -> Result<()> {
        for_each_key(self, keys, out, |file, fast, key, hash, out| {
            *out = file.stored_value_of(fast, key, hash)?;
            Ok(())
        })
    }
}

#[derive(Clone, Copy)]
struct OneFile<'a>(&'a SnapshotFile);

impl<'a> Files<'a> for OneFile<'a> {
    #[inline(always)]
    fn file_at(self, _: KeyHash) -> &'a SnapshotFile {
        self.0
    }

    #[inline(always)]
    fn seed(self) -> u64 {
        self.0.header.seed
    }
}

#[derive(Clone, Copy)]
struct Shards<'a>(&'a Snapshot);

impl<'a> Files<'a> for Shards<'a> {
    #[inline(always)]
    fn file_at(self, hash: KeyHash) -> &'a SnapshotFile {
        self.0.shard_at(hash)
    }

    #[inline(always)]
    fn seed(self) -> u64 {
        self.0.seed()
    }
}

/// Calls `finish` for every key, in order, with its file and the result of the fast path.
#[inline]
fn for_each_key<'a, F: Files<'a>, K: AsRef<[u8]>, T>(
    files: F,
    keys: &[K],
    out: &mut [T],
    mut finish: impl FnMut(&'a SnapshotFile, FastResult<'a>, &[u8], KeyHash, &mut T) -> Result<()>,
) -> Result<()> {
    assert!(out.len() >= keys.len(), "{} results for {} keys", out.len(), keys.len());
    let mut hashes = [KeyHash(0); PREFETCH_GROUP];
    let mut records = [NO_CANDIDATE; PREFETCH_GROUP];
    for (keys, out) in keys.chunks(PREFETCH_GROUP).zip(out.chunks_mut(PREFETCH_GROUP)) {
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = KeyHash::of(key.as_ref(), files.seed());
            prefetch(&files.file_at(*hash).map.line_at(hash.0)[0]);
        }
        for (hash, record) in hashes.iter().zip(&mut records).take(keys.len()) {
            *record = files.file_at(*hash).candidate(*hash);
        }
        for (hash, record) in hashes.iter().zip(&records).take(keys.len()) {
            files.file_at(*hash).prefetch(*record);
        }
        for (((key, out), hash), record) in keys.iter().zip(out).zip(&hashes).zip(&records) {
            let (file, key) = (files.file_at(*hash), key.as_ref());
            finish(file, file.read_candidate(key, *hash, *record), key, *hash, out)?;
        }
    }
    Ok(())
}

impl SnapshotFile {
    /// Returns the offset of the first record of the home line with the key's fingerprint.
    #[inline(always)]
    fn candidate(&self, hash: KeyHash) -> u64 {
        let line = self.home_line(hash);
        let Some(slot) = line.matches(hash.fingerprint()).next() else { return NO_CANDIDATE };
        line.record(slot)
    }

    /// Prefetches the record at an offset.
    #[inline(always)]
    fn prefetch(&self, record: u64) {
        if let Some(window) = self.map.window(record) {
            prefetch(&window[0]);
            if record % 64 > 64 - PREFETCH_BYTES {
                prefetch(&window[64]);
            }
        }
    }

    /// Continues the fast path at a candidate record.
    #[inline(always)]
    fn read_candidate(&self, key: &[u8], hash: KeyHash, record: u64) -> FastResult<'_> {
        match record {
            NO_CANDIDATE => self.find_fast(key, hash, None),
            record => self.read_fast(record, key, None),
        }
    }
}
