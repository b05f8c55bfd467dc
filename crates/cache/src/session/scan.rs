//! Iterating over all items without blocking writers, and picking random ones.

use crate::hash::TAG_BITS;
use crate::index::table::MAX_PAGES;
use crate::item::Item;
use crate::memory::arena::INDEX_PAGE_LINES;
use crate::session::state::Guard;

/// Maximum number of index lines examined for each item requested. Bounds the time of a call when
/// the index is mostly empty.
const MAX_LINES_PER_ITEM: usize = 16;

/// Maximum number of lines of a table.
const MAX_LINES_PER_TABLE: u64 = (MAX_PAGES * INDEX_PAGE_LINES) as u64;

impl Guard<'_> {
    /// Calls `each` for at least `at_least` items, if there are as many, and returns the cursor to
    /// continue with. Start with cursor 0; the scan is complete when 0 is returned. It may continue
    /// under later guards. A call examines a bounded number of index lines, so it may find fewer
    /// items.
    ///
    /// Keys that exist during the whole scan are found at least once. Keys that are stored or
    /// removed meanwhile may be found or not.
    pub fn scan(&self, cursor: u64, at_least: usize, mut each: impl FnMut(&Item<'_>)) -> u64 {
        let cache = self.cache();
        let mut slots = Vec::new();
        let (mut cursor, mut found, mut lines) = (cursor, 0, 0);
        loop {
            slots.clear();
            cursor = cache.tables.scan(&cache.arena, cursor, &mut slots);
            for slot in &slots {
                let item = self.item(slot.address(), slot.frequency());
                if !self.is_expired(&item) {
                    found += 1;
                    each(&item);
                }
            }
            // Counts empty lines, too: a cache with few items has many.
            lines += 1;
            if cursor == 0
                || found >= at_least
                || lines >= MAX_LINES_PER_ITEM.saturating_mul(at_least.max(1))
            {
                return cursor;
            }
        }
    }

    /// Returns a random item, chosen by `seed`, or `None` if there are none. All items have about
    /// the same probability.
    pub fn random(&self, seed: u64) -> Option<Item<'_>> {
        let cache = self.cache();
        let mut slots = Vec::new();
        let tables = cache.tables.count() as u64;
        let mut cursor = seed % (tables << TAG_BITS);
        let mut lines = tables.saturating_mul(MAX_LINES_PER_TABLE);
        while lines > 0 {
            slots.clear();
            cursor = cache.tables.scan(&cache.arena, cursor, &mut slots);
            let there = slots.iter().map(|slot| self.item(slot.address(), slot.frequency()));
            let there: Vec<_> = there.filter(|item| !self.is_expired(item)).collect();
            if !there.is_empty() {
                return Some(there[(seed >> 32) as usize % there.len()]);
            }
            lines -= 1;
        }
        None
    }
}
