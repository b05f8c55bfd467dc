//! Finding parts, and removing them.

use super::Found;
use crate::id::Id;
use crate::index::Index;
use crate::index::word::Place;
use crate::segment::Segment;
use crate::segment::record::Head;
use crate::segments::Segments;
use std::sync::Arc;

impl Segments {
    /// Finds a part. `None` if it is missing, damaged or expired, or has another label.
    #[inline]
    pub fn find(&self, id: &Id, label: &[u8]) -> Option<Found<'_>> {
        let index = self.index()?;
        match self.find_in(index, id, label) {
            // The index was replaced meanwhile, and its pages are freed.
            None if !index.is_in_use() => self.find_again(id, label),
            found => found,
        }
    }

    /// Finds a part in the index that replaced the previous one.
    #[cold]
    fn find_again(&self, id: &Id, label: &[u8]) -> Option<Found<'_>> {
        self.find_in(self.index()?, id, label)
    }

    /// Finds a part in an index.
    #[inline(always)]
    fn find_in<'a>(&'a self, index: &'a Index, id: &Id, label: &[u8]) -> Option<Found<'a>> {
        let hash = id.hash();
        for (_, place) in index.sets().lookup(hash) {
            let Some(segment) = self.segment(index, place.slot) else { continue };
            let Some(head) = segment.head(place.offset) else {
                self.damaged_head(index, hash, place, &segment);
                continue;
            };
            let is_stored = head.holds(id, label) && !head.is_known_damaged(id.number);
            if !is_stored || head.is_expired(self.now_for(&head)) {
                continue;
            }
            return Some(Found { segments: self, index, segment, head, place });
        }
        None
    }

    /// Returns the time, or zero if the record does not expire.
    fn now_for(&self, head: &Head) -> u64 {
        if head.expiry == 0 { 0 } else { self.options.clock.now_ms() }
    }

    /// Counts a damaged head and removes its word.
    #[cold]
    fn damaged_head(&self, index: &Index, hash: u64, place: Place, segment: &Arc<Segment>) {
        // If the slot has another segment by now, nothing is damaged.
        if index.table().number(place.slot) == segment.number {
            self.counters.damaged();
        }
        index.sets().remove(hash, place);
    }

    /// Removes a part. Its bytes are freed when its segment is evicted. Does nothing in a read-only
    /// folder.
    pub fn remove(&self, id: &Id) {
        while let Some(index) = self.index() {
            let hash = id.hash();
            for (_, place) in index.sets().lookup(hash) {
                let segment = self.segment(index, place.slot);
                let head = segment.and_then(|segment| segment.head(place.offset));
                if head.is_none_or(|head| head.holds(id, &head.label)) {
                    index.sets().remove(hash, place);
                }
            }
            // The word may have been copied before: then the copy has it still.
            if !index.is_copied() || !matches!(self.folder_guard_for_put(), Ok(Some(_))) {
                return;
            }
        }
    }
}
