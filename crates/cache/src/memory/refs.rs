//! Counted references, which keep segments beyond an epoch guard.

use crate::memory::epoch::Epochs;
use crate::memory::meta::{SEALED, SegmentRef};
use crate::memory::segments::Segments;
use std::sync::atomic::Ordering;

impl Segments {
    /// Records that the item of a large segment was removed, so that only counted references keep
    /// its memory.
    #[cold]
    pub(crate) fn note_retained(&self, number: u32) {
        let meta = &self.metas[number as usize];
        if !meta.is_retained.swap(true, Ordering::SeqCst) {
            self.retained_bytes.fetch_add(self.charged_bytes(number), Ordering::Relaxed);
        }
        // The last reference may have ended meanwhile.
        if meta.live.load(Ordering::SeqCst) & !SEALED == 0 {
            self.note_released(number);
        }
    }

    /// Subtracts the bytes that [`note_retained`](Self::note_retained) added, if it added any.
    fn note_released(&self, number: u32) {
        if self.metas[number as usize].is_retained.swap(false, Ordering::SeqCst) {
            self.retained_bytes.fetch_sub(self.charged_bytes(number), Ordering::Relaxed);
        }
    }

    /// Adds a reference to a segment. The caller must have a guard or another reference under which
    /// it can access an item of the segment.
    pub(crate) fn acquire_ref(&self, number: u32) -> SegmentRef {
        self.metas[number as usize].live.fetch_add(1, Ordering::Relaxed);
        SegmentRef::of(number)
    }

    /// Ends a reference. The last one retires the segment if it is sealed and has no items.
    pub(crate) fn release_ref(&self, epochs: &Epochs, segment_ref: &SegmentRef) {
        let number = segment_ref.number();
        let before = self.metas[number as usize].live.fetch_sub(1, Ordering::AcqRel);
        if before == SEALED | 1 {
            if self.is_large(number) {
                self.note_released(number);
            }
            self.retire(epochs, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::epoch::Epochs;
    use crate::memory::meta::Queue;
    use crate::memory::segments::Segments;

    /// References to a retired segment begin and end, and the last one ends late.
    #[test]
    fn a_segment_is_freed_once() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        let address = epochs.register().expect("a slot");
        let free = || {
            segments.available(&epochs);
            segments.lock().free.len()
        };
        let (segment, tail) = segments.open(&epochs, 0, 0).expect("a segment");
        let number = segment.number;
        segments.add_live(number, 10, None);
        segments.seal(&epochs, segment, &tail, Queue::Small);
        let guard = epochs.enter(address);
        segments.remove_live(&epochs, tail.address(), 10);
        let first = segments.acquire_ref(number);
        segments.release_ref(&epochs, &first);
        assert_eq!(segments.lock().retired_count(), 1, "it is already retired");
        let second = segments.acquire_ref(number);
        assert_eq!(free(), 0, "a session holds a guard");
        drop(guard);
        assert_eq!(free(), 0, "a reference exists");
        let third = segments.acquire_ref(number);
        segments.release_ref(&epochs, &third);
        assert_eq!(free(), 0, "a reference remains");
        segments.release_ref(&epochs, &second);
        assert_eq!(free(), 1);
        // A thread may end its reference before the segment is freed, and retire it only now.
        segments.retire(&epochs, number);
        assert_eq!(segments.lock().retired_count(), 0);
        assert_eq!(free(), 1);
    }
}
