//! A walk through the items of a segment.

use crate::item::Item;
use crate::memory::removed::{Marks, granule};
use std::ops::Range;

/// The items of a segment in the order of their addresses.
#[derive(Debug)]
pub(crate) struct Cursor {
    at: u64,
    end: u64,
    /// Where the item before this one began.
    granule: u64,
}

impl Cursor {
    pub(crate) fn new(items: Range<u64>) -> Self {
        Self { at: items.start, end: items.end, granule: 0 }
    }

    /// Returns the address of the next item.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.end
    }

    /// Returns the next item with its address, and whether it is known to be gone from the index.
    /// `item_at` reads the item at an address.
    pub(crate) fn next<'t>(
        &mut self,
        item_at: impl FnOnce(u64) -> Item<'t>,
        marks: Option<Marks<'_>>,
    ) -> Option<(u64, Item<'t>, bool)> {
        if self.is_at_end() {
            return None;
        }
        let (place, item) = (self.at, item_at(self.at));
        self.at += item.head.len() as u64;
        // A mark stands for all items that begin in its granule.
        let alone = granule(place) != self.granule && granule(self.at) != granule(place);
        self.granule = granule(place);
        let is_gone = alone && marks.is_some_and(|marks| marks.has(place));
        Some((place, item, is_gone))
    }
}
