//! Segments of large items: their budget, addresses and pages.

use crate::item::Head;
use crate::memory::arena::{Arena, HUGE_PAGE, PAGE, Tail};
use crate::memory::dirty::Slice;
use crate::memory::epoch::Epochs;
use crate::memory::meta::Segment;
use crate::memory::segments::{Segments, Shared};
use std::sync::atomic::Ordering;

/// The longest value.
pub(crate) const VALUE_MOST: u64 = 512 << 20;

/// Of the budget, a large item may take so many eighths, and so may all drafts together: the rest
/// is for the index, for connections, and for segments that must be free.
const BUDGET_EIGHTHS: u64 = 5;

/// What a large item takes.
pub(crate) fn pages(len: usize) -> u64 {
    (len as u64).next_multiple_of(PAGE)
}

impl Segments {
    /// Whether an item of so many bytes, without its head, lies in an ordinary segment.
    #[inline]
    pub(crate) fn is_ordinary(&self, bytes: usize) -> bool {
        bytes <= self.len() as usize / 2
    }

    /// What a large item may take of a budget, and all drafts together may.
    pub(crate) fn large_most(memory: u64) -> u64 {
        memory / 8 * BUDGET_EIGHTHS
    }

    /// Bytes of the longest item, without its head.
    pub(crate) fn item_most(&self, memory: u64) -> u64 {
        let addresses = u64::from(self.large_granules()) * u64::from(self.len());
        let large = Self::large_most(memory.min(addresses)).saturating_sub(Head::MOST as u64);
        large.max(u64::from(self.len()) / 2)
    }

    /// Whether a large item of so many bytes would fit beside so many free segments, were there
    /// nothing else.
    pub(crate) fn could_fit(&self, len: usize, keep: u32) -> bool {
        let segments = len.div_ceil(self.len() as usize) as u32;
        segments + keep <= self.most_available()
    }

    /// Whether there is room for a large item of so many bytes beside so many free segments.
    pub(crate) fn fits_large(&self, epochs: &Epochs, len: usize, keep: u32) -> bool {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        self.fits(&shared, pages(len), keep)
    }

    pub(crate) fn fits(&self, shared: &Shared, bytes: u64, keep: u32) -> bool {
        let in_use = self.in_use.load(Ordering::Relaxed);
        self.limit_with(shared, shared.large + bytes) >= in_use + keep
    }

    /// A segment for a large item of so many bytes, if so many ordinary ones stay free.
    pub(crate) fn open_large(
        &self,
        epochs: &Epochs,
        len: usize,
        keep: u32,
    ) -> Option<(Segment, Tail)> {
        let bytes = pages(len);
        let granules = bytes.div_ceil(u64::from(self.len())) as u32;
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        if !self.fits(&shared, bytes, keep) {
            return None;
        }
        let number = shared.runs.take(granules)?;
        shared.large += bytes;
        self.settle(&shared);
        drop(shared);
        Some((self.begin(number, 0), Arena::tail(self.start(number), len as u32)))
    }

    /// Something whose pages nobody needs.
    pub(crate) fn take_slice(&self, epochs: &Epochs) -> Option<Slice> {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        let len = u64::from(self.len());
        if let Some(first) = shared.garbage.front_mut() {
            let (number, huge) = (first.number, std::mem::take(&mut first.huge));
            let slice = Slice { number, bytes: first.bytes.min(len), huge };
            first.number += 1;
            first.bytes -= slice.bytes;
            if first.bytes == 0 {
                shared.garbage.pop_front();
            }
            shared.garbage_bytes -= slice.bytes;
            shared.slices_in_flight += 1;
            return Some(slice);
        }
        if !self.is_over(&shared) {
            return None;
        }
        let number = shared.free.pop()?;
        shared.slices_in_flight += 1;
        self.settle(&shared);
        // One segment of a huge page would bring back the whole page.
        Some(Slice { number, bytes: len, huge: if len < HUGE_PAGE as u64 { len } else { 0 } })
    }

    /// Its pages are back with the system.
    pub(crate) fn put_slice(&self, slice: &Slice) {
        let mut shared = self.lock();
        shared.slices_in_flight -= 1;
        if self.is_large(slice.number) {
            shared.large -= slice.bytes;
            shared.runs.give_back(slice.number, 1);
        } else {
            shared.empty.push(slice.number);
        }
        self.settle(&shared);
    }

    /// Whether the process has more memory of ordinary segments than they may use.
    pub(crate) fn has_too_much(&self) -> bool {
        self.is_over(&self.lock())
    }
}
