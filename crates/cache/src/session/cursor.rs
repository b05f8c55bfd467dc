//! A cursor over the items of a segment.

use crate::item::Item;
use crate::memory::removed::{RemovedBits, bit_index};
use std::ops::Range;

/// Iterates over the items of a segment in the order of their addresses.
#[derive(Debug)]
pub(crate) struct Cursor {
    at: u64,
    end: u64,
    /// Number of the removed bit of the previous item.
    last_bit: u64,
}

impl Cursor {
    pub(crate) fn new(items: Range<u64>) -> Self {
        Self { at: items.start, end: items.end, last_bit: 0 }
    }

    /// Returns the address of the next item.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.end
    }

    /// Returns the next item with its address, and whether it is known to be removed from the
    /// index. `item_at` reads the item at an address.
    pub(crate) fn next<'t>(
        &mut self,
        item_at: impl FnOnce(u64) -> Item<'t>,
        removed: Option<RemovedBits<'_>>,
    ) -> Option<(u64, Item<'t>, bool)> {
        if self.is_at_end() {
            return None;
        }
        let (address, item) = (self.at, item_at(self.at));
        self.at += item.header.len() as u64;
        // A bit stands for all items that start in the same 32 bytes.
        let is_exact =
            bit_index(address) != self.last_bit && bit_index(self.at) != bit_index(address);
        self.last_bit = bit_index(address);
        let is_removed = is_exact && removed.is_some_and(|removed| removed.has(address));
        Some((address, item, is_removed))
    }
}
