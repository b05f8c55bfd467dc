//! Keys and values.

use nuthatch_bench::{Distribution, Draws, Random};

/// Bytes of a key.
pub(crate) const KEY_LEN: usize = 8;
/// The skew of gets: the probability of the key of rank r is proportional to 1 / r^0.99.
const ZIPF_EXPONENT: f64 = 0.99;
/// Keys and values are this many times as large as the memory.
const DATA_TO_MEMORY: u64 = 10;
/// Length of the random bytes that values are slices of.
const NOISE_LEN: usize = 1 << 20;
const NOISE_SEED: u64 = 2026;

/// Keys, and the value of each. Both follow from the number of the key.
pub(crate) struct Workload {
    pub(crate) keys: u32,
    pub(crate) value_len: usize,
    noise: Vec<u8>,
}

impl Workload {
    /// Creates keys and values for a system with this memory in bytes.
    pub(crate) fn new(memory: u64, value_len: usize) -> Self {
        let mut random = Random::new(NOISE_SEED);
        let words = (0..(NOISE_LEN + value_len).div_ceil(8)).map(|_| random.word().to_le_bytes());
        let noise = words.flatten().collect();
        Self { keys: keys(memory, value_len), value_len, noise }
    }

    /// Returns the numbers of all keys in random order, without a table in memory.
    pub(crate) fn in_random_order(&self) -> impl Iterator<Item = u32> {
        (0..self.keys).map(|at| scattered(at, self.keys))
    }

    /// Creates the generator of the ranks of the keys that a thread gets.
    pub(crate) fn draws(&self, thread: usize) -> Draws {
        Draws::new(Distribution::Zipf(ZIPF_EXPONENT), self.keys, thread as u64 + 1)
    }

    /// Returns the number of the key of a rank. It is the same for all threads.
    pub(crate) fn of_rank(&self, rank: u32) -> u32 {
        // Not in the order in which keys are stored at first.
        self.keys - 1 - scattered(scattered(rank, self.keys), self.keys)
    }

    /// Copies the value of a key to `value`.
    pub(crate) fn write_value(&self, number: u32, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&u64::from(number).to_le_bytes());
        value.extend_from_slice(self.rest(number));
    }

    /// Returns whether these bytes are the value of a key.
    pub(crate) fn is_value(&self, number: u32, bytes: &[u8]) -> bool {
        bytes.strip_prefix(&u64::from(number).to_le_bytes()) == Some(self.rest(number))
    }

    /// Returns the value of a key without its first bytes, which are the number of the key.
    fn rest(&self, number: u32) -> &[u8] {
        let at = Random::new(u64::from(number)).below(NOISE_LEN as u32) as usize;
        &self.noise[at..at + self.value_len - KEY_LEN]
    }
}

/// Returns the number of keys for a system with this memory in bytes.
pub(crate) fn keys(memory: u64, value_len: usize) -> u32 {
    let keys = memory * DATA_TO_MEMORY / (KEY_LEN + value_len) as u64;
    u32::try_from(keys).unwrap_or(u32::MAX)
}

/// Returns the number at a place of a fixed random order of the numbers below `count`. Invertible
/// steps modulo a power of two are repeated until the result is below `count`.
fn scattered(at: u32, count: u32) -> u32 {
    let bits = (u32::BITS - (count - 1).leading_zeros()).max(2);
    let mask = u32::MAX >> (u32::BITS - bits);
    let mut number = at;
    loop {
        for factor in [0x9E37_79B1, 0x85EB_CA6B, 0xC2B2_AE35_u32] {
            number = number.wrapping_mul(factor).wrapping_add(0x7F4A_7C15) & mask;
            number ^= number >> (bits / 2);
        }
        if number < count {
            return number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_place() {
        for count in [1, 2, 3, 100, 4096, 100_003] {
            let mut all: Vec<_> = (0..count).map(|at| scattered(at, count)).collect();
            let in_order = all.windows(2).filter(|pair| pair[0] < pair[1]).count();
            assert!(count < 4096 || (count as usize).abs_diff(in_order * 2) < count as usize / 20);
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn a_value_belongs_to_its_key() {
        for value_len in [8, 100, 10_240] {
            let workload = Workload::new(16 << 20, value_len);
            let mut value = Vec::new();
            for number in 0..100 {
                workload.write_value(number, &mut value);
                assert_eq!(value.len(), value_len);
                assert!(workload.is_value(number, &value));
                assert!(!workload.is_value(number + 1, &value));
                assert!(!workload.is_value(number, &value[..value_len - 1]));
            }
            let bytes = u64::from(workload.keys) * (value_len + KEY_LEN) as u64;
            assert!((160 << 20) - bytes < 20_000);
        }
    }
}
