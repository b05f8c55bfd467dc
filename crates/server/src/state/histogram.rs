//! Histograms of durations.

use super::counter::Counter;

/// Buckets for each power of two.
const BUCKETS_PER_OCTAVE: u64 = 4;
/// Shorter durations are in the first bucket.
const MIN_NS_LOG2: u32 = 6;
/// Longer durations, from about a minute on, are in the last bucket.
const MAX_NS_LOG2: u32 = 36;

/// The number of buckets.
pub(crate) const BUCKETS: usize =
    1 + (MAX_NS_LOG2 - MIN_NS_LOG2) as usize * BUCKETS_PER_OCTAVE as usize;

/// Counts of durations in buckets. The width of buckets doubles every fourth bucket. So a bucket is
/// at most a quarter as wide as the durations in it, and every power of two of nanoseconds is the
/// end of a bucket.
#[derive(Debug)]
pub(crate) struct Histogram([Counter; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl Histogram {
    /// Counts `count` durations of `ns` nanoseconds.
    #[inline]
    pub(crate) fn add(&self, ns: u64, count: u64) {
        self.0[bucket(ns)].add(count);
    }

    /// Returns the count of each bucket.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(Counter::get)
    }
}

/// Returns the bucket of a duration.
#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.min((1 << MAX_NS_LOG2) - 1);
    if ns < 1 << MIN_NS_LOG2 {
        return 0;
    }
    let log2 = ns.ilog2();
    // The two bits after the highest one.
    let part = (ns >> (log2 - BUCKETS_PER_OCTAVE.ilog2())) % BUCKETS_PER_OCTAVE;
    1 + ((log2 - MIN_NS_LOG2) * BUCKETS_PER_OCTAVE as u32) as usize + part as usize
}

/// Returns the end of a bucket, exclusive.
pub(crate) fn end_ns(bucket: usize) -> u64 {
    let (octave, part) = (bucket as u64 / BUCKETS_PER_OCTAVE, bucket as u64 % BUCKETS_PER_OCTAVE);
    ((BUCKETS_PER_OCTAVE + part) << (octave + u64::from(MIN_NS_LOG2))) / BUCKETS_PER_OCTAVE
}

/// Returns a quantile in nanoseconds: the end of the bucket that contains the duration below which
/// `of_thousand` thousandths of all durations are; 0 if there are none.
pub(crate) fn quantile_ns(counts: &[u64], of_thousand: u64) -> u64 {
    let total: u64 = counts.iter().sum();
    let rank = total.saturating_mul(of_thousand).div_ceil(1000).max(1);
    let mut below = 0;
    let bucket = counts.iter().position(|count| {
        below += count;
        below >= rank
    });
    bucket.map_or(0, end_ns)
}

/// Returns pairs for `LATENCY HISTOGRAM`: a power of two of nanoseconds from 1.024 µs on, in
/// microseconds, and the number of durations up to it. A power is left out if no durations are
/// between it and the previous one.
pub(crate) fn octaves(counts: &[u64]) -> Vec<(u64, u64)> {
    let (mut below, mut reported) = (0, 0);
    let mut octaves = Vec::new();
    for (bucket, count) in counts.iter().enumerate() {
        below += count;
        let end = end_ns(bucket);
        let last = bucket + 1 == counts.len();
        if below > reported && end >= 1024 && (end.is_power_of_two() || last) {
            // Redis reports the greatest duration that its histogram does not distinguish from the
            // power.
            octaves.push(((end + end / 128 - 1) / 1000, below));
            reported = below;
        }
    }
    octaves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_within_its_bucket() {
        for ns in (0..70_000).chain([1 << 30, (1 << 36) - 1]) {
            let bucket = bucket(ns);
            assert!(ns < end_ns(bucket), "{ns} beyond bucket {bucket}");
            assert!(bucket == 0 || ns >= end_ns(bucket - 1), "{ns} before bucket {bucket}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(end_ns(BUCKETS - 1), 1 << MAX_NS_LOG2);
    }

    #[test]
    fn quantiles_and_octaves() {
        let histogram = Histogram::default();
        histogram.add(100, 98);
        histogram.add(3_000, 1);
        histogram.add(40_000, 1);
        let counts: Vec<_> = histogram.counts().collect();
        assert_eq!(quantile_ns(&counts, 500), 112);
        assert_eq!(quantile_ns(&counts, 990), 3072);
        assert_eq!(quantile_ns(&counts, 1000), 40_960);
        assert_eq!(octaves(&counts), [(1, 98), (4, 99), (66, 100)]);
        assert_eq!(quantile_ns(&[], 500), 0);
    }
}
