//! Samples of values, within a limit of bytes.

use crate::random::Random;

/// A uniform random sample of a stream of values, within limits for count and bytes.
///
/// Source: Vitter, "Random sampling with a reservoir", ACM TOMS 1985, algorithm R. If the bytes are
/// used up before the count, long values are less probable than short ones.
#[derive(Debug)]
pub struct Reservoir {
    samples: Vec<Box<[u8]>>,
    bytes: usize,
    max_bytes: usize,
    /// A value did not fit. From then on, values only replace samples.
    is_full: bool,
    seen: u64,
    random: Random,
}

impl Reservoir {
    /// Creates an empty reservoir for at most `max_bytes` bytes. The same seed and values yield the
    /// same samples.
    pub fn new(max_bytes: usize, seed: u64) -> Self {
        let random = Random::new(seed);
        Self { samples: Vec::new(), bytes: 0, max_bytes, is_full: false, seen: 0, random }
    }

    /// Adds a value, or replaces a sample by it, or drops it. A value that is longer than the limit
    /// is dropped.
    pub fn offer(&mut self, value: &[u8]) {
        self.seen += 1;
        if value.len() > self.max_bytes {
            return;
        }
        self.is_full |= self.bytes + value.len() > self.max_bytes;
        if !self.is_full {
            self.bytes += value.len();
            self.samples.push(value.into());
            return;
        }
        let at = self.random.below(self.seen) as usize;
        if let Some(sample) = self.samples.get_mut(at) {
            let bytes = self.bytes - sample.len() + value.len();
            if bytes <= self.max_bytes {
                self.bytes = bytes;
                *sample = value.into();
            }
        }
    }

    /// Returns the number of values that were offered.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the length of all samples in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the samples.
    pub fn samples(&self) -> &[Box<[u8]>] {
        &self.samples
    }

    /// Returns the samples and begins again.
    pub fn take(&mut self) -> Vec<Box<[u8]>> {
        (self.bytes, self.seen, self.is_full) = (0, 0, false);
        std::mem::take(&mut self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservoir_keeps_its_limit_and_forgets_no_part_of_the_stream() {
        let mut reservoir = Reservoir::new(10_000, 7);
        for value in 0..10_000_u32 {
            reservoir.offer(&value.to_le_bytes().repeat(5));
            assert!(reservoir.bytes() <= 10_000);
        }
        assert_eq!((reservoir.samples().len(), reservoir.seen()), (500, 10_000));
        let mut quarters = [0; 4];
        for sample in reservoir.take() {
            let value = u32::from_le_bytes([sample[0], sample[1], sample[2], sample[3]]);
            quarters[value as usize / 2500] += 1;
        }
        assert!(quarters.iter().all(|count| (90..160).contains(count)), "{quarters:?}");
        assert_eq!((reservoir.samples().len(), reservoir.bytes(), reservoir.seen()), (0, 0, 0));
    }

    #[test]
    fn a_value_longer_than_the_limit_is_dropped() {
        let mut reservoir = Reservoir::new(10, 7);
        reservoir.offer(&[0; 11]);
        assert!(reservoir.samples().is_empty());
        reservoir.offer(&[0; 10]);
        reservoir.offer(&[1; 11]);
        assert_eq!(&*reservoir.samples()[0], [0; 10]);
    }
}
