//! A segment that is being reclaimed.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::memory::meta::{Queue, Segment};
use crate::session::cursor::Cursor;

/// Items looked at together: their lines of the index are asked for before the first is.
pub(crate) const GROUP: usize = 16;

/// Why a segment is reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Most of its items have expired, and the rest moves. The segment is still in its queue.
    Expired,
    /// Little in it is still in the index, which stays in this queue.
    Sparse(Queue),
    /// Room is short.
    Evicted(Queue),
}

/// A segment that is being reclaimed, and how far that is.
#[derive(Debug)]
pub(crate) struct Victim {
    pub(super) segment: Segment,
    pub(super) reason: Reason,
    /// The items that were not looked at yet.
    pub(super) cursor: Cursor,
    /// The items before those that nothing was decided on yet, and their number: their lines of the
    /// index were asked for, and are there by the time the next items are looked at.
    pub(super) group: [(u64, KeyHash); GROUP],
    pub(super) count: usize,
}

impl Victim {
    pub(super) fn new(cache: &Cache, segment: Segment, reason: Reason) -> Self {
        let cursor = Cursor::new(cache.segments.items(segment));
        Self { segment, reason, cursor, group: [(0, KeyHash(0)); GROUP], count: 0 }
    }

    /// Returns a segment of which little is left after its expired items were removed.
    pub(crate) fn of_expired(cache: &Cache, segment: Segment) -> Self {
        Self::new(cache, segment, Reason::Expired)
    }

    /// Whether all its items were decided on.
    pub(super) fn is_done(&self) -> bool {
        self.cursor.is_at_end() && self.count == 0
    }

    /// Leaves the segment to others, which reclaim it from the start.
    pub(crate) fn put_back(self, cache: &Cache) {
        match self.reason {
            Reason::Expired => {}
            Reason::Sparse(queue) | Reason::Evicted(queue) => {
                cache.segments.push(self.segment, queue);
            }
        }
    }
}
