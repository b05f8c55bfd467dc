//! Random keys that follow a distribution.

use crate::random::Random;
use std::fmt;
use std::str::FromStr;

/// The distribution of the keys of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All keys are equally likely.
    Uniform,
    /// The probability of the key of rank r is proportional to 1 / r^exponent.
    Zipf(f64),
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "uniform" {
            return Ok(Self::Uniform);
        }
        let exponent = text.strip_prefix("zipf:").and_then(|digits| digits.parse().ok());
        exponent
            .filter(|exponent: &f64| exponent.is_finite() && *exponent > 0.0)
            .map(Self::Zipf)
            .ok_or_else(|| "expected uniform, or zipf: and a number above 0".into())
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}

/// An endless sequence of random keys.
#[derive(Debug)]
pub struct Draws {
    keys: u32,
    /// The cumulative probability of each rank. Empty for a uniform distribution.
    chances: Vec<f64>,
    /// The key of each rank. The order is random, so that popular keys are not adjacent.
    by_rank: Vec<u32>,
    random: Random,
}

impl Draws {
    /// Creates a generator of keys below `keys`, which must be at least 1.
    pub fn new(distribution: Distribution, keys: u32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (chances, by_rank) = match distribution {
            Distribution::Uniform => (Vec::new(), Vec::new()),
            Distribution::Zipf(exponent) => {
                (zipf_chances(keys, exponent), scattered(keys, &mut random))
            }
        };
        Self { keys, chances, by_rank, random }
    }

    /// Returns the next key.
    pub fn draw(&mut self) -> u32 {
        let rank = self.rank();
        if self.by_rank.is_empty() { rank } else { self.by_rank[rank as usize] }
    }

    /// Returns the rank of the next key, counted from 0, without mapping it to a key.
    pub fn rank(&mut self) -> u32 {
        if self.chances.is_empty() {
            return self.random.below(self.keys);
        }
        let at = self.random.fraction();
        let rank = self.chances.partition_point(|chance| *chance <= at) as u32;
        // The last cumulative probability may be below 1 because of rounding.
        rank.min(self.keys - 1)
    }

    /// Returns true with probability `share`.
    pub fn is_one_of(&mut self, share: f64) -> bool {
        self.random.fraction() < share
    }
}

/// Returns the exact cumulative probabilities: partial sums of 1 / rank^exponent, divided by the
/// total.
fn zipf_chances(keys: u32, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let weight = |rank: u32| f64::from(rank).powf(-exponent);
    let mut chances: Vec<f64> = (1..=keys)
        .map(|rank| {
            sum += weight(rank);
            sum
        })
        .collect();
    for chance in &mut chances {
        *chance /= sum;
    }
    chances
}

fn scattered(keys: u32, random: &mut Random) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..keys).collect();
    for at in (1..keys).rev() {
        numbers.swap(at as usize, random.below(at + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 1_000_000;

    fn counts(draws: &mut Draws, keys: u32) -> Vec<u32> {
        let mut counts = vec![0; keys as usize];
        for _ in 0..DRAWS {
            counts[draws.draw() as usize] += 1;
        }
        counts
    }

    /// Asserts that a count is within five standard deviations of its expected value.
    fn assert_near(count: u32, chance: f64, what: &str) {
        let expected = chance * f64::from(DRAWS);
        let tolerance = 5.0 * (expected * (1.0 - chance)).sqrt();
        let off = (f64::from(count) - expected).abs();
        assert!(off <= tolerance, "{what}: {count}, expected {expected} within {tolerance}");
    }

    #[test]
    fn zipf_follows_its_law() {
        for (keys, exponent) in [(1000, 0.99), (100, 0.5), (50, 2.0)] {
            let mut draws = Draws::new(Distribution::Zipf(exponent), keys, 42);
            let counts = counts(&mut draws, keys);
            let sum: f64 = (1..=keys).map(|rank| 1.0 / f64::from(rank).powf(exponent)).sum();
            for (rank, key) in (1..).zip(&draws.by_rank) {
                let chance = 1.0 / f64::from(rank).powf(exponent) / sum;
                assert_near(counts[*key as usize], chance, &format!("{exponent} rank {rank}"));
            }
        }
    }

    #[test]
    fn uniform_keys_are_equally_likely() {
        let counts = counts(&mut Draws::new(Distribution::Uniform, 100, 42), 100);
        for (key, count) in counts.into_iter().enumerate() {
            assert_near(count, 0.01, &format!("key {key}"));
        }
    }

    #[test]
    fn popular_keys_are_not_adjacent() {
        let draws = Draws::new(Distribution::Zipf(0.99), 1_000_000, 42);
        let near = draws.by_rank[..100].windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 100);
        assert!(near.count() < 3, "{:?}", &draws.by_rank[..100]);
        let mut all = draws.by_rank.clone();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1_000_000), "each key has one rank");
    }

    #[test]
    fn distributions_round_trip() {
        for text in ["uniform", "zipf:0.99", "zipf:1"] {
            assert_eq!(text.parse::<Distribution>().map(|d| d.to_string()), Ok(text.into()));
        }
        for text in ["", "zipf", "zipf:", "zipf:-1", "zipf:nan", "zipf:inf", "zipf:0"] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}
