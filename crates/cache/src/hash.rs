//! The hash of a key, and what is read off it.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The hash of a key: computed once, ahead of the lookup where there are many keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(pub(crate) u64);

/// Bits of the hash that a slot of the index holds.
pub(crate) const TAG_BITS: u32 = 20;

impl KeyHash {
    #[inline]
    pub(crate) fn of(key: &[u8], seed: u64) -> Self {
        Self(xxh3_64_with_seed(key, seed))
    }

    /// The table of the key, when there are `2^bits`.
    #[inline]
    pub(crate) fn table(self, bits: u32) -> usize {
        (self.0 >> 1 >> (63 - bits)) as usize
    }

    /// What the slot holds: the bits below those that choose the table. A table can place its slots
    /// anew without reading their keys, since the place of a key in it follows from the tag.
    #[inline]
    pub(crate) fn tag(self, bits: u32) -> u32 {
        (self.0 >> (64 - TAG_BITS - bits)) as u32 & ((1 << TAG_BITS) - 1)
    }
}
