//! The one hash of the format: XXH3-64, seeded for keys, unseeded for checksums.

use crate::layout::line;
use xxhash_rust::xxh3;

/// Whether the key has 9 to 16 bytes: then its hash and its comparison are two loads each.
#[inline(always)]
pub(crate) fn is_common_len(key: &[u8]) -> bool {
    (9..=16).contains(&key.len())
}

/// A key's hash, and which part of it decides what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(pub(crate) u64);

impl KeyHash {
    /// Keys of the commonest length are hashed in line: a call costs as much as the hash, and the
    /// paths for other lengths would only take registers from the lookup.
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

    /// The home line: the hash as a fraction of all lines, so lines are in hash order.
    #[inline(always)]
    pub(crate) fn line(self, lines: u64) -> u64 {
        ((u128::from(self.0) * u128::from(lines)) >> 64) as u64
    }

    /// The top bits are the partition. It is also the home line's, since every partition has the
    /// same number of lines.
    pub(crate) fn partition(self, partition_bits: u32) -> u64 {
        // A shift by 64 overflows, so zero bits take the long way round.
        (self.0 >> 1) >> (63 - partition_bits)
    }

    /// What the slot of a key holds: 15 bits, and one that tells it from a slot not in use.
    #[inline(always)]
    pub(crate) fn fingerprint(self) -> u16 {
        self.0 as u16 | line::IN_USE
    }

    /// The bit that a full line sets for keys of this class that had to move on.
    #[inline(always)]
    pub(crate) fn overflow_bit(self) -> u8 {
        1 << ((self.0 >> line::CLASS_BIT) & (line::CLASSES - 1))
    }
}

/// Checksum of a section, or of one partition's part of it.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxh3::xxh3_64(bytes)
}

/// A checksum over bytes that arrive in pieces.
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
