//! Exact simulations of eviction policies: items are totally ordered, and the first is evicted.

use super::trace::Trace;
use std::collections::BTreeSet;

/// The eviction order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Evicts the least recently used item.
    Lru,
    /// Evicts the least frequently used item, and the least recently used among equals. An item's
    /// frequency starts again after its eviction.
    Lfu,
}

impl Policy {
    /// Returns the number of misses of a cache with this capacity, in bytes of keys and values.
    /// Each miss stores the item. `tick` receives the number of completed requests in steps of
    /// [`TICK`].
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

/// Requests between two calls of `tick`.
const TICK: usize = 1 << 14;

/// Calls `tick` after every [`TICK`] requests.
pub(crate) fn count(at: usize, tick: &impl Fn(usize)) {
    if at % TICK == TICK - 1 {
        tick(TICK);
    }
}

/// The rank of an item. The item with the lowest rank is evicted first.
pub(crate) type Rank = (u32, u32);

/// The items of a cache in eviction order.
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

    /// Returns the rank of an item, or `None` if the item is absent.
    pub(crate) fn rank(&self, item: u32) -> Option<Rank> {
        self.ranks[item as usize]
    }

    /// Removes an item. Returns whether it was present.
    pub(crate) fn remove(&mut self, item: u32) -> bool {
        let Some(rank) = self.ranks[item as usize].take() else { return false };
        self.sorted.remove(&(rank, item));
        self.left += self.trace.items.bytes(item);
        true
    }

    /// Inserts an item. The caller makes room for it first.
    pub(crate) fn insert(&mut self, item: u32, rank: Rank) {
        self.left -= self.trace.items.bytes(item);
        self.ranks[item as usize] = Some(rank);
        self.sorted.insert((rank, item));
    }

    /// Returns the next item to evict, with its rank.
    pub(crate) fn first(&self) -> Option<(Rank, u32)> {
        self.sorted.first().copied()
    }

    pub(crate) fn has_room(&self, item: u32) -> bool {
        self.trace.items.bytes(item) <= self.left
    }

    /// Evicts items until `item` fits. Returns false if it is larger than the capacity.
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

    /// Returns a trace of one request per letter. Uppercase letters are items of 3 bytes, lowercase
    /// letters items of 1 byte.
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
    fn lru_evicts_the_least_recently_used_item() {
        // "abcadabc": d evicts a, then a evicts b, and so on.
        for (text, capacity, expected) in [
            ("", 3, 0),
            ("aaaa", 1, 1),
            ("abcabc", 3, 3),
            ("abcdabcd", 3, 8),
            ("abcadabc", 3, 6),
            ("abab", 0, 4),
            // A evicts all three. A, b, c and d miss first, then A and b again.
            ("AbcdAb", 3, 6),
            // With a capacity of four, A evicts only b.
            ("bcAc", 4, 3),
            // An item larger than the capacity is never stored and evicts nothing.
            ("abAabA", 2, 4),
        ] {
            assert_eq!(misses(Policy::Lru, text, capacity), expected, "{text} in {capacity}");
        }
    }

    #[test]
    fn lfu_evicts_the_least_frequently_used_item() {
        for (text, capacity, expected) in [
            ("aaaa", 1, 1),
            // c evicts b and b evicts c, since a was requested twice.
            ("aabcbca", 2, 5),
            ("abcdabcd", 3, 8),
            // A reinserted item starts at frequency one: b evicts c, then c evicts b.
            ("abbaacbc", 2, 5),
            // Both were requested once. The one that was requested earlier is evicted.
            ("abca", 2, 4),
        ] {
            assert_eq!(misses(Policy::Lfu, text, capacity), expected, "{text} in {capacity}");
        }
    }
}
