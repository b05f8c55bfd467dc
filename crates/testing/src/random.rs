//! Pseudo-random numbers and bytes for tests: the same in each run, and on each machine.

/// A generator of pseudo-random numbers (splitmix64).
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. Different seeds yield unrelated numbers, even if the seeds are
    /// adjacent.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number. All 64 bits are random.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    ///
    /// # Panics
    ///
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }
}

/// Returns `len` pseudo-random bytes, which do not compress. Different seeds yield unrelated bytes;
/// the bytes of a shorter length are a prefix of those of a longer one.
#[must_use]
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(len.next_multiple_of(8));
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the first numbers of the reference implementation in the paper.
    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let first = [(); 3].map(|()| random.next_u64());
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, expected);
    }

    #[test]
    fn numbers_are_below_the_end() {
        let mut random = Random::new(0);
        let mut has_seen = [false; 5];
        for _ in 0..200 {
            has_seen[random.below(5) as usize] = true;
        }
        assert_eq!(has_seen, [true; 5]);
    }

    #[test]
    fn bytes_of_a_shorter_length_are_a_prefix() {
        let long = bytes(7, 1000);
        for len in [0, 1, 7, 8, 9, 999] {
            assert_eq!(bytes(7, len), long[..len]);
        }
        assert_ne!(bytes(8, 1000), long);
    }
}
