//! How many segments should be free, and whether to reclaim.

use crate::cache::Cache;
use std::sync::atomic::Ordering;

/// One of this many segments is kept free.
const FREE_SEGMENT_RATIO: u32 = 32;

/// Minimum number of free segments, whatever the budget.
const MIN_FREE_SEGMENTS: u32 = 4;

/// Additional free segments for each open session, in that minimum.
const FREE_SEGMENTS_PER_SESSION: u32 = 2;

impl Cache {
    /// Returns how many segments should be free. With fewer, every write reclaims some memory.
    pub(crate) fn target_free(&self) -> u32 {
        let min_free = MIN_FREE_SEGMENTS + FREE_SEGMENTS_PER_SESSION * self.epochs.sessions();
        (self.segments.count() / FREE_SEGMENT_RATIO).max(min_free)
    }

    /// Returns whether fewer segments are free than the target plus `extra`.
    pub(crate) fn is_below_target(&self, extra: u32) -> bool {
        let available = self.segments.available(&self.epochs);
        let enough = self.target_free() + extra;
        if extra > 0 {
            return available.with_all < enough;
        }
        // Evicting one large item may suffice for long, but its memory is free only after guards
        // have ended.
        available.now < enough
            && (available.now < self.reserved_for_moves() || available.with_large < enough)
    }

    /// Requests that demotion frees this many bytes at once, if writers free none.
    pub(crate) fn request_demotion(&self, bytes: usize) {
        if self.records.is_some() && !self.may_evict() {
            self.requested_bytes.fetch_max(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Returns the number of spare segments and those that a write requested.
    pub(crate) fn spare_and_requested(&self, spare_segments: u32) -> u32 {
        let requested = self.requested_bytes.load(Ordering::Relaxed);
        spare_segments + requested.div_ceil(u64::from(self.segments.len())) as u32
    }

    /// Ends a request: as many bytes are free, or no more can be.
    pub(crate) fn end_request(&self) {
        self.requested_bytes.store(0, Ordering::Relaxed);
    }

    /// Returns whether an item can be restored without evicting others: the segments that it and
    /// the index may take are free in addition to the target.
    pub(crate) fn has_memory_to_restore(&self) -> bool {
        self.segments.available(&self.epochs).now >= self.target_free() + 2
    }

    /// Returns whether writes should reclaim memory: because too little is free, or because too
    /// much is wasted.
    pub(crate) fn should_reclaim(&self, extra: u32) -> bool {
        self.is_below_target(extra) || self.segments.is_wasteful()
    }

    /// Returns whether a guard can begin. `requested` is the length of a large item that did not
    /// fit under the previous guard, or 0.
    pub(crate) fn has_memory_for(&self, requested: usize) -> bool {
        if requested > 0 {
            return self.segments.fits_large(&self.epochs, requested, self.reserved_for_moves());
        }
        self.segments.available(&self.epochs).now >= self.min_free_for_guard()
    }

    /// Returns the number of segments that must be free for a session to begin a guard.
    pub(crate) fn min_free_for_guard(&self) -> u32 {
        self.target_free() - self.target_free() / 4
    }

    /// Returns the number of free segments that should have memory. It is at most
    /// [`reserved_for_moves`](Self::reserved_for_moves), so that a large item does not force their
    /// memory back to the system.
    pub(crate) fn prefill_target(&self) -> u32 {
        MIN_FREE_SEGMENTS / 2 + FREE_SEGMENTS_PER_SESSION / 2 * self.epochs.sessions()
    }

    /// Returns the number of free segments that only reclamation may use, to move items. Without
    /// any, it could free nothing.
    pub(crate) fn reserved_for_moves(&self) -> u32 {
        self.target_free() / 2
    }
}
