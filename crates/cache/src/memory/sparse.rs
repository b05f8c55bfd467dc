//! Which segments have few live bytes, so that moving their items frees memory.
//!
//! The live bytes of a sealed segment are rounded up to sixteenths of a segment. The thread that
//! removes an item updates the rounded number when it changes, which happens at most 16 times to a
//! segment. Segments of which memory can be freed are in a list for each number of sixteenths.

use crate::memory::meta::{Density, Meta, SEALED};
use crate::memory::segments::{Segments, Shared};
use std::sync::atomic::Ordering;

/// Number of segments that may be wasted in a cache with little content.
const MIN_WASTED_SEGMENTS: u64 = 32;

impl Segments {
    /// Rounds live bytes up to sixteenths of a segment.
    fn sixteenths(&self, live: u32) -> u8 {
        (u64::from(live) * 16).div_ceil(u64::from(self.len())) as u8
    }

    /// Updates the rounded number of live bytes of an ordinary segment if it changed, after `live`
    /// bytes were left of a sealed segment.
    #[inline]
    pub(super) fn note_density(&self, number: u32, live: u32) {
        let density = self.metas[number as usize].density();
        if density.sixteenths != self.sixteenths(live) || density.is_full {
            self.update_density(number);
        }
    }

    #[cold]
    fn update_density(&self, number: u32) {
        let mut shared = self.lock();
        let meta = &self.metas[number as usize];
        // Another thread may have retired it.
        if !meta.density().is_tracked {
            return;
        }
        let sixteenths = self.sixteenths(meta.live.load(Ordering::Relaxed) & !SEALED);
        self.unlist_sparse(&mut shared, number);
        let density = meta.density();
        shared.live_sixteenths -= u64::from(density.sixteenths);
        shared.live_sixteenths += u64::from(sixteenths);
        meta.set_density(Density { sixteenths, is_full: false, ..density });
        if meta.queue().is_some() {
            self.list_if_sparse(&mut shared, number);
        }
    }

    /// Begins to track the live bytes of an ordinary segment that is being sealed with `live` of
    /// `used` bytes.
    pub(super) fn track_density(&self, shared: &mut Shared, number: u32, live: u32, used: u32) {
        let sixteenths = self.sixteenths(live);
        shared.sealed += 1;
        shared.live_sixteenths += u64::from(sixteenths);
        // Otherwise the rest of the segment is too short for the next item, and is as long again
        // wherever the items are moved to.
        let frees_memory_if_moved = live < used || live <= self.len() / 2;
        let is_full = !frees_memory_if_moved;
        let density = Density { sixteenths, is_full, is_listed: false, is_tracked: true };
        self.metas[number as usize].set_density(density);
    }

    /// Ends tracking the live bytes of a segment that is retired, in no queue, and not retired for
    /// the second time since it was sealed.
    pub(super) fn untrack_density(&self, shared: &mut Shared, number: u32) {
        let meta = &self.metas[number as usize];
        let density = meta.density();
        if density.is_tracked {
            shared.sealed -= 1;
            shared.live_sixteenths -= u64::from(density.sixteenths);
            meta.set_density(Density { is_tracked: false, ..density });
        }
    }

    fn sparse_links(&self, number: u32) -> &crate::memory::list::Links {
        &self.metas[number as usize].sparse_links
    }

    /// Lists a segment in a queue as sparse if memory becomes free when its items are moved.
    pub(super) fn list_if_sparse(&self, shared: &mut Shared, number: u32) {
        let meta: &Meta = &self.metas[number as usize];
        let density = meta.density();
        let list = shared.sparse.get_mut(usize::from(density.sixteenths));
        if let Some(list) = list.filter(|_| density.is_tracked && !density.is_full) {
            list.push_back(number, |number| self.sparse_links(number));
            meta.set_density(Density { is_listed: true, ..density });
        }
    }

    /// Removes a segment from the list of sparse ones, if it is in one.
    pub(super) fn unlist_sparse(&self, shared: &mut Shared, number: u32) {
        let meta = &self.metas[number as usize];
        let density = meta.density();
        if density.is_listed {
            let list = &mut shared.sparse[usize::from(density.sixteenths)];
            list.remove(number, |number| self.sparse_links(number));
            meta.set_density(Density { is_listed: false, ..density });
        }
    }

    /// Returns whether most bytes of sealed segments are not live, so that moving the rest costs
    /// less than more memory.
    pub(crate) fn is_wasteful(&self) -> bool {
        self.is_wasteful_beyond(MIN_WASTED_SEGMENTS)
    }

    /// Returns whether more than half of the sealed segments, and this many, could become free.
    pub(super) fn is_wasteful_beyond(&self, min_wasted: u64) -> bool {
        let shared = self.lock();
        16 * shared.sealed > 2 * shared.live_sixteenths + 16 * min_wasted
    }
}
