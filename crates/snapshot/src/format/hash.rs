//! Hashes of the format: XXH3-64 with a seed for keys, without a seed for checksums.

use super::layout::line;
use xxhash_rust::xxh3;

/// Returns whether the key has 9 to 16 bytes. Its hash and its comparison then take two loads each.
#[inline(always)]
pub(crate) fn is_common_len(key: &[u8]) -> bool {
    (9..=16).contains(&key.len())
}

/// The hash of a key. Its bits determine the partition, the home line, the fingerprint and the
/// overflow class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(pub(crate) u64);

impl KeyHash {
    /// Hashes a key. The most common lengths are hashed inline: a call costs as much as the hash,
    /// and code for other lengths would take registers from the lookup.
    #[inline(always)]
    pub(crate) fn of(key: &[u8], seed: u64) -> Self {
        if is_common_len(key) {
            Self(xxh3::xxh3_64_with_seed(key, seed))
        } else {
            Self::of_any(key, seed)
        }
    }

    #[inline(never)]
    fn of_any(key: &[u8], seed: u64) -> Self {
        Self(xxh3::xxh3_64_with_seed(key, seed))
    }

    /// Returns the home line of a key in an index of `lines` lines: `hash * lines / 2^64`. So lines
    /// are in the order of the hash.
    #[inline(always)]
    pub(crate) fn line(self, lines: u64) -> u64 {
        ((u128::from(self.0) * u128::from(lines)) >> 64) as u64
    }

    /// Returns the partition of a key: the upper bits of its hash. The home line is in this
    /// partition, because all partitions have the same number of lines.
    pub(crate) fn partition(self, partition_bits: u32) -> u64 {
        // Two shifts, because a shift by 64 bits for zero partition bits would overflow.
        (self.0 >> 1) >> (63 - partition_bits)
    }

    /// Returns the number of the shard of a key in a set of `shards` shards. It follows from bits
    /// that determine neither fingerprint nor overflow class, nor the line of an index of fewer
    /// than 2^29 lines, so within a shard these are as evenly distributed as in one file.
    #[inline(always)]
    pub(crate) fn shard(self, shards: u32) -> u32 {
        let bits = (self.0 >> line::SHARD_BIT) & 0xffff;
        ((bits * u64::from(shards)) >> 16) as u32
    }

    /// Returns the fingerprint that the slot of a key holds: 15 bits of the hash, and
    /// [`line::IN_USE`].
    #[inline(always)]
    pub(crate) fn fingerprint(self) -> u16 {
        self.0 as u16 | line::IN_USE
    }

    /// Returns the overflow bit of the key's class, which is set in every full line that a key of
    /// this class was moved past.
    #[inline(always)]
    pub(crate) fn overflow_bit(self) -> u8 {
        1 << ((self.0 >> line::CLASS_BIT) & (line::CLASSES - 1))
    }
}

/// Returns the checksum of a section or of one partition's part of it.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxh3::xxh3_64(bytes)
}

/// An incremental checksum.
#[derive(Default)]
pub(crate) struct Checksum(xxh3::Xxh3Default);

impl Checksum {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0.digest()
    }
}
