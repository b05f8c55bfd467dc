//! A histogram of latencies.

/// Buckets of each power of two. The width of a bucket is at most 1/64 of its values.
const STEPS: usize = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const BUCKETS: usize = (65 - STEP_BITS as usize) * STEPS;

/// Counts of latencies in nanoseconds, with a relative error below 2 %.
pub(crate) struct Histogram(Vec<u64>);

impl Histogram {
    /// Creates an empty histogram.
    pub(crate) fn new() -> Self {
        Self(vec![0; BUCKETS])
    }

    /// Counts a latency.
    pub(crate) fn add(&mut self, nanoseconds: u64) {
        self.0[bucket(nanoseconds)] += 1;
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }

    /// Returns the smallest latency of the bucket that this share of all latencies reach or fall
    /// below; 0 if there are none.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.0.iter().sum();
        let mut sum = 0;
        let reaches = |count: &u64| {
            sum += count;
            sum as f64 >= share * total as f64
        };
        if total == 0 { 0 } else { self.0.iter().position(reaches).map_or(0, lowest) }
    }
}

fn bucket(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    let shift = bits.saturating_sub(STEP_BITS + 1);
    shift as usize * STEPS + (value >> shift) as usize
}

/// Returns the smallest value of a bucket.
fn lowest(bucket: usize) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    ((bucket - shift * STEPS) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for value in (0..1000).chain((10..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit])) {
            let at = bucket(value);
            assert!(at >= last, "{value}");
            assert!(lowest(at) <= value && value - lowest(at) <= value / 64, "{value}");
            last = at;
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_are_those_of_all_latencies() {
        let (mut even, mut odd) = (Histogram::new(), Histogram::new());
        for value in 1..=1000 {
            if value % 2 == 0 { even.add(value) } else { odd.add(value) }
        }
        even.merge(&odd);
        for (share, expected) in [(0.5, 500), (0.99, 990), (0.999, 999)] {
            let found = even.quantile(share);
            assert!(expected - found <= expected / 64, "{share}: {found}");
        }
        assert_eq!(Histogram::new().quantile(0.5), 0);
    }
}
