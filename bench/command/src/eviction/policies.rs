//! Policies that are exact: what is there has an order, and the first in it goes.

use super::trace::Trace;
use std::collections::BTreeSet;

/// In which order items go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Least recently used first.
    Lru,
    /// Least often used since it came first; of those, least recently used.
    Lfu,
}

impl Policy {
    /// Lookups that find nothing, when each is followed by storing what it did not find, in a cache
    /// for so many bytes of keys and values. `tick` is called now and then, with requests done.
    pub(crate) fn misses(self, trace: &Trace, capacity: u64, tick: impl Fn(usize)) -> u64 {
        let mut order = Order::new(trace, capacity);
        let mut misses = 0;
        for (at, item) in trace.requests.iter().enumerate() {
            let used = order.rank(*item).map_or(0, |(times, _)| times);
            let rank = if self == Self::Lfu { used + 1 } else { 0 };
            if order.remove(*item) {
                order.insert(*item, (rank, at as u32));
            } else {
                misses += 1;
                if order.make_room(*item) {
                    order.insert(*item, (rank, at as u32));
                }
            }
            count(at, &tick);
        }
        misses
    }
}

/// Requests from one tick to the next.
const TICK: usize = 1 << 14;

/// Tells of the requests done, if it is time to.
pub(crate) fn count(at: usize, tick: &impl Fn(usize)) {
    if at % TICK == TICK - 1 {
        tick(TICK);
    }
}

/// What a place in the order depends on: the least goes first.
pub(crate) type Rank = (u32, u32);

/// Items in a cache, in the order in which they go.
#[derive(Debug)]
pub(crate) struct Order<'t> {
    trace: &'t Trace,
    left: u64,
    capacity: u64,
    sorted: BTreeSet<(Rank, u32)>,
    ranks: Vec<Option<Rank>>,
}

impl<'t> Order<'t> {
    pub(crate) fn new(trace: &'t Trace, capacity: u64) -> Self {
        let ranks = vec![None; trace.items.len()];
        Self { trace, left: capacity, capacity, sorted: BTreeSet::new(), ranks }
    }

    /// The rank of an item that is there.
    pub(crate) fn rank(&self, item: u32) -> Option<Rank> {
        self.ranks[item as usize]
    }

    /// Takes an item out; whether it was there.
    pub(crate) fn remove(&mut self, item: u32) -> bool {
        let Some(rank) = self.ranks[item as usize].take() else { return false };
        self.sorted.remove(&(rank, item));
        self.left += self.trace.items.bytes(item);
        true
    }

    /// Puts an item in for which there is room.
    pub(crate) fn insert(&mut self, item: u32, rank: Rank) {
        self.left -= self.trace.items.bytes(item);
        self.ranks[item as usize] = Some(rank);
        self.sorted.insert((rank, item));
    }

    /// The item that goes first.
    pub(crate) fn first(&self) -> Option<(Rank, u32)> {
        self.sorted.first().copied()
    }

    pub(crate) fn has_room(&self, item: u32) -> bool {
        self.trace.items.bytes(item) <= self.left
    }

    /// Takes out what goes first until there is room for an item; false if there never is.
    fn make_room(&mut self, item: u32) -> bool {
        if self.trace.items.bytes(item) > self.capacity {
            return false;
        }
        while !self.has_room(item) {
            let Some((_, first)) = self.first() else { return false };
            self.remove(first);
        }
        true
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::trace::Recorder;
    use super::*;

    /// A trace of letters: capitals are items of 3 bytes, others of one.
    pub(crate) fn letters(text: &str) -> Trace {
        let mut recorder = Recorder::default();
        for letter in text.bytes() {
            let value_bytes = if letter.is_ascii_uppercase() { 2 } else { 0 };
            assert!(recorder.push(&[letter], value_bytes));
        }
        recorder.finish(text.to_owned())
    }

    fn misses(policy: Policy, text: &str, capacity: u64) -> u64 {
        policy.misses(&letters(text), capacity, |_| {})
    }

    #[test]
    fn lru_forgets_what_was_not_asked_for_longest() {
        // a b c | a goes for d | b goes for a | ...
        for (text, capacity, expected) in [
            ("", 3, 0),
            ("aaaa", 1, 1),
            ("abcabc", 3, 3),
            ("abcdabcd", 3, 8),
            ("abcadabc", 3, 6),
            ("abab", 0, 4),
            // A goes for all three: A, b, c, d miss; then A again; then b.
            ("AbcdAb", 3, 6),
            // b and c go for A, one of them only where there is room for four.
            ("bcAc", 4, 3),
            // What never fits is never there, and moves nothing.
            ("abAabA", 2, 4),
        ] {
            assert_eq!(misses(Policy::Lru, text, capacity), expected, "{text} in {capacity}");
        }
    }

    #[test]
    fn lfu_forgets_what_was_asked_for_least() {
        for (text, capacity, expected) in [
            ("aaaa", 1, 1),
            // b goes for c, c for b, as a was asked for twice.
            ("aabcbca", 2, 5),
            ("abcdabcd", 3, 8),
            // A second life begins at one: c goes for b, b for c.
            ("abbaacbc", 2, 5),
            // Both asked for once: the one asked for longest ago goes.
            ("abca", 2, 4),
        ] {
            assert_eq!(misses(Policy::Lfu, text, capacity), expected, "{text} in {capacity}");
        }
    }
}
