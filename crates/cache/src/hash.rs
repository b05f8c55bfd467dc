//! The hash of a key.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The hash of a key, from [`Cache::hash`](crate::Cache::hash). Valid for that cache only, since
/// each cache has its own seed. For a batch of keys, compute all hashes first, then prefetch and
/// look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(pub(crate) u64);

/// Bits of the hash in a slot of the index.
pub(crate) const TAG_BITS: u32 = 20;

impl KeyHash {
    /// Returns the hash of a key: XXH3-64 with a seed.
    #[inline]
    pub(crate) fn of(key: &[u8], seed: u64) -> Self {
        Self(xxh3_64_with_seed(key, seed))
    }

    /// Returns the number of the key's table among `2^bits`.
    #[inline]
    pub(crate) fn table(self, bits: u32) -> usize {
        (self.0 >> 1 >> (63 - bits)) as usize
    }

    /// Returns the tag: the bits below those that select the table. The tag determines the position
    /// in the table, so that a table can grow without reading keys.
    #[inline]
    pub(crate) fn tag(self, bits: u32) -> u32 {
        (self.0 >> (64 - TAG_BITS - bits)) as u32 & ((1 << TAG_BITS) - 1)
    }
}
