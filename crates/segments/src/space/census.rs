//! What is in a segment that is to be reclaimed.

use super::victim::Search;
use crate::guard::Turn;
use crate::index::word::Place;
use crate::segment::Segment;

/// A record that is to be saved.
#[derive(Clone, Copy)]
pub(super) struct Live {
    pub(super) offset: u64,
    pub(super) pinned: bool,
}

/// What is in a segment that is to go.
#[derive(Default)]
pub(super) struct Census {
    /// Bytes of data, of what is to be saved, and of what of it is pinned.
    pub(super) all: u64,
    pub(super) saved: u64,
    pub(super) pinned: u64,
    pub(super) live: Vec<Live>,
    /// Whether the system did not read all of it: there may be more records.
    pub(super) is_refused: bool,
}

impl Turn<'_> {
    /// Looks at all records of a segment.
    pub(super) fn census(&self, slot: u32, segment: &Segment, search: &Search) -> Census {
        let now = self.of.options.clock.now_ms();
        let sets = self.index.sets();
        let mut census = Census::default();
        let gaps = segment.walk(|offset, head| {
            let place = Place { slot, offset };
            let mut hot = 0;
            let mut here = 0;
            for (part, hash) in head.hashes().enumerate() {
                let len = head.range(part).end - head.range(part).start;
                let uses = sets.uses(hash, place);
                here += if uses.is_some() { len } else { 0 };
                hot += if uses.is_some_and(|uses| uses > 0) { len } else { 0 };
            }
            census.all += head.data_len();
            let there = here > 0 && !head.expired(now);
            let pinned = there && search.pins.contains_key(&head.name);
            let worth = there && !search.forced && hot * 4 >= head.data_len();
            if pinned || worth {
                census.saved += head.data_len();
                census.pinned += if pinned { head.data_len() } else { 0 };
                census.live.push(Live { offset, pinned });
            }
        });
        census.is_refused = gaps.refused.is_some();
        census
    }
}
