//! The state of a segment that is being reclaimed.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::memory::meta::{Queue, Segment};
use crate::memory::queues::End;
use crate::session::cursor::Cursor;

/// Items processed as a group: their index lines are prefetched before the first is examined.
pub(crate) const PREFETCH_GROUP: usize = 16;

/// Why a segment is reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Few of its bytes are live. The items move to this queue.
    Sparse(Queue),
    /// Memory is short. The segment was in this queue.
    Evicted(Queue),
}

/// A segment that is being reclaimed.
#[derive(Debug)]
pub(crate) struct Victim {
    pub(super) segment: Segment,
    pub(super) reason: Reason,
    /// The items that were not fetched yet.
    pub(super) cursor: Cursor,
    /// The current group: items whose index lines were prefetched, and their number. They are
    /// processed after the next group was fetched, so that the lines have arrived.
    pub(super) group: [(u64, KeyHash); PREFETCH_GROUP],
    pub(super) count: usize,
}

impl Victim {
    pub(super) fn new(cache: &Cache, segment: Segment, reason: Reason) -> Self {
        let cursor = Cursor::new(cache.segments.item_range(segment));
        Self { segment, reason, cursor, group: [(0, KeyHash(0)); PREFETCH_GROUP], count: 0 }
    }

    /// Returns whether all items were processed.
    pub(super) fn is_done(&self) -> bool {
        self.cursor.is_at_end() && self.count == 0
    }

    /// Returns the segment to its queue. It is reclaimed from the start later.
    pub(crate) fn return_to_queue(self, cache: &Cache) {
        let (Reason::Sparse(queue) | Reason::Evicted(queue)) = self.reason;
        cache.segments.push(self.segment, queue, End::Oldest);
    }
}
