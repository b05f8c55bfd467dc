//! Segments of large items: their limits, addresses and pages.

use crate::item::Header;
use crate::memory::arena::{Arena, HUGE_PAGE, PAGE, Tail};
use crate::memory::dirty::DirtySlice;
use crate::memory::epoch::Epochs;
use crate::memory::meta::Segment;
use crate::memory::segments::{Segments, Shared};
use std::sync::atomic::Ordering;

/// Maximum length of a value in bytes.
pub(crate) const MAX_VALUE_LEN: u64 = 512 << 20;

/// Share of the budget, in eighths, that one large item may use, and that all pending values
/// together may use. The rest is for the index, for connections and for segments that must be free.
const LARGE_BUDGET_EIGHTHS: u64 = 5;

/// Rounds a length in bytes up to whole pages, which is what a large item is charged for.
pub(crate) fn page_rounded(len: usize) -> u64 {
    (len as u64).next_multiple_of(PAGE)
}

impl Segments {
    /// Returns whether an item of this length, without its header, is stored in an ordinary
    /// segment. Others are large items.
    #[inline]
    pub(crate) fn is_ordinary(&self, bytes: usize) -> bool {
        bytes <= self.len() as usize / 2
    }

    /// Returns the maximum bytes of one large item, and of all pending values together, for a
    /// budget in bytes.
    pub(crate) fn max_large_bytes(memory: u64) -> u64 {
        memory / 8 * LARGE_BUDGET_EIGHTHS
    }

    /// Returns the maximum length in bytes of an item without its header.
    pub(crate) fn max_item_len(&self, memory: u64) -> u64 {
        let addresses = u64::from(self.large_granules()) * u64::from(self.len());
        let large =
            Self::max_large_bytes(memory.min(addresses)).saturating_sub(Header::MAX_LEN as u64);
        large.max(u64::from(self.len()) / 2)
    }

    /// Returns whether a large item of this length fits beside `keep` free segments if everything
    /// else is evicted.
    pub(crate) fn could_ever_fit(&self, len: usize, keep: u32) -> bool {
        let segments = len.div_ceil(self.len() as usize) as u32;
        segments + keep <= self.max_available()
    }

    /// Returns whether a large item of this length fits now beside `keep` free segments.
    pub(crate) fn fits_large(&self, epochs: &Epochs, len: usize, keep: u32) -> bool {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        self.fits(&shared, page_rounded(len), keep)
    }

    /// Returns whether `bytes` more of large items fit now beside `keep` free segments.
    pub(crate) fn fits(&self, shared: &Shared, bytes: u64, keep: u32) -> bool {
        let in_use = self.in_use.load(Ordering::Relaxed);
        self.limit_with(shared, shared.large_bytes + bytes) >= in_use + keep
    }

    /// Allocates a segment for a large item of `len` bytes and charges its pages to the budget.
    /// Returns `None` if fewer than `keep` ordinary segments would stay free.
    pub(crate) fn open_large(
        &self,
        epochs: &Epochs,
        len: usize,
        keep: u32,
    ) -> Option<(Segment, Tail)> {
        let bytes = page_rounded(len);
        let granules = bytes.div_ceil(u64::from(self.len())) as u32;
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        if !self.fits(&shared, bytes, keep) {
            return None;
        }
        let number = shared.free_runs.allocate(granules)?;
        shared.large_bytes += bytes;
        self.update_limit(&shared);
        drop(shared);
        Some((self.begin(number, 0), Arena::tail(self.start(number), len as u32)))
    }

    /// Takes the next slice of dirty pages: of a freed large item, or of a free ordinary segment if
    /// the process has more of those than the limit allows.
    pub(crate) fn take_dirty_slice(&self, epochs: &Epochs) -> Option<DirtySlice> {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        let len = u64::from(self.len());
        if let Some(first) = shared.dirty.front_mut() {
            let (number, huge) = (first.number, std::mem::take(&mut first.huge));
            let slice = DirtySlice { number, bytes: first.bytes.min(len), huge };
            first.number += 1;
            first.bytes -= slice.bytes;
            if first.bytes == 0 {
                shared.dirty.pop_front();
            }
            shared.dirty_bytes -= slice.bytes;
            shared.releases_in_flight += 1;
            return Some(slice);
        }
        if !self.has_excess(&shared) {
            return None;
        }
        let number = shared.free.pop()?;
        shared.releases_in_flight += 1;
        self.update_limit(&shared);
        // Turning huge pages off for a segment smaller than one keeps the system from restoring the
        // whole huge page.
        Some(DirtySlice { number, bytes: len, huge: if len < HUGE_PAGE as u64 { len } else { 0 } })
    }

    /// Frees the addresses and the budget of a slice whose pages were returned to the system.
    pub(crate) fn finish_release(&self, slice: &DirtySlice) {
        let mut shared = self.lock();
        shared.releases_in_flight -= 1;
        shared.freed += 1;
        if self.is_large(slice.number) {
            shared.large_bytes -= slice.bytes;
            shared.free_runs.free(slice.number, 1);
        } else {
            shared.free_unbacked.push(slice.number);
        }
        self.update_limit(&shared);
    }

    /// Returns whether free ordinary segments have more memory than the limit allows.
    pub(crate) fn has_excess_pages(&self) -> bool {
        self.has_excess(&self.lock())
    }
}
