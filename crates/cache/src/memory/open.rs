//! Taking free segments: for writing and for the index.

use crate::memory::arena::{Arena, Tail};
use crate::memory::epoch::Epochs;
use crate::memory::meta::Segment;
use crate::memory::removed::removed_bits_len;
use crate::memory::segments::{Segments, Shared};
use std::sync::atomic::Ordering;

/// Numbers of segments that can be taken, before anything is reclaimed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Available {
    /// Now.
    pub(crate) now: u32,
    /// After the pages of freed and retired large items were returned to the system.
    pub(crate) with_large: u32,
    /// After all retired segments became free, too.
    pub(crate) with_all: u32,
}

impl Segments {
    /// Returns how many segments can be taken, after freeing retired ones that no guard keeps.
    pub(crate) fn available(&self, epochs: &Epochs) -> Available {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        let now = self.available_now();
        let len = u64::from(self.len);
        let large = shared.dirty_bytes + shared.retired_large_bytes;
        let all = shared.dirty_bytes + shared.retired_bytes;
        let with = |bytes: u64| now.saturating_add((bytes / len) as u32);
        Available { now, with_large: with(large), with_all: with(all) }
    }

    /// Takes a free segment if more than `keep` are free.
    fn take(&self, epochs: &Epochs, keep: u32) -> Option<u32> {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        if self.available_now() <= keep {
            return None;
        }
        // Segments that have memory are used first, so that the process never has more than the
        // budget.
        let number = shared.free.pop().or_else(|| self.take_unbacked(&mut shared))?;
        self.in_use.fetch_add(1, Ordering::Relaxed);
        if self.needs_prefill(&shared) {
            self.segment_taken.notify_all();
        }
        Some(number)
    }

    /// Takes a free segment without memory: one that was never used, or whose pages were returned.
    pub(crate) fn take_unbacked(&self, shared: &mut Shared) -> Option<u32> {
        if shared.free_unbacked.is_empty() && shared.next_unused < self.count() {
            shared.next_unused += 1;
            return Some(shared.next_unused - 1);
        }
        shared.free_unbacked.pop()
    }

    /// Takes a segment for the index, which never frees it. Returns its address and its length in
    /// bytes.
    pub(crate) fn take_for_index(&self, epochs: &Epochs) -> Option<(u64, u64)> {
        let number = self.take(epochs, 0)?;
        self.used_by_index.fetch_add(1, Ordering::Relaxed);
        Some((self.start(number), u64::from(self.len)))
    }

    /// Opens a segment for writing if more than `keep` are free. Its short expiries are relative to
    /// `base_ms`. The tail excludes the [removed bits](crate::memory::removed::RemovedBits) at the
    /// start of the segment.
    pub(crate) fn open(&self, epochs: &Epochs, base_ms: u64, keep: u32) -> Option<(Segment, Tail)> {
        let number = self.take(epochs, keep)?;
        let removed_bits_len = removed_bits_len(self.len);
        let tail = Arena::tail(
            self.start(number) + u64::from(removed_bits_len),
            self.len - removed_bits_len,
        );
        Some((self.begin(number, base_ms), tail))
    }

    /// Begins a new generation of a free segment, with this
    /// [base](crate::memory::meta::Meta::base).
    pub(crate) fn begin(&self, number: u32, base: u64) -> Segment {
        let meta = &self.metas[number as usize];
        let generation = meta.generation.fetch_add(1, Ordering::Relaxed) + 1;
        meta.live.store(0, Ordering::Relaxed);
        meta.base.store(base, Ordering::Relaxed);
        meta.evictions_at_open.store(self.evictions.load(Ordering::Relaxed), Ordering::Relaxed);
        meta.first_expires_ms.store(u64::MAX, Ordering::Relaxed);
        meta.worthwhile_ms.store(u64::MAX, Ordering::Relaxed);
        Segment { number, generation }
    }
}
