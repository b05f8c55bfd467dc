//! Segments by the times at which they should be scanned for expired items.

use crate::memory::meta::Segment;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Segments by the times at which they should be scanned. An entry is valid while its time is that
/// of the segment's [`Meta`](crate::memory::meta::Meta); the others are dropped when they are met.
#[derive(Default)]
pub(crate) struct ExpiryQueue {
    pub(super) worthwhile: BinaryHeap<Reverse<(u64, Segment)>>,
    pub(super) overdue: BinaryHeap<Reverse<(u64, Segment)>>,
}

impl ExpiryQueue {
    /// Number of entries, invalid ones included.
    pub(crate) fn len(&self) -> usize {
        self.worthwhile.len() + self.overdue.len()
    }
}
