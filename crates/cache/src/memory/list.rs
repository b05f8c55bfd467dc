//! Lists of segments whose links are in the state of the segments, so that a segment is removed
//! from the middle of a list in constant time. Links change only under the lock of the segments.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of no segment.
const NONE: u32 = u32::MAX;

/// The neighbours of a segment in a list. They have no meaning while it is in none.
#[derive(Debug, Default)]
pub(crate) struct Links {
    previous: AtomicU32,
    next: AtomicU32,
}

/// A list of segments, from the oldest to the newest.
#[derive(Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl List {
    /// Returns the first segment.
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Adds a segment at the end. `links` returns the links of a segment.
    pub(crate) fn push_back<'l>(&mut self, number: u32, links: impl Fn(u32) -> &'l Links) {
        set(&links(number).previous, self.last);
        set(&links(number).next, NONE);
        match self.last {
            NONE => self.first = number,
            last => set(&links(last).next, number),
        }
        self.last = number;
    }

    /// Adds a segment at the start.
    pub(crate) fn push_front<'l>(&mut self, number: u32, links: impl Fn(u32) -> &'l Links) {
        set(&links(number).previous, NONE);
        set(&links(number).next, self.first);
        match self.first {
            NONE => self.last = number,
            first => set(&links(first).previous, number),
        }
        self.first = number;
    }

    /// Removes a segment of this list.
    pub(crate) fn remove<'l>(&mut self, number: u32, links: impl Fn(u32) -> &'l Links) {
        let (previous, next) = (get(&links(number).previous), get(&links(number).next));
        match previous {
            NONE => self.first = next,
            previous => set(&links(previous).next, next),
        }
        match next {
            NONE => self.last = previous,
            next => set(&links(next).previous, previous),
        }
    }
}

fn get(link: &AtomicU32) -> u32 {
    link.load(Ordering::Relaxed)
}

fn set(link: &AtomicU32, number: u32) {
    link.store(number, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_testing::random::Random;
    use std::collections::VecDeque;

    #[test]
    fn a_list_holds_what_a_deque_holds() {
        let all: Vec<_> = (0..40).map(|_| Links::default()).collect();
        let links = |number: u32| &all[number as usize];
        let (mut list, mut model) = (List::default(), VecDeque::new());
        let mut random = Random::new(7);
        for _ in 0..5000 {
            let number = random.below(40) as u32;
            if let Some(at) = model.iter().position(|one| *one == number) {
                model.remove(at);
                list.remove(number, links);
            } else if random.below(2) == 0 {
                model.push_back(number);
                list.push_back(number, links);
            } else {
                model.push_front(number);
                list.push_front(number, links);
            }
            let mut found = Vec::new();
            let mut at = list.first;
            while at != NONE {
                found.push(at);
                at = get(&links(at).next);
            }
            assert!(found.iter().eq(&model));
            assert_eq!(list.first(), model.front().copied());
            assert_eq!(list.last, model.back().copied().unwrap_or(NONE));
        }
    }
}
