//! Free addresses for large items: runs of granules. A granule is as long as an ordinary segment.
//!
//! Allocation is first-fit in the order of addresses, and adjacent free runs are merged. There are
//! many more addresses than memory, so that fragmentation never prevents an allocation: first-fit
//! needs at most memory times the logarithm of the ratio of the longest to the shortest allocation
//! (Robson, "Worst case fragmentation of first fit and best fit storage allocation strategies",
//! 1977).

use std::collections::BTreeMap;

/// Free runs, from first granule to number of granules. No two are adjacent.
#[derive(Debug, Default)]
pub(crate) struct FreeRuns(BTreeMap<u32, u32>);

impl FreeRuns {
    /// Creates one free run of `count` granules from `first` on.
    pub(crate) fn new(first: u32, count: u32) -> Self {
        let mut runs = Self::default();
        if count > 0 {
            runs.free(first, count);
        }
        runs
    }

    /// Allocates the first run of `count` granules. Returns its first granule.
    pub(crate) fn allocate(&mut self, count: u32) -> Option<u32> {
        let (start, len) = self.0.iter().find(|(_, len)| **len >= count)?;
        let (start, len) = (*start, *len);
        self.0.remove(&start);
        if len > count {
            self.0.insert(start + count, len - count);
        }
        Some(start)
    }

    /// Frees a run of granules and merges it with adjacent free ones.
    pub(crate) fn free(&mut self, start: u32, count: u32) {
        let (mut start, mut count) = (start, count);
        if let Some((before, len)) = self.0.range(..start).next_back().map(|(at, len)| (*at, *len))
            && before + len == start
        {
            self.0.remove(&before);
            (start, count) = (before, count + len);
        }
        if let Some(len) = self.0.remove(&(start + count)) {
            count += len;
        }
        self.0.insert(start, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocation_is_first_fit_and_neighbours_merge() {
        let mut runs = FreeRuns::new(10, 100);
        assert_eq!([5, 10, 5].map(|count| runs.allocate(count)), [Some(10), Some(15), Some(25)]);
        runs.free(15, 3);
        assert_eq!(runs.allocate(4), Some(30));
        runs.free(18, 7);
        assert_eq!(runs.allocate(10), Some(15));
        assert_eq!(runs.allocate(77), None);
        assert_eq!(runs.allocate(76), Some(34));
        assert_eq!(runs.allocate(1), None);
        for (start, count) in [(34, 76), (10, 5), (25, 5), (15, 10), (30, 4)] {
            runs.free(start, count);
        }
        assert_eq!(runs.0.into_iter().collect::<Vec<_>>(), [(10, 100)]);
        assert_eq!(FreeRuns::new(7, 0).allocate(1), None);
    }
}
