//! Which addresses are free for large items: stretches of granules, each as long as an ordinary
//! segment.
//!
//! A large item gets the first stretch that is long enough, in the order of addresses, and what is
//! given back is joined with its neighbours. There are many more addresses than memory, so that one
//! is found whatever came and went before: with first-fit, that never takes more than memory times
//! the logarithm of the ratio of the longest to the shortest (Robson, "Worst case fragmentation of
//! first fit and best fit storage allocation strategies", 1977).

use std::collections::BTreeMap;

/// Free stretches: where each starts, and how long it is. No two touch.
#[derive(Debug, Default)]
pub(crate) struct Runs(BTreeMap<u32, u32>);

impl Runs {
    /// So many granules, from this one on.
    pub(crate) fn new(first: u32, count: u32) -> Self {
        let mut runs = Self::default();
        if count > 0 {
            runs.give_back(first, count);
        }
        runs
    }

    /// Takes the first stretch of so many granules.
    pub(crate) fn take(&mut self, count: u32) -> Option<u32> {
        let (start, len) = self.0.iter().find(|(_, len)| **len >= count)?;
        let (start, len) = (*start, *len);
        self.0.remove(&start);
        if len > count {
            self.0.insert(start + count, len - count);
        }
        Some(start)
    }

    /// These granules are free again.
    pub(crate) fn give_back(&mut self, start: u32, count: u32) {
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
    fn the_first_that_fits_is_taken_and_neighbours_join() {
        let mut runs = Runs::new(10, 100);
        assert_eq!([5, 10, 5].map(|count| runs.take(count)), [Some(10), Some(15), Some(25)]);
        runs.give_back(15, 3);
        assert_eq!(runs.take(4), Some(30));
        runs.give_back(18, 7);
        assert_eq!(runs.take(10), Some(15));
        assert_eq!(runs.take(77), None);
        assert_eq!(runs.take(76), Some(34));
        assert_eq!(runs.take(1), None);
        for (start, count) in [(34, 76), (10, 5), (25, 5), (15, 10), (30, 4)] {
            runs.give_back(start, count);
        }
        assert_eq!(runs.0.into_iter().collect::<Vec<_>>(), [(10, 100)]);
        assert_eq!(Runs::new(7, 0).take(1), None);
    }
}
