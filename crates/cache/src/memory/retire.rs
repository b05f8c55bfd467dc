//! Retired segments: nothing in them is in the index, and they are free once no session can read
//! them.

use crate::memory::dirty::Garbage;
use crate::memory::epoch::Epochs;
use crate::memory::meta::SEALED;
use crate::memory::segments::{Segments, Shared};
use std::sync::atomic::Ordering;

impl Segments {
    pub(crate) fn free_retired(&self, shared: &mut Shared, epochs: &Epochs) {
        if shared.retired.is_empty() {
            return;
        }
        let oldest = epochs.oldest();
        while let Some((_, number)) = shared.retired.pop_front_if(|(epoch, _)| *epoch < oldest) {
            let weight = self.weight(number);
            shared.retired_bytes -= weight;
            shared.retired_large -= if self.is_large(number) { weight } else { 0 };
            let meta = &self.metas[number as usize];
            meta.retired.store(false, Ordering::Relaxed);
            // Leases that were taken since keep it: the end of the last one retires it anew. There
            // will be no others, as nobody sees an item of it.
            if meta.live.load(Ordering::Acquire) != SEALED {
                continue;
            }
            // So that nobody who ended a lease retires it now.
            meta.live.store(0, Ordering::Relaxed);
            if self.is_large(number) {
                self.discard(shared, number, weight);
            } else {
                shared.free.push(number);
                self.in_use.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.settle(shared);
    }

    /// Nothing in a segment is needed any more, unless somebody else saw that first, or has taken a
    /// lease since.
    pub(crate) fn retire(&self, epochs: &Epochs, number: u32) {
        let meta = &self.metas[number as usize];
        let mut shared = self.lock();
        let is_over = meta.live.load(Ordering::Acquire) == SEALED;
        if !is_over || meta.retired.swap(true, Ordering::Relaxed) {
            return;
        }
        // A new life begins now, so that the queues know the old one is over.
        meta.life.fetch_add(1, Ordering::AcqRel);
        let weight = self.weight(number);
        shared.retired_bytes += weight;
        if self.is_large(number) {
            shared.retired_large += weight;
            self.owing.store(true, Ordering::Relaxed);
        }
        let epoch = epochs.end();
        shared.retired.push_back((epoch, number));
    }

    /// Nobody needs a large item's memory any more.
    pub(crate) fn discard(&self, shared: &mut Shared, number: u32, bytes: u64) {
        shared.garbage.push_back(Garbage { number, bytes, huge: self.huge(bytes) });
        shared.garbage_bytes += bytes;
    }
}
