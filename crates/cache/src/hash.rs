//! The hash of a key.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The hash of a key, from [`Cache::hash`](crate::Cache::hash). Valid for that cache only, since
/// each cache has its own seed. For a batch of keys, compute all hashes first, then prefetch and
/// look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(pub(crate) u64);

/// Bits of the hash in the slot of an item in memory.
pub(crate) const TAG_BITS: u32 = 20;

/// Bits of the hash in the slot of an item on disk.
pub(crate) const LONG_TAG_BITS: u32 = 24;

/// The lowest bits of the hash: the partition of the key, if the cache has
/// [partitions](crate::Options::partitions).
const PARTITION_BITS: u32 = 14;

impl KeyHash {
    /// Returns the hash as a number, for files.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// Returns the hash that [`to_u64`](Self::to_u64) returned as a number.
    #[must_use]
    pub fn from_u64(hash: u64) -> Self {
        Self(hash)
    }

    /// Returns the hash of a key in a cache with this [seed](crate::Options::seed): XXH3-64.
    #[inline]
    #[must_use]
    pub fn of(key: &[u8], seed: u64) -> Self {
        Self(xxh3_64_with_seed(key, seed))
    }

    /// The number of partitions of a cache with [partitions](crate::Options::partitions).
    pub const PARTITIONS: usize = 1 << PARTITION_BITS;

    /// Returns this hash with its 14 lowest bits replaced by those of a partition.
    #[inline]
    #[must_use]
    pub fn in_partition(self, partition: u16) -> Self {
        let mask = (1 << PARTITION_BITS) - 1;
        Self(self.0 & !mask | u64::from(partition) & mask)
    }

    /// Returns the partition of the key, in a cache with
    /// [partitions](crate::Options::partitions).
    #[inline]
    #[must_use]
    pub fn partition(self) -> u16 {
        (self.0 & ((1 << PARTITION_BITS) - 1)) as u16
    }

    /// Returns the bits that do not depend on the partition.
    #[inline]
    pub(crate) fn without_partition(self) -> u64 {
        self.0 >> PARTITION_BITS
    }

    /// Returns the smallest hash with this prefix of `bits` bits, or `None` if the prefix has more
    /// bits.
    pub(crate) fn with_prefix(bits: u32, prefix: u64) -> Option<Self> {
        (prefix >> bits == 0).then(|| Self(prefix << (63 - bits) << 1))
    }

    /// Returns the first `bits` bits, which select the table of the key. They are at most 31.
    #[inline]
    pub(crate) fn prefix(self, bits: u32) -> u32 {
        (self.0 >> 1 >> (63 - bits)) as u32
    }

    /// Returns the tag: the bits after the prefix of `prefix_bits` bits. The tag determines the
    /// position in the table, so that a table can grow without reading keys.
    #[inline]
    pub(crate) fn tag(self, prefix_bits: u32) -> u32 {
        (self.0 >> (64 - TAG_BITS - prefix_bits)) as u32 & ((1 << TAG_BITS) - 1)
    }

    /// Returns the long tag: the tag and the bits that follow it.
    #[inline]
    pub(crate) fn long_tag(self, prefix_bits: u32) -> u32 {
        (self.0 >> (64 - LONG_TAG_BITS - prefix_bits)) as u32 & ((1 << LONG_TAG_BITS) - 1)
    }

    /// Returns this hash with another long tag, and zeros after it.
    pub(crate) fn with_long_tag(self, prefix_bits: u32, long_tag: u32) -> Self {
        let prefix = u64::from(self.prefix(prefix_bits));
        Self((prefix << LONG_TAG_BITS | u64::from(long_tag)) << (64 - LONG_TAG_BITS - prefix_bits))
    }

    /// Returns this hash with another tag, and zeros after it.
    pub(crate) fn with_tag(self, prefix_bits: u32, tag: u32) -> Self {
        let prefix = u64::from(self.prefix(prefix_bits));
        Self((prefix << TAG_BITS | u64::from(tag)) << (64 - TAG_BITS - prefix_bits))
    }
}
