//! The census of a segment: which of its records are to be retained.

use super::victim::Search;
use crate::guard::FolderGuard;
use crate::index::word::Place;
use crate::segment::Segment;

/// A record that is to be moved.
#[derive(Clone, Copy)]
pub(super) struct Retained {
    pub(super) offset: u64,
    pub(super) is_pinned: bool,
}

/// The records of a segment that is to be reclaimed.
#[derive(Default)]
pub(super) struct Census {
    /// Bytes of the data of all records.
    pub(super) data_bytes: u64,
    /// Bytes of the records to retain.
    pub(super) retained_bytes: u64,
    /// Bytes of the pinned records.
    pub(super) pinned_bytes: u64,
    pub(super) retained: Vec<Retained>,
    /// Whether the system did not read all of it: there may be more records.
    pub(super) has_read_error: bool,
}

impl FolderGuard<'_> {
    /// Counts all records of a segment. A record is retained if it is pinned, or if a quarter of
    /// its bytes was used.
    pub(super) fn census(&self, slot: u32, segment: &Segment, search: &Search) -> Census {
        let now = self.segments.options.clock.now_ms();
        let sets = self.index.sets();
        let mut census = Census::default();
        let gaps = segment.scan(|offset, head| {
            let place = Place { slot, offset };
            let mut used_bytes = 0;
            let mut indexed_bytes = 0;
            for (part, hash) in head.hashes().enumerate() {
                let len = head.range(part).end - head.range(part).start;
                let uses = sets.uses(hash, place);
                indexed_bytes += if uses.is_some() { len } else { 0 };
                used_bytes += if uses.is_some_and(|uses| uses > 0) { len } else { 0 };
            }
            census.data_bytes += head.data_len();
            let is_stored = indexed_bytes > 0 && !head.is_expired(now);
            let is_pinned = is_stored && search.pins.contains_key(&head.name);
            let is_used = is_stored && !search.evicts_used && used_bytes * 4 >= head.data_len();
            if is_pinned || is_used {
                census.retained_bytes += head.data_len();
                census.pinned_bytes += if is_pinned { head.data_len() } else { 0 };
                census.retained.push(Retained { offset, is_pinned });
            }
        });
        census.has_read_error = gaps.error.is_some();
        census
    }
}
