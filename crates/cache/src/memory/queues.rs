//! The eviction queues, which determine the order in which segments are reclaimed.
//!
//! Entries may be outdated: a segment that was retired stays in its queue until it is popped or
//! purged. Its generation shows that.

use crate::memory::meta::{Queue, Segment};
use crate::memory::segments::Segments;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

impl Segments {
    /// Removes the oldest segment of a queue and returns it.
    pub(crate) fn pop_front(&self, queue: Queue) -> Option<Segment> {
        let mut shared = self.lock();
        let queue = match queue {
            Queue::Small => &mut shared.small,
            Queue::Main => &mut shared.main,
        };
        loop {
            let segment = queue.pop_front()?;
            if self.is_current(segment) {
                return Some(segment);
            }
        }
    }

    /// Returns a segment to a queue, as the oldest.
    pub(crate) fn push_front(&self, segment: Segment, queue: Queue) {
        let mut shared = self.lock();
        match queue {
            Queue::Small => shared.small.push_front(segment),
            Queue::Main => shared.main.push_front(segment),
        }
    }

    /// Removes the ordinary segment with the fewest live bytes from its queue, and returns both.
    /// Returns `None` if all have more than `max_live` live bytes, or if moving items of those that
    /// have fewer frees nothing.
    pub(crate) fn pop_emptiest(&self, max_live: u32) -> Option<(Segment, Queue)> {
        let mut shared = self.lock();
        let small = shared.small.iter().map(|segment| (*segment, Queue::Small));
        let main = shared.main.iter().map(|segment| (*segment, Queue::Main));
        let movable = |segment: Segment| !self.is_large(segment.number) && self.is_current(segment);
        let sealed = small.chain(main).filter(|(segment, _)| {
            let live = self.live_bytes(segment.number);
            live <= max_live && movable(*segment) && self.frees_memory_if_moved(segment.number)
        });
        let emptiest = sealed.min_by_key(|(segment, _)| self.live_bytes(segment.number))?;
        shared.small.retain(|segment| *segment != emptiest.0);
        shared.main.retain(|segment| *segment != emptiest.0);
        Some(emptiest)
    }

    /// Returns whether memory becomes free when the items of a sealed segment are moved: items of
    /// it were removed, or it is at most half full. Otherwise the rest of the segment is too short
    /// for the next item, and is as long again wherever the items are moved to.
    fn frees_memory_if_moved(&self, number: u32) -> bool {
        let (live, used) = (self.live_bytes(number), self.used_bytes(number));
        live < used || live <= self.len() / 2
    }

    /// Adds a segment to a queue, as the newest. Large items stay in memory this way, as they are
    /// never copied.
    pub(crate) fn push_back(&self, segment: Segment, queue: Queue) {
        let mut shared = self.lock();
        match queue {
            Queue::Small => shared.small.push_back(segment),
            Queue::Main => shared.main.push_back(segment),
        }
    }

    /// Counts evicted items.
    pub(crate) fn add_evicted(&self, items: u64) {
        self.evictions.fetch_add(items, Ordering::Relaxed);
    }

    /// Returns the number of evictions within which a key must return to be stored in the main
    /// queue.
    ///
    /// It is the age of the oldest segment of the main queue less that of the small queue, both
    /// counted in evictions. A key that returns sooner is read more often than the oldest items of
    /// the main queue. The result is `u64::MAX` if the main queue is empty.
    pub(crate) fn promotion_window(&self) -> u64 {
        let shared = self.lock();
        let now = self.evictions.load(Ordering::Relaxed);
        let age = |queue: &VecDeque<Segment>| {
            let oldest = queue.iter().find(|segment| self.is_current(**segment))?;
            let evictions_at_open =
                self.metas[oldest.number as usize].evictions_at_open.load(Ordering::Relaxed);
            Some(now.saturating_sub(evictions_at_open))
        };
        let main = age(&shared.main).unwrap_or(u64::MAX);
        main.saturating_sub(age(&shared.small).unwrap_or(0))
    }

    /// Returns the bytes of the segments in the small and in the main queue.
    pub(crate) fn queued_bytes(&self) -> (u64, u64) {
        let shared = self.lock();
        let weigh = |segments: &VecDeque<Segment>| {
            let living = segments.iter().filter(|segment| self.is_current(**segment));
            living.map(|segment| self.charged_bytes(segment.number)).sum()
        };
        (weigh(&shared.small), weigh(&shared.main))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::Arena;
    use crate::memory::epoch::Epochs;

    /// Overwriting the same items again and again leaves retired segments, and nothing is evicted.
    #[test]
    fn queues_do_not_grow_with_outdated_entries() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        let (_, first) = segments.open(&epochs, 0, 0).expect("a segment");
        let arena = Arena::new(16 << 20, 0).expect("memory");
        for _ in 0..10_000 {
            let (segment, mut tail) = segments.open(&epochs, 0, 0).expect("a segment");
            arena.allocate(&mut tail, 10);
            segments.add_live(segment.number, 10, Some(7));
            segments.remove_live(&epochs, tail.address() - 10, 10);
            segments.seal(&epochs, segment, &tail, Queue::Small);
        }
        let shared = segments.lock();
        assert!(shared.small.len() + shared.expiring.len() < 1000);
        assert!(first.remaining() > 0);
    }
}
