//! Retired segments: the index points to nothing in them. They become free once no guard and no
//! counted reference keeps them.

use crate::memory::dirty::DirtyPages;
use crate::memory::epoch::Epochs;
use crate::memory::meta::SEALED;
use crate::memory::segments::{Segments, Shared};
use std::sync::atomic::Ordering;

impl Segments {
    /// Frees the retired segments that no guard keeps, and updates the limit.
    pub(crate) fn free_retired(&self, shared: &mut Shared, epochs: &Epochs) {
        if shared.retired.is_empty() {
            return;
        }
        let oldest = epochs.oldest_active();
        while let Some((_, number)) = shared.retired.pop_front_if(|(epoch, _)| *epoch < oldest) {
            let weight = self.charged_bytes(number);
            shared.retired_bytes -= weight;
            shared.retired_large_bytes -= if self.is_large(number) { weight } else { 0 };
            let meta = &self.metas[number as usize];
            meta.retired.store(false, Ordering::Relaxed);
            // References that were added since then keep it, and the end of the last one retires it
            // again. No others can follow, as no session can access an item of it.
            if meta.live.load(Ordering::Acquire) != SEALED {
                continue;
            }
            shared.freed += 1;
            // So that no thread that ended a reference retires it now.
            meta.live.store(0, Ordering::Relaxed);
            if self.is_large(number) {
                self.discard(shared, number, weight);
            } else {
                shared.free.push(number);
                self.in_use.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.update_limit(shared);
    }

    /// Retires a sealed segment without live bytes. Does nothing if another thread has retired it,
    /// or if it has references again.
    pub(crate) fn retire(&self, epochs: &Epochs, number: u32) {
        let meta = &self.metas[number as usize];
        let mut shared = self.lock();
        let is_empty = meta.live.load(Ordering::Acquire) == SEALED;
        if !is_empty || meta.retired.swap(true, Ordering::Relaxed) {
            return;
        }
        self.unlink(&mut shared, number);
        self.untrack_density(&mut shared, number);
        // The generation changes, so that entries in the expiry queue are outdated.
        meta.generation.fetch_add(1, Ordering::AcqRel);
        let weight = self.charged_bytes(number);
        shared.retired_bytes += weight;
        if self.is_large(number) {
            shared.retired_large_bytes += weight;
            self.pages_to_release.store(true, Ordering::Relaxed);
        }
        let epoch = epochs.advance();
        shared.retired.push_back((epoch, number));
    }

    /// Adds the pages of a freed large item to the dirty pages.
    pub(crate) fn discard(&self, shared: &mut Shared, number: u32, bytes: u64) {
        shared.dirty.push_back(DirtyPages { number, bytes, huge: self.huge_page_bytes(bytes) });
        shared.dirty_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::meta::Queue;

    /// A session finds no free memory, is descheduled, and another thread ends its guard and frees
    /// the retired segment. The session must look again, although nothing is retired any more.
    #[test]
    fn memory_that_became_free_after_a_session_looked_for_some_is_noticed() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        let slot = epochs.register().expect("a slot");
        let (segment, tail) = segments.open(&epochs, 0, 0).expect("a segment");
        let guard = epochs.enter(slot);
        segments.seal(&epochs, segment, &tail, Queue::Small);
        let freed_before = segments.freed();
        assert!(segments.awaits_other_threads(freed_before), "a guard keeps the segment");
        drop(guard);
        segments.available(&epochs);
        assert!(segments.awaits_other_threads(freed_before), "the segment is free now");
        assert!(!segments.awaits_other_threads(segments.freed()), "nothing else is kept");
    }
}
