//! Segments ordered by the time of their next scan for expired items.

use crate::memory::meta::Segment;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Two heaps of segments, ordered by scan time. An entry is valid while its time equals the one in
/// the segment's [`Meta`](crate::memory::meta::Meta). Invalid entries are dropped when they reach
/// the top.
#[derive(Default)]
pub(crate) struct ExpiryQueue {
    pub(super) worthwhile: BinaryHeap<Reverse<(u64, Segment)>>,
    pub(super) overdue: BinaryHeap<Reverse<(u64, Segment)>>,
}

impl ExpiryQueue {
    /// Returns the number of entries, invalid ones included.
    pub(crate) fn len(&self) -> usize {
        self.worthwhile.len() + self.overdue.len()
    }
}
