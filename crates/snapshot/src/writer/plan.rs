//! The shape of the index: the number of partitions, and of lines in each partition.

use crate::format::layout::{limits, line};
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum average number of entries of a partition; the maximum is less than twice as many. The
/// index and data of a partition then fit in the second-level cache while they are written.
const PARTITION_ENTRIES: u64 = 8192;

/// Target maximum weight of a partition's rows in bytes. A thread that writes a partition holds its
/// rows and its bytes in memory.
const MAX_PARTITION_WEIGHT: u64 = 1 << 20;

/// Minimum average number of entries of a partition of heavy rows. In smaller partitions, the
/// random distribution of keys would overfill lines.
const MIN_PARTITION_ENTRIES: u64 = 64;

/// Average number of entries of a line. At 9 of 14 slots, one line in 24 overflows, and about one
/// key in 130 is moved past its home line.
const MEAN_LINE_ENTRIES: u64 = 9;

/// Maximum average number of entries of a line in the fullest partition. Only keys chosen to
/// collide exceed it; such a file gets fewer, larger partitions.
const MAX_MEAN_LINE_ENTRIES: u64 = 12;

/// The shape of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) partition_bits: u32,
    pub(crate) lines_per_partition: u32,
}

/// Returns the binary logarithm of the maximum number of partitions for entries of this number and
/// total weight.
pub(crate) fn partition_bits(entries: u64, weight: u64) -> u32 {
    let by_entries = (entries / PARTITION_ENTRIES).max(1).ilog2();
    let by_weight = weight.div_ceil(MAX_PARTITION_WEIGHT).max(1).next_power_of_two().ilog2();
    let max_by_weight = (entries / MIN_PARTITION_ENTRIES).max(1).ilog2();
    by_entries.max(by_weight.min(max_by_weight)).min(limits::MAX_PARTITION_BITS)
}

/// A histogram of entries by the top bits of their hashes. Several threads count into it.
pub(crate) struct HashHistogram {
    bits: u32,
    counts: Vec<AtomicU64>,
}

impl HashHistogram {
    /// Returns an empty histogram for at most this number and total weight of entries.
    pub(crate) fn new(entries: u64, weight: u64) -> Self {
        let bits = partition_bits(entries, weight);
        Self { bits, counts: (0..1_u64 << bits).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Counts entries, by their sorted hashes.
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

    /// Returns the number of entries and the shape of their index, for the total weight of the
    /// entries. The result depends on the entries only.
    pub(crate) fn shape(self, weight: u64) -> (u64, Shape) {
        let mut counts: Vec<u64> = self.counts.into_iter().map(AtomicU64::into_inner).collect();
        let entries: u64 = counts.iter().sum();
        let mut bits = self.bits;
        loop {
            let lines = entries.div_ceil(MEAN_LINE_ENTRIES << bits).max(1);
            let fullest = counts.iter().max().copied().unwrap_or(0);
            let fits = fullest <= lines * MAX_MEAN_LINE_ENTRIES;
            if bits == 0 || (bits <= partition_bits(entries, weight) && fits) {
                // Entries of a single line are not distributed at random, so it can be full.
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

    fn shape(hashes: impl Iterator<Item = u64>, max_entries: u64) -> (u64, Shape) {
        let histogram = HashHistogram::new(max_entries, 50 * max_entries);
        histogram.count(hashes);
        histogram.shape(0)
    }

    #[test]
    fn the_shape_depends_on_the_entries_kept_and_not_on_the_rows_added() {
        let hashes = || (0..20_000_u64).map(|i| i * (u64::MAX / 20_000));
        assert_eq!(shape(hashes(), 20_000), shape(hashes(), 1_000_000));
        let (entries, shape) = shape(hashes(), 20_000);
        assert_eq!(entries, 20_000);
        assert_eq!(shape, Shape { partition_bits: 1, lines_per_partition: 1112 });
    }

    #[test]
    fn heavy_rows_make_more_partitions_but_not_tiny_ones() {
        assert_eq!(partition_bits(16_000, 50 * 16_000), 0);
        assert_eq!(partition_bits(16_000, 1000 * 16_000), 4);
        assert_eq!(partition_bits(128, 60_000 * 128), 1);
        assert_eq!(partition_bits(0, 0), 0);
        assert_eq!(partition_bits(u64::MAX, u64::MAX), limits::MAX_PARTITION_BITS);
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
