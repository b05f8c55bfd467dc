//! The segments that this process has open for reading.

use super::Segments;
use crate::index::Index;
use crate::segment::{Refusal, Segment};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Segments {
    /// The segment that may be read in a slot.
    #[inline]
    pub(crate) fn segment(&self, index: &Index, slot: u32) -> Option<Arc<Segment>> {
        let number = index.table().number(slot);
        if number == 0 {
            return None;
        }
        self.segment_of(index, slot, number).ok()
    }

    /// The segment with a number, which a slot has.
    #[inline]
    pub(crate) fn segment_of(
        &self,
        index: &Index,
        slot: u32,
        number: u64,
    ) -> std::result::Result<Arc<Segment>, Refusal> {
        let open = index.segments[slot as usize].read().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            Some(segment) if segment.number == number => Ok(segment.clone()),
            _ => {
                drop(open);
                self.open_segment(index, slot, number)
            }
        }
    }

    #[cold]
    fn open_segment(
        &self,
        index: &Index,
        slot: u32,
        number: u64,
    ) -> std::result::Result<Arc<Segment>, Refusal> {
        let mut opened = Segment::open(&self.folder, number, &self.opening);
        // Another one is closed when there are too many open files in this process.
        while matches!(opened, Err(Refusal::System(Errno::MFILE))) && self.close_one(index, slot) {
            opened = Segment::open(&self.folder, number, &self.opening);
        }
        let opened = opened.inspect_err(|refusal| {
            let known = matches!(refusal, Refusal::Missing | Refusal::Damaged);
            if known && index.table().number(slot) == number {
                self.counts.damaged();
            }
        });
        let segment = Arc::new(opened?);
        let place = &index.segments[slot as usize];
        let before = place.write().unwrap_or_else(PoisonError::into_inner).replace(segment.clone());
        if before.is_none() && self.open.fetch_add(1, Ordering::Relaxed) >= self.options.open_files
        {
            self.close_one(index, slot);
        }
        Ok(segment)
    }

    /// Closes a segment that is open for reading, the next one in turn. Returns whether there was
    /// one.
    fn close_one(&self, index: &Index, but: u32) -> bool {
        for _ in 0..index.segments.len() {
            let slot = self.hand.fetch_add(1, Ordering::Relaxed) % index.segments.len();
            if slot == but as usize {
                continue;
            }
            let closed =
                index.segments[slot].write().unwrap_or_else(PoisonError::into_inner).take();
            if closed.is_some() {
                self.open.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }
}
