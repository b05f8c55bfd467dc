//! Looking parts up, and removing them.

use super::Found;
use crate::id::Id;
use crate::index::Index;
use crate::index::word::Place;
use crate::segment::Segment;
use crate::segment::record::Head;
use crate::segments::Segments;
use std::sync::Arc;

impl Segments {
    /// Looks a part up. `None` if it is not there, or not under this label.
    #[inline]
    pub fn find(&self, id: &Id, label: &[u8]) -> Option<Found<'_>> {
        let index = self.index()?;
        match self.find_in(index, id, label) {
            // It was replaced meanwhile, and its pages are gone.
            None if !index.in_use() => self.find_again(id, label),
            found => found,
        }
    }

    #[cold]
    fn find_again(&self, id: &Id, label: &[u8]) -> Option<Found<'_>> {
        self.find_in(self.index()?, id, label)
    }

    #[inline(always)]
    fn find_in<'a>(&'a self, index: &'a Index, id: &Id, label: &[u8]) -> Option<Found<'a>> {
        let hash = id.hash();
        for (_, place) in index.sets().of(hash) {
            let Some(segment) = self.segment(index, place.slot) else { continue };
            let Some(head) = segment.head(place.offset) else {
                self.damaged_head(index, hash, place, &segment);
                continue;
            };
            let there = head.holds(id, label) && !head.known_bad(id.number);
            if !there || head.expired(self.now_for(&head)) {
                continue;
            }
            return Some(Found { segments: self, index, segment, head, place });
        }
        None
    }

    fn now_for(&self, head: &Head) -> u64 {
        if head.expiry == 0 { 0 } else { self.options.clock.now_ms() }
    }

    #[cold]
    fn damaged_head(&self, index: &Index, hash: u64, place: Place, segment: &Arc<Segment>) {
        // The slot may have another segment by now; then nothing is damaged.
        if index.table().number(place.slot) == segment.number {
            self.counts.damaged();
        }
        index.sets().remove(hash, place);
    }

    /// Removes a part. Its bytes are freed when its segment is evicted. Does nothing in a read-only
    /// folder.
    pub fn remove(&self, id: &Id) {
        while let Some(index) = self.index() {
            let hash = id.hash();
            for (_, place) in index.sets().of(hash) {
                let segment = self.segment(index, place.slot);
                let head = segment.and_then(|segment| segment.head(place.offset));
                if head.is_none_or(|head| head.holds(id, &head.label)) {
                    index.sets().remove(hash, place);
                }
            }
            // It may have been copied before: then the copy has it still.
            if !index.is_copied() || !matches!(self.turn(), Ok(Some(_))) {
                return;
            }
        }
    }
}
