//! The eviction queues, which determine the order in which segments are reclaimed. All operations
//! take the same time however many segments there are.

use crate::memory::list::List;
use crate::memory::meta::{Queue, Segment};
use crate::memory::segments::{Segments, Shared};
use std::sync::atomic::Ordering;

/// Where in a queue a segment is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As the oldest segment.
    Oldest,
    /// As the newest segment.
    Newest,
}

impl Segments {
    /// Adds a sealed segment, unless it was retired. Large items stay in memory this way, as they
    /// are never copied.
    pub(crate) fn push(&self, segment: Segment, queue: Queue, end: End) {
        let mut shared = self.lock();
        if self.is_current(segment) {
            self.link(&mut shared, segment.number, queue, end);
        }
    }

    /// Removes the oldest segment of a queue and returns it.
    pub(crate) fn pop_oldest(&self, queue: Queue) -> Option<Segment> {
        let mut shared = self.lock();
        let number = shared.queues[queue as usize].first()?;
        self.unlink(&mut shared, number);
        Some(self.current(number))
    }

    /// Removes the ordinary segment with the fewest live bytes from its queue, to a sixteenth of a
    /// segment, and returns both. Returns `None` if all have more than `max_sixteenths` of a
    /// segment, or if moving items of those that have fewer frees nothing.
    pub(crate) fn pop_emptiest(&self, max_sixteenths: usize) -> Option<(Segment, Queue)> {
        let mut shared = self.lock();
        let number = shared.sparse[..=max_sixteenths].iter().find_map(List::first)?;
        let queue = self.metas[number as usize].queue()?;
        self.unlink(&mut shared, number);
        Some((self.current(number), queue))
    }

    /// Adds a segment to a queue.
    pub(super) fn link(&self, shared: &mut Shared, number: u32, queue: Queue, end: End) {
        let meta = &self.metas[number as usize];
        debug_assert!(meta.queue().is_none(), "a segment is in one queue at most");
        meta.set_queue(Some(queue));
        let links = |number: u32| &self.metas[number as usize].queue_links;
        match end {
            End::Oldest => shared.queues[queue as usize].push_front(number, links),
            End::Newest => shared.queues[queue as usize].push_back(number, links),
        }
        shared.queued_bytes[queue as usize] += self.charged_bytes(number);
        self.list_if_sparse(shared, number);
    }

    /// Removes a segment from its queue, if it is in one.
    pub(super) fn unlink(&self, shared: &mut Shared, number: u32) {
        let meta = &self.metas[number as usize];
        let Some(queue) = meta.queue() else { return };
        meta.set_queue(None);
        let links = |number: u32| &self.metas[number as usize].queue_links;
        shared.queues[queue as usize].remove(number, links);
        shared.queued_bytes[queue as usize] -= self.charged_bytes(number);
        self.unlist_sparse(shared, number);
    }

    /// Returns a segment in its current generation.
    fn current(&self, number: u32) -> Segment {
        let generation = self.metas[number as usize].generation.load(Ordering::Acquire);
        Segment { number, generation }
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
        let age = |queue: Queue| {
            let oldest = shared.queues[queue as usize].first()?;
            let opened = &self.metas[oldest as usize].evictions_at_open;
            Some(now.saturating_sub(opened.load(Ordering::Relaxed)))
        };
        let main = age(Queue::Main).unwrap_or(u64::MAX);
        main.saturating_sub(age(Queue::Small).unwrap_or(0))
    }

    /// Returns the bytes of the segments in the small and in the main queue.
    pub(crate) fn queued_bytes(&self) -> (u64, u64) {
        let [small, main] = self.lock().queued_bytes;
        (small, main)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::Arena;
    use crate::memory::epoch::Epochs;
    use std::time::Instant;

    /// Opens a segment, appends one item of `len` bytes, and seals it.
    fn sealed(segments: &Segments, epochs: &Epochs, len: usize, queue: Queue) -> (Segment, u64) {
        let arena = Arena::new(16 << 20, 0).expect("memory");
        let (segment, mut tail) = segments.open(epochs, 0, 0).expect("a segment");
        let address = tail.address();
        arena.allocate(&mut tail, len);
        segments.add_live(segment.number, len, Some(7));
        segments.seal(epochs, segment, &tail, queue);
        (segment, address)
    }

    /// Overwriting the same items again and again leaves retired segments, and nothing is evicted.
    #[test]
    fn queues_do_not_contain_retired_segments() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        for _ in 0..10_000 {
            let (_, address) = sealed(&segments, &epochs, 10, Queue::Small);
            segments.remove_live(&epochs, address, 10);
        }
        assert_eq!(segments.pop_oldest(Queue::Small), None);
        assert_eq!(segments.pop_emptiest(14), None);
        assert_eq!(segments.queued_bytes(), (0, 0));
        assert!(segments.lock().expiring.len() < 1000);
    }

