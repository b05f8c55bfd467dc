//! Random numbers that are the same in every run.

/// `SplitMix64`: one word of state, good enough to choose keys with.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that this seed decides.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any of all words.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, each as likely as the other but for less than one in 2^32.
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.word() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// At least zero and less than one.
    pub fn fraction(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        (self.word() >> 11) as f64 * STEP
    }
}
