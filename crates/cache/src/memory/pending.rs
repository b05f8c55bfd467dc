//! Segments of pending values: values that are still being received in place.

use crate::memory::arena::{Arena, Tail};
use crate::memory::epoch::Epochs;
use crate::memory::large::page_rounded;
use crate::memory::meta::{PENDING, Segment, SegmentRef};
use crate::memory::segments::Segments;
use std::sync::atomic::Ordering;

impl Segments {
    /// Allocates addresses for a pending value: `len` bytes in all, of which the first `prefix_len`
    /// are for the header and the key. Charges nothing to the budget.
    pub(crate) fn open_pending(
        &self,
        len: usize,
        prefix_len: u32,
    ) -> Option<(Segment, Tail, SegmentRef)> {
        let granules = page_rounded(len).div_ceil(u64::from(self.len())) as u32;
        let number = self.lock().free_runs.allocate(granules)?;
        let segment = self.begin(number, u64::from(prefix_len));
        let meta = &self.metas[number as usize];
        meta.used.store(len as u32, Ordering::Relaxed);
        meta.live.store(PENDING | 1, Ordering::Release);
        Some((segment, Arena::tail(self.start(number), len as u32), SegmentRef::of(number)))
    }

    /// Charges `bytes` more of a pending value to the budget. Returns `false` if fewer than `keep`
    /// ordinary segments would stay free.
    pub(crate) fn charge_pending(&self, epochs: &Epochs, bytes: u64, keep: u32) -> bool {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        let fits = self.fits(&shared, bytes, keep);
        if fits {
            shared.large_bytes += bytes;
            self.update_limit(&shared);
        }
        fits
    }

    /// Returns whether a segment contains a pending value that is no item yet.
    pub(crate) fn is_pending(&self, number: u32) -> bool {
        self.metas[number as usize].live.load(Ordering::Acquire) & PENDING != 0
    }

    /// Turns a pending value into an item if these bytes are its value and `before` bytes fit in
    /// front of it. Returns its segment, or `None`. Only one caller succeeds.
    pub(crate) fn convert_pending(
        &self,
        (address, len): (u64, usize),
        before: usize,
    ) -> Option<Segment> {
        let number = self.segment_of(address);
        let meta = self.metas.get(number)?;
        if meta.live.load(Ordering::Relaxed) & PENDING == 0 {
            return None;
        }
        // The caller has these bytes, so it has the pending value, too.
        let prefix_len = address - self.start(number);
        let used = u64::from(meta.used.load(Ordering::Relaxed));
        let is_value =
            meta.base.load(Ordering::Relaxed) == prefix_len && prefix_len + len as u64 == used;
        let fits = is_value && before as u64 <= prefix_len;
        if !fits || meta.live.fetch_and(!PENDING, Ordering::AcqRel) & PENDING == 0 {
            return None;
        }
        meta.base.store(prefix_len - before as u64, Ordering::Relaxed);
        meta.first_expires_ms.store(u64::MAX, Ordering::Relaxed);
        Some(Segment { number, generation: meta.generation.load(Ordering::Relaxed) })
    }

    /// Turns an item that was not published back into a pending value, whose value starts
    /// `prefix_len` bytes into the segment.
    pub(crate) fn revert_pending(&self, number: u32, prefix_len: u64) {
        let meta = &self.metas[number as usize];
        meta.base.store(prefix_len, Ordering::Relaxed);
        meta.live.fetch_or(PENDING, Ordering::AcqRel);
    }
}