    #[test]
    fn the_emptiest_segment_is_found_whatever_its_queue() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        let len = segments.len() as usize;
        let [full, half, quarter] =
            [(len - len / 64, Queue::Small), (len / 2, Queue::Main), (len / 4, Queue::Small)]
                .map(|(bytes, queue)| sealed(&segments, &epochs, bytes, queue).0);
        let bytes = u64::from(segments.len());
        assert_eq!(segments.queued_bytes(), (2 * bytes, bytes));
        assert_eq!(segments.pop_emptiest(3), None);
        assert_eq!(segments.pop_emptiest(4), Some((quarter, Queue::Small)));
        assert_eq!(segments.pop_emptiest(7), None);
        assert_eq!(segments.pop_emptiest(14), Some((half, Queue::Main)));
        assert_eq!(segments.pop_emptiest(14), None, "moving a full segment frees nothing");
        assert_eq!(segments.queued_bytes(), (bytes, 0));
        segments.push(quarter, Queue::Small, End::Oldest);
        segments.push(half, Queue::Small, End::Newest);
        let order = [(); 4].map(|()| segments.pop_oldest(Queue::Small));
        assert_eq!(order, [Some(quarter), Some(full), Some(half), None]);
        assert_eq!(segments.pop_emptiest(14), None, "they are in no queue");
    }

    /// A full segment of which items are removed becomes a victim, and so does one with a short
    /// rest that no item fitted in.
    #[test]
    fn segments_become_sparse_as_items_are_removed() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        let len = segments.len() as usize;
        let (segment, address) = sealed(&segments, &epochs, len / 16 * 13, Queue::Main);
        assert_eq!(segments.pop_emptiest(14), None);
        segments.remove_live(&epochs, address, 1);
        assert_eq!(segments.pop_emptiest(12), None);
        assert_eq!(segments.pop_emptiest(13), Some((segment, Queue::Main)));
        segments.remove_live(&epochs, address, len / 2);
        segments.push(segment, Queue::Main, End::Oldest);
        assert_eq!(segments.pop_emptiest(5), Some((segment, Queue::Main)));
        assert!(segments.is_wasteful_beyond(0), "most of the only sealed segment is dead");
        segments.remove_live(&epochs, address, len / 16 * 13 - len / 2 - 1);
        assert!(!segments.is_wasteful_beyond(0), "no segment is sealed");
        segments.push(segment, Queue::Main, End::Oldest);
        assert_eq!(segments.pop_oldest(Queue::Main), None, "it was retired");
    }

    /// Prints the time of choosing a victim for budgets up to 1 TiB, of which only the state of the
    /// segments exists: `cargo test --release -p nuthatch-cache victims -- --nocapture`.
    #[test]
    fn victims_are_found_among_any_number_of_segments() {
        const CHOICES: u32 = 100_000;
        for gib in [1, 16, 128, 1024] {
            let segments = Segments::new(gib << 30, 0);
            let epochs = Epochs::new();
            let len = segments.len() as usize;
            let mut oldest = None;
            while let Some((segment, _)) = segments.open(&epochs, 0, 0) {
                // One of 16 is sparse.
                let live = if segment.number.is_multiple_of(16) { len / 8 } else { len - len / 8 };
                segments.add_live(segment.number, live, None);
                segments.enqueue(&epochs, segment, segments.len() - 4096, Queue::Small);
                oldest = oldest.or(Some(segment));
            }
            assert_eq!(segments.pop_oldest(Queue::Small), oldest);
            segments.push(oldest.expect("one"), Queue::Small, End::Oldest);
            let start = Instant::now();
            for _ in 0..CHOICES {
                let (sparse, queue) = segments.pop_emptiest(4).expect("a sparse one");
                assert!(sparse.number.is_multiple_of(16));
                segments.push(sparse, queue, End::Newest);
                let oldest = segments.pop_oldest(Queue::Small).expect("the oldest");
                segments.push(oldest, Queue::Small, End::Newest);
            }
            let ns = start.elapsed().as_nanos() / u128::from(2 * CHOICES);
            eprintln!("{gib} GiB, {} segments: {ns} ns for a victim", segments.count());
        }
    }
}
