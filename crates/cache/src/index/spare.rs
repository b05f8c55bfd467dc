//! Spare pages of the index: pages that no table uses.

use crate::memory::arena::INDEX_PAGE_LEN;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Minimum number of spare pages, so that tables of several sessions can grow and split at the same
/// time.
const MIN_SPARE_PAGES: usize = 128;

/// Pages that no table uses. They contain anything.
#[derive(Default)]
pub(super) struct SparePages {
    pages: Mutex<Vec<u32>>,
    /// Number of spare pages. Changes only under their lock; every write reads it without a lock.
    count: AtomicUsize,
}

impl SparePages {
    /// Returns whether there are enough spare pages.
    #[inline]
    pub(super) fn are_enough(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= MIN_SPARE_PAGES
    }

    /// Returns whether there are no spare pages.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns the number of spare pages.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Adds the pages of a segment. The first page of the arena is left out, so that no item has
    /// address 0.
    pub(super) fn add_segment(&self, start: u64, len: u64) {
        let first = (start / INDEX_PAGE_LEN as u64).max(1) as u32;
        let end = ((start + len) / INDEX_PAGE_LEN as u64) as u32;
        self.change(|pages| pages.extend((first..end).rev()));
    }

    /// Adds pages that a table has used.
    pub(super) fn add(&self, freed: &[u32]) {
        self.change(|pages| pages.extend_from_slice(freed));
    }

    /// Takes `count` pages, or none if there are fewer.
    pub(super) fn take(&self, count: usize) -> Option<Vec<u32>> {
        self.change(|pages| {
            let keep = pages.len().checked_sub(count)?;
            Some(pages.split_off(keep))
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut Vec<u32>) -> R) -> R {
        let mut pages = self.lock();
        let result = change(&mut pages);
        self.count.store(pages.len(), Ordering::Relaxed);
        result
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken_together_or_not_at_all() {
        let spare = SparePages::default();
        assert!(!spare.are_enough());
        assert_eq!(spare.take(0), Some(Vec::new()));
        spare.add_segment(0, 4 * INDEX_PAGE_LEN as u64);
        assert_eq!(spare.take(4), None, "page 0 is left out");
        assert_eq!(spare.take(2), Some(vec![2, 1]));
        spare.add(&[7]);
        assert_eq!(spare.take(2), Some(vec![3, 7]));
        spare.add_segment(1 << 20, 128 * INDEX_PAGE_LEN as u64);
        assert!(spare.are_enough());
    }
}
