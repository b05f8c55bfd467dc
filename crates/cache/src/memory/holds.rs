//! References that keep segments beyond a turn.

use crate::memory::epoch::Epochs;
use crate::memory::meta::{Hold, SEALED};
use crate::memory::segments::Segments;
use std::sync::atomic::Ordering;

impl Segments {
    /// Records that the item of a large segment was removed, so that only leases keep its memory.
    #[cold]
    pub(crate) fn note_kept(&self, number: u32) {
        let meta = &self.metas[number as usize];
        if !meta.is_kept.swap(true, Ordering::SeqCst) {
            self.kept_by_leases.fetch_add(self.weight(number), Ordering::Relaxed);
        }
        // The last of them may have ended meanwhile.
        if meta.live.load(Ordering::SeqCst) & !SEALED == 0 {
            self.note_not_kept(number);
        }
    }

    fn note_not_kept(&self, number: u32) {
        if self.metas[number as usize].is_kept.swap(false, Ordering::SeqCst) {
            self.kept_by_leases.fetch_sub(self.weight(number), Ordering::Relaxed);
        }
    }

    /// Keeps the memory of a segment for a reader, without a time limit. The caller must hold a
    /// guard or another lease under which it sees an item of the segment.
    pub(crate) fn hold(&self, number: u32) -> Hold {
        self.metas[number as usize].live.fetch_add(1, Ordering::Relaxed);
        Hold::of(number)
    }

    /// Ends a [`hold`](Self::hold).
    pub(crate) fn let_go(&self, epochs: &Epochs, hold: &Hold) {
        let number = hold.number();
        let before = self.metas[number as usize].live.fetch_sub(1, Ordering::AcqRel);
        if before == SEALED | 1 {
            if self.is_large(number) {
                self.note_not_kept(number);
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

    /// Leases of a segment that is retired come and go, and the last one is late.
    #[test]
    fn a_segment_is_freed_once() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        let place = epochs.enter().expect("a slot");
        let free = || {
            segments.room(&epochs);
            segments.lock().free.len()
        };
        let (segment, tail) = segments.open(&epochs, 0, 0).expect("a segment");
        let number = segment.number;
        segments.add_live(number, 10, None);
        segments.seal(&epochs, segment, &tail, Queue::Small);
        let pin = epochs.pin(place);
        segments.remove_live(&epochs, tail.place(), 10);
        let first = segments.hold(number);
        segments.let_go(&epochs, &first);
        assert_eq!(segments.lock().retired_count(), 1, "it is retired already");
        let second = segments.hold(number);
        assert_eq!(free(), 0, "somebody is in a turn");
        drop(pin);
        assert_eq!(free(), 0, "somebody has a lease");
        let third = segments.hold(number);
        segments.let_go(&epochs, &third);
        assert_eq!(free(), 0, "somebody has a lease still");
        segments.let_go(&epochs, &second);
        assert_eq!(free(), 1);
        // Somebody who ended a lease before it was freed, and comes to retire it now.
        segments.retire(&epochs, number);
        assert_eq!(segments.lock().retired_count(), 0);
        assert_eq!(free(), 1);
    }
}
