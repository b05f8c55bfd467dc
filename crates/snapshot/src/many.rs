//! Lookups of many keys at once: hash all, ask for all index lines, then for all records, then
//! answer, so that the waits for memory overlap instead of queueing.

use crate::bucket::prefetch;
use crate::error::Result;
use crate::hash::KeyHash;
use crate::owned::CowValue;
use crate::reader::{Quick, Snapshot};
use crate::stored::Stored;

/// Keys in flight at a time: enough to cover the wait for memory, few enough that what was asked
/// for is still in the first-level cache when it is used.
const GROUP: usize = 64;

/// The prefetched record is known to begin in one cache line; when it begins this close to the end
/// of it, the next line is asked for too.
const TAIL: u64 = 24;

/// Stands for a key whose line has no slot with its fingerprint.
const NO_CANDIDATE: u64 = u64::MAX;

impl Snapshot {
    /// Looks many keys up: `out[i]` becomes what [`get`](Self::get) returns for `keys[i]`.
    /// Allocates nothing, except for values that are compressed.
    ///
    /// Fails as `get` does, at the first key that does; later places of `out` are then unspecified.
    ///
    /// # Panics
    /// When `out` is shorter than `keys`.
    pub fn get_many<'a, K: AsRef<[u8]>>(
        &'a self,
        keys: &[K],
        out: &mut [Option<CowValue<'a>>],
    ) -> Result<()> {
        self.for_each_of_many(keys, out, |quick, key, hash, out| {
            *out = self.read(quick, key, hash)?;
            Ok(())
        })
    }

    /// The stored values of many keys: `out[i]` becomes what [`find`](Self::find) answers for
    /// `keys[i]`. Allocates nothing.
    ///
    /// # Panics
    /// When `out` is shorter than `keys`.
    pub fn find_many<'a, K: AsRef<[u8]>>(
        &'a self,
        keys: &[K],
        out: &mut [Option<Stored<'a>>],
    ) -> Result<()> {
        self.for_each_of_many(keys, out, |quick, key, hash, out| {
            *out = self.answer(quick, key, hash)?;
            Ok(())
        })
    }

    #[inline]
    fn for_each_of_many<'a, K: AsRef<[u8]>, T>(
        &'a self,
        keys: &[K],
        out: &mut [T],
        mut answer: impl FnMut(Quick<'a>, &[u8], KeyHash, &mut T) -> Result<()>,
    ) -> Result<()> {
        assert!(out.len() >= keys.len(), "{} places for {} keys", out.len(), keys.len());
        let mut hashes = [KeyHash(0); GROUP];
        let mut records = [NO_CANDIDATE; GROUP];
        for (keys, out) in keys.chunks(GROUP).zip(out.chunks_mut(GROUP)) {
            for (key, hash) in keys.iter().zip(&mut hashes) {
                *hash = KeyHash::of(key.as_ref(), self.header.seed);
                prefetch(&self.map.line_at(hash.0)[0]);
            }
            for (hash, record) in hashes.iter().zip(&mut records).take(keys.len()) {
                *record = self.candidate(*hash);
            }
            for (((key, out), hash), record) in keys.iter().zip(out).zip(&hashes).zip(&records) {
                let key = key.as_ref();
                answer(self.confirm(key, *hash, *record), key, *hash, out)?;
            }
        }
        Ok(())
    }

    /// The first record of the home line with the key's fingerprint, asked for ahead of its use.
    #[inline(always)]
    fn candidate(&self, hash: KeyHash) -> u64 {
        let line = self.home_line(hash);
        let Some(slot) = line.matches(hash.fingerprint()).next() else { return NO_CANDIDATE };
        let record = line.record(slot);
        if let Some(window) = self.map.window(record) {
            prefetch(&window[0]);
            if record % 64 > 64 - TAIL {
                prefetch(&window[64]);
            }
        }
        record
    }

    #[inline(always)]
    fn confirm(&self, key: &[u8], hash: KeyHash, record: u64) -> Quick<'_> {
        match record {
            NO_CANDIDATE => self.quick_find(key, hash, None),
            record => self.quick_read(record, key, None),
        }
    }
}
