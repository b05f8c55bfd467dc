//! Pseudo-random numbers that are the same in every run.

/// The seed of all runs.
pub(crate) const SEED: u64 = 2026;

/// A `SplitMix64` generator. Its state is one word, and its quality suffices to select keys.
///
/// Not that of `nuthatch-testing`, a dev-dependency: the workloads of published figures follow from
/// these numbers and from how [`below`](Self::below) scales them.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number. All 64 bits are random.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`. The probabilities differ by less than 1 in 2^32.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.word() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Returns a number of at least 0 and less than 1.
    pub fn fraction(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.word() >> 11) as f64 * STEP
    }
}
