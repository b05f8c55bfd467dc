//! Pages of large items and pending values, and returning pages to the system.

use crate::cache::Cache;
use crate::memory::arena::{Arena, Tail};
use crate::memory::dirty::DirtyPages;
use crate::memory::large::page_rounded;
use crate::memory::meta::Segment;
use std::sync::atomic::Ordering;

impl Cache {
    /// Returns one slice of dirty pages to the system. Returns `false` if there is none. Takes a
    /// few tens of microseconds, without a lock.
    pub(crate) fn release_pages(&self) -> bool {
        let Some(slice) = self.segments.take_dirty_slice(&self.epochs) else { return false };
        let start = self.segments.start(slice.number);
        if slice.huge > 0 {
            self.arena.prefer_huge(start, slice.huge, false);
        }
        let mut tail = Arena::tail(start, slice.bytes as u32);
        self.arena.release_pages(&mut tail);
        self.segments.finish_release(&slice);
        true
    }

    /// Returns memory of free ordinary segments to the system until the limit holds.
    pub(crate) fn release_excess(&self) {
        while self.segments.has_excess_pages() && self.release_pages() {}
    }

    /// Opens a segment for a large item of `len` bytes, and returns dirty pages to the system until
    /// it fits. Returns `None` if fewer than `keep` ordinary segments would stay free.
    pub(crate) fn open_large(&self, len: usize, keep: u32) -> Option<(Segment, Tail)> {
        let opened = loop {
            let opened = self.segments.open_large(&self.epochs, len, keep);
            if opened.is_some() || !self.release_pages() {
                break opened?;
            }
        };
        self.release_excess();
        let huge = self.segments.huge_page_bytes(page_rounded(len));
        if huge > 0 {
            self.arena.prefer_huge(opened.1.address(), huge, true);
        }
        Some(opened)
    }

    /// Charges `bytes` more of a pending value to the budget. Returns `false` if they do not fit.
    pub(crate) fn charge_pending(&self, bytes: u64) -> bool {
        while !self.segments.charge_pending(&self.epochs, bytes, self.reserved_for_moves()) {
            if !self.release_pages() {
                return false;
            }
        }
        self.release_excess();
        true
    }

    /// Frees the segment of a pending value of `len` bytes, of which the first `charged` are
    /// charged to the budget.
    pub(crate) fn discard_pending(&self, number: u32, (charged, len): (u64, usize)) {
        let segments = &self.segments;
        let huge = segments.huge_page_bytes(page_rounded(len));
        if huge > 0 {
            self.arena.prefer_huge(segments.start(number), huge, false);
        }
        let granules = |bytes: u64| bytes.div_ceil(u64::from(segments.len())) as u32;
        let (charged_granules, all) = (granules(charged), granules(page_rounded(len)));
        let mut shared = segments.lock();
        segments.metas[number as usize].live.store(0, Ordering::Relaxed);
        if all > charged_granules {
            shared.free_runs.free(number + charged_granules, all - charged_granules);
        }
        if charged > 0 {
            shared.dirty.push_back(DirtyPages { number, bytes: charged, huge: 0 });
            shared.dirty_bytes += charged;
            shared.freed += 1;
        }
        segments.update_limit(&shared);
    }
}
