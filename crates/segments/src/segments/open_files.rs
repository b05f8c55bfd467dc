//! The segments that this process has open for reading, up to
//! [`Options::open_files`](crate::Options::open_files).

use super::Segments;
use crate::index::Index;
use crate::segment::{OpenError, Segment};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Segments {
    /// Returns the segment that may be read in a slot.
    #[inline]
    pub(crate) fn segment(&self, index: &Index, slot: u32) -> Option<Arc<Segment>> {
        let number = index.table().number(slot);
        if number == 0 {
            return None;
        }
        self.segment_of(index, slot, number).ok()
    }

    /// Returns the segment with a number, which the slot had when the caller read it.
    ///
    /// # Errors
    ///
    /// Returns the reason if the segment cannot be opened.
    #[inline]
    pub(crate) fn segment_of(
        &self,
        index: &Index,
        slot: u32,
        number: u64,
    ) -> std::result::Result<Arc<Segment>, OpenError> {
        let open = index.segments[slot as usize].read().unwrap_or_else(PoisonError::into_inner);
        match &*open {
            Some(segment) if segment.number == number => Ok(segment.clone()),
            _ => {
                drop(open);
                self.open_segment(index, slot, number)
            }
        }
    }

    /// Opens a segment and closes another one if too many are open.
    #[cold]
    fn open_segment(
        &self,
        index: &Index,
        slot: u32,
        number: u64,
    ) -> std::result::Result<Arc<Segment>, OpenError> {
        let mut opened = Segment::open(&self.folder, number, &self.opening);
        // If this process has too many open files, closes other segments.
        while matches!(opened, Err(OpenError::System(Errno::MFILE))) && self.close_one(index, slot)
        {
            opened = Segment::open(&self.folder, number, &self.opening);
        }
        let opened = opened.inspect_err(|error| {
            let known = matches!(error, OpenError::Missing | OpenError::Damaged);
            if known && index.table().number(slot) == number {
                self.counters.damaged();
            }
        });
        let segment = Arc::new(opened?);
        let place = &index.segments[slot as usize];
        let before = place.write().unwrap_or_else(PoisonError::into_inner).replace(segment.clone());
        if before.is_none()
            && self.open_count.fetch_add(1, Ordering::Relaxed) >= self.options.open_files
        {
            self.close_one(index, slot);
        }
        Ok(segment)
    }

    /// Closes the next open segment other than `except`. Returns whether there was one.
    fn close_one(&self, index: &Index, except: u32) -> bool {
        for _ in 0..index.segments.len() {
            let slot = self.clock_hand.fetch_add(1, Ordering::Relaxed) % index.segments.len();
            if slot == except as usize {
                continue;
            }
            let closed =
                index.segments[slot].write().unwrap_or_else(PoisonError::into_inner).take();
            if closed.is_some() {
                self.open_count.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }
}
