//! Items that were chosen for demotion.

use crate::hash::KeyHash;
use crate::memory::meta::SegmentRef;
use std::fmt;

/// Items that were chosen for demotion. They stay in the index, and their memory stays unchanged,
/// until [`Session::finish_demotions`](crate::Session::finish_demotions).
#[derive(Default)]
pub struct Demotions {
    /// The address of each item.
    pub(super) items: Vec<(KeyHash, u64)>,
    /// References that keep the segments of the items.
    pub(super) segments: Vec<SegmentRef>,
    /// Bytes of the items.
    pub(super) bytes: usize,
}

impl Demotions {
    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the bytes of the items.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl fmt::Debug for Demotions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Demotions")
            .field("items", &self.items.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
