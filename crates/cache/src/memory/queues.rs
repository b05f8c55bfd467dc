//! The order in which segments are reclaimed: two queues.
//!
//! What is in a queue may be over: whoever takes it out sees that by its life.

use crate::memory::meta::{Queue, Segment};
use crate::memory::segments::Segments;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

impl Segments {
    /// The oldest segment of a queue, which leaves it.
    pub(crate) fn pop(&self, queue: Queue) -> Option<Segment> {
        let mut shared = self.lock();
        let queue = match queue {
            Queue::Small => &mut shared.small,
            Queue::Main => &mut shared.main,
        };
        loop {
            let segment = queue.pop_front()?;
            if self.lives(segment) {
                return Some(segment);
            }
        }
    }

    /// Puts a segment back, as the oldest of a queue.
    pub(crate) fn push(&self, segment: Segment, queue: Queue) {
        let mut shared = self.lock();
        match queue {
            Queue::Small => shared.small.push_front(segment),
            Queue::Main => shared.main.push_front(segment),
        }
    }

    /// The ordinary sealed segment with the fewest live bytes, if those are so few, and the queue
    /// it leaves.
    pub(crate) fn pop_emptiest(&self, most_live: u32) -> Option<(Segment, Queue)> {
        let mut shared = self.lock();
        let small = shared.small.iter().map(|segment| (*segment, Queue::Small));
        let main = shared.main.iter().map(|segment| (*segment, Queue::Main));
        let movable = |segment: Segment| !self.is_large(segment.number) && self.lives(segment);
        let sealed = small.chain(main).filter(|(segment, _)| movable(*segment));
        let emptiest = sealed.min_by_key(|(segment, _)| self.live(segment.number))?;
        if self.live(emptiest.0.number) > most_live {
            return None;
        }
        shared.small.retain(|segment| *segment != emptiest.0);
        shared.main.retain(|segment| *segment != emptiest.0);
        Some(emptiest)
    }

    /// The large item of a segment that was taken out of a queue stays, as the newest of this one.
    pub(crate) fn requeue(&self, segment: Segment, queue: Queue) {
        let mut shared = self.lock();
        match queue {
            Queue::Small => shared.small.push_back(segment),
            Queue::Main => shared.main.push_back(segment),
        }
    }

    /// So many more items were evicted.
    pub(crate) fn add_evicted(&self, items: u64) {
        self.evicted.fetch_add(items, Ordering::Relaxed);
    }

    /// Evictions since the oldest segment of the main queue was opened, less those since the oldest
    /// of the small one was: what is evicted from the small queue and comes back within as many was
    /// asked for again sooner than what is oldest in the main one. Without end while that is empty.
    pub(crate) fn reach(&self) -> u64 {
        let shared = self.lock();
        let now = self.evicted.load(Ordering::Relaxed);
        let age = |queue: &VecDeque<Segment>| {
            let oldest = queue.iter().find(|segment| self.lives(**segment))?;
            let born = self.metas[oldest.number as usize].born.load(Ordering::Relaxed);
            Some(now.saturating_sub(born))
        };
        let main = age(&shared.main).unwrap_or(u64::MAX);
        main.saturating_sub(age(&shared.small).unwrap_or(0))
    }

    /// Bytes of the segments that wait in the two queues.
    pub(crate) fn queued(&self) -> (u64, u64) {
        let shared = self.lock();
        let weigh = |segments: &VecDeque<Segment>| {
            let living = segments.iter().filter(|segment| self.lives(**segment));
            living.map(|segment| self.weight(segment.number)).sum()
        };
        (weigh(&shared.small), weigh(&shared.main))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::Arena;
    use crate::memory::epoch::Epochs;

    /// What is overwritten again and again leaves segments that are over, and nothing is evicted.
    #[test]
    fn queues_do_not_grow_with_what_is_over() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        let (_, first) = segments.open(&epochs, 0, 0).expect("a segment");
        let arena = Arena::new(16 << 20, 0).expect("memory");
        for _ in 0..10_000 {
            let (segment, mut tail) = segments.open(&epochs, 0, 0).expect("a segment");
            arena.room(&mut tail, 10);
            segments.add_live(segment.number, 10, Some(7));
            segments.remove_live(&epochs, tail.place() - 10, 10);
            segments.seal(&epochs, segment, &tail, Queue::Small);
        }
        let shared = segments.lock();
        assert!(shared.small.len() + shared.expiring.len() < 1000);
        assert!(first.room() > 0);
    }
}
