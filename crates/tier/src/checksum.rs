//! Checksums: XXH3-64 with a seed. No other module calls the library.

use std::hash::Hasher;
use twox_hash::XxHash3_64;

/// Returns the checksum of `bytes`.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// A checksum of bytes that are not contiguous in memory.
pub(crate) struct Checksum(XxHash3_64);

impl Checksum {
    /// Begins a checksum with a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(XxHash3_64::with_seed(seed))
    }

    /// Adds bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// Returns the checksum of all bytes that were added.
    pub(crate) fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_testing::random;
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    #[test]
    fn checksums_are_those_of_another_implementation() {
        let all = random::bytes(1, 20_000);
        for len in (0..1200).chain([4088, 4096, 16_000, 20_000]) {
            let (bytes, seed) = (&all[..len], len as u64 ^ 0xD1B5_4A32_D192_ED03);
            assert_eq!(checksum(bytes, seed), xxh3_64_with_seed(bytes, seed), "{len} bytes");
            let mut parts = Checksum::new(seed);
            for part in bytes.chunks(100) {
                parts.add(part);
            }
            assert_eq!(parts.finish(), checksum(bytes, seed), "{len} bytes in parts");
        }
    }
}
