//! The shape of the index: how many partitions, and how many lines in each.

use crate::layout::{limits, line};
use std::sync::atomic::{AtomicU64, Ordering};

/// A partition holds at most twice as many entries, so that its share of index and data stays in
/// the second-level cache while it is made.
const PARTITION_ENTRIES: u64 = 8192;

/// A partition's rows weigh at most about this much, since whoever writes them holds them all in
/// memory, and what they become.
const PARTITION_BYTES: u64 = 1 << 20;

/// However much rows weigh, a partition has at least as many entries: in a smaller one, chance
/// would overfill lines.
const PARTITION_ENTRIES_LEAST: u64 = 64;

/// Lines are sized for this many entries each, on average. At 9 of 14 slots, one line in 24
/// overflows, and about one key in 130 lies beyond its home line.
const LINE_ENTRIES: u64 = 9;

/// A partition by chance fuller than the others may fill its lines up to this many entries each, on
/// average. Only keys chosen to collide exceed it; such a file gets fewer, larger partitions.
const LINE_ENTRIES_MOST: u64 = 12;

/// The shape of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) partition_bits: u32,
    pub(crate) lines_per_partition: u32,
}

/// How many partitions, as a power of two, so many entries that weigh so much are divided into at
/// most.
pub(crate) fn partition_bits(entries: u64, weight: u64) -> u32 {
    let by_entries = (entries / PARTITION_ENTRIES).max(1).ilog2();
    let by_weight = weight.div_ceil(PARTITION_BYTES).max(1).next_power_of_two().ilog2();
    let most = (entries / PARTITION_ENTRIES_LEAST).max(1).ilog2();
    by_entries.max(by_weight.min(most)).min(limits::PARTITION_BITS)
}

/// Counts entries by the top bits of their hashes, from many threads.
pub(crate) struct Census {
    bits: u32,
    counts: Vec<AtomicU64>,
}

impl Census {
    /// A census fine enough for so many entries that weigh so much.
    pub(crate) fn new(entries: u64, weight: u64) -> Self {
        let bits = partition_bits(entries, weight);
        Self { bits, counts: (0..1_u64 << bits).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Counts the entries of hashes that come sorted.
    pub(crate) fn count(&self, hashes: impl Iterator<Item = u64>) {
        let mut run = (0, 0);
        for hash in hashes {
            let partition = ((hash >> 1) >> (63 - self.bits)) as usize;
            if run.0 != partition {
                self.counts[run.0].fetch_add(run.1, Ordering::Relaxed);
                run = (partition, 0);
            }
            run.1 += 1;
        }
        self.counts[run.0].fetch_add(run.1, Ordering::Relaxed);
    }

    /// The number of entries, and the shape of their index when they weigh so much. A function of
    /// the entries alone.
    pub(crate) fn shape(self, weight: u64) -> (u64, Shape) {
        let mut counts: Vec<u64> = self.counts.into_iter().map(AtomicU64::into_inner).collect();
        let entries: u64 = counts.iter().sum();
        let mut bits = self.bits;
        loop {
            let lines = entries.div_ceil(LINE_ENTRIES << bits).max(1);
            let fullest = counts.iter().max().copied().unwrap_or(0);
            let fits = fullest <= lines * LINE_ENTRIES_MOST;
            if bits == 0 || (bits <= partition_bits(entries, weight) && fits) {
                // One partition of few entries needs no room for chance.
                let few = bits == 0 && entries <= line::SLOTS as u64;
                let lines = if few { 1 } else { lines };
                let lines = u32::try_from(lines).unwrap_or(u32::MAX);
                return (entries, Shape { partition_bits: bits, lines_per_partition: lines });
            }
            counts = counts.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
            bits -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(hashes: impl Iterator<Item = u64>, most: u64) -> (u64, Shape) {
        let census = Census::new(most, 50 * most);
        census.count(hashes);
        census.shape(0)
    }

    #[test]
    fn the_shape_depends_on_the_entries_kept_and_not_on_the_rows_given() {
        let hashes = || (0..20_000_u64).map(|i| i * (u64::MAX / 20_000));
        assert_eq!(shape(hashes(), 20_000), shape(hashes(), 1_000_000));
        let (entries, shape) = shape(hashes(), 20_000);
        assert_eq!(entries, 20_000);
        assert_eq!(shape, Shape { partition_bits: 1, lines_per_partition: 1112 });
    }

    #[test]
    fn heavy_rows_make_more_partitions_and_never_tiny_ones() {
        assert_eq!(partition_bits(16_000, 50 * 16_000), 0);
        assert_eq!(partition_bits(16_000, 1000 * 16_000), 4);
        assert_eq!(partition_bits(128, 60_000 * 128), 1);
        assert_eq!(partition_bits(0, 0), 0);
        assert_eq!(partition_bits(u64::MAX, u64::MAX), limits::PARTITION_BITS);
    }

    #[test]
    fn keys_that_all_fall_into_one_partition_get_one_large_partition() {
        let (_, shape) = shape((0..100_000_u64).map(|i| i << 20), 100_000);
        assert_eq!(shape, Shape { partition_bits: 0, lines_per_partition: 11112 });
    }

    #[test]
    fn small_files_have_one_line() {
        for entries in [0, 1, 14] {
            let (_, shape) = shape((0..entries).map(|i| i << 59), entries);
            assert_eq!(shape, Shape { partition_bits: 0, lines_per_partition: 1 });
        }
    }
}
