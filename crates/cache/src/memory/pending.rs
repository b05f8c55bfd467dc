//! Segments of values that are still being received.

use crate::memory::arena::{Arena, Tail};
use crate::memory::epoch::Epochs;
use crate::memory::large::pages;
use crate::memory::meta::{DRAFT, Hold, Segment};
use crate::memory::segments::Segments;
use std::sync::atomic::Ordering;

impl Segments {
    /// Addresses for a draft of so many bytes.
    pub(crate) fn open_draft(&self, len: usize, front: u32) -> Option<(Segment, Tail, Hold)> {
        let granules = pages(len).div_ceil(u64::from(self.len())) as u32;
        let number = self.lock().runs.take(granules)?;
        let segment = self.begin(number, u64::from(front));
        let meta = &self.metas[number as usize];
        meta.used.store(len as u32, Ordering::Relaxed);
        meta.live.store(DRAFT | 1, Ordering::Release);
        Some((segment, Arena::tail(self.start(number), len as u32), Hold::of(number)))
    }

    /// Takes so many bytes of the budget for a draft, if so many ordinary segments stay free.
    pub(crate) fn count_draft(&self, epochs: &Epochs, bytes: u64, keep: u32) -> bool {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        let fits = self.fits(&shared, bytes, keep);
        if fits {
            shared.large += bytes;
            self.settle(&shared);
        }
        fits
    }

    /// Whether a segment is a draft still.
    pub(crate) fn is_draft(&self, number: u32) -> bool {
        self.metas[number as usize].live.load(Ordering::Acquire) & DRAFT != 0
    }

    /// Makes a segment of the draft whose value these bytes are, if there is one and it has so many
    /// bytes of room before it; nobody else does so then.
    pub(crate) fn claim(&self, (place, len): (u64, usize), before: usize) -> Option<Segment> {
        let number = self.of(place);
        let meta = self.metas.get(number)?;
        if meta.live.load(Ordering::Relaxed) & DRAFT == 0 {
            return None;
        }
        // Whoever has these bytes has the draft.
        let front = place - self.start(number);
        let used = u64::from(meta.used.load(Ordering::Relaxed));
        let is_value = meta.base.load(Ordering::Relaxed) == front && front + len as u64 == used;
        let fits = is_value && before as u64 <= front;
        if !fits || meta.live.fetch_and(!DRAFT, Ordering::AcqRel) & DRAFT == 0 {
            return None;
        }
        meta.base.store(front - before as u64, Ordering::Relaxed);
        meta.first_expires_ms.store(u64::MAX, Ordering::Relaxed);
        Some(Segment { number, life: meta.life.load(Ordering::Relaxed) })
    }

    /// The segment is a draft again, whose value lies behind so many bytes: no item came of it.
    pub(crate) fn unclaim(&self, number: u32, front: u64) {
        let meta = &self.metas[number as usize];
        meta.base.store(front, Ordering::Relaxed);
        meta.live.fetch_or(DRAFT, Ordering::AcqRel);
    }
}
