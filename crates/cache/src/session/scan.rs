//! Iterating over all items, and picking random ones. Both lock one table of the index at a time,
//! for the duration of one line, so writers hardly wait.

use crate::cache::Cache;
use crate::index::slot::Slot;
use crate::index::table::MAX_PAGES;
use crate::index::tables::Tables;
use crate::item::Item;
use crate::memory::arena::INDEX_PAGE_LINES;
use crate::session::prefetch::HEADER_AND_KEY_LEN;
use crate::session::state::Guard;

/// Maximum number of index lines examined for each item requested. Bounds the time of a call when
/// the index is mostly empty.
const MAX_LINES_PER_ITEM: usize = 16;

/// Number of items that are prefetched before the first one is read, so that the processor waits
/// for all of them at the same time. The last index line may add more.
const MAX_PREFETCHED: usize = 32;

/// Maximum number of lines of a table.
const MAX_LINES_PER_TABLE: u64 = (MAX_PAGES * INDEX_PAGE_LINES) as u64;

impl Guard<'_> {
    /// Calls `each` for the next items, about `at_least` of them, and returns the cursor to
    /// continue with. Start with cursor 0; the scan is complete when 0 is returned. It may continue
    /// under later guards. A call examines at most 16 index lines for each item of `at_least`, so
    /// it may find fewer items, or none.
    ///
    /// Keys that exist during the whole scan are found at least once. Keys that are stored or
    /// removed meanwhile may be found or not. Items on disk are found after they were promoted: see
    /// [`take_on_disk`](Self::take_on_disk).
    pub fn scan(&self, cursor: u64, at_least: usize, each: impl FnMut(&Item<'_>)) -> u64 {
        self.scan_slots(cursor, at_least, |_| true, each)
    }

    /// Calls `each` for the next items with this [frequency](Item::frequency), as
    /// [`scan`](Self::scan) does for all items. Does not read the others, and leaves out items on
    /// disk.
    pub fn scan_frequency(
        &self,
        cursor: u64,
        at_least: usize,
        frequency: u32,
        each: impl FnMut(&Item<'_>),
    ) -> u64 {
        let is_included = |slot: Slot| slot.frequency() == frequency && !slot.is_on_disk();
        self.scan_slots(cursor, at_least, is_included, each)
    }

    /// Calls `each` for the next items that are in memory, as [`scan`](Self::scan) does for all
    /// items.
    pub fn scan_in_memory(&self, cursor: u64, at_least: usize, each: impl FnMut(&Item<'_>)) -> u64 {
        self.scan_slots(cursor, at_least, |slot| !slot.is_on_disk(), each)
    }

    fn scan_slots(
        &self,
        cursor: u64,
        at_least: usize,
        is_included: impl Fn(Slot) -> bool,
        mut each: impl FnMut(&Item<'_>),
    ) -> u64 {
        let Cache { tables, arena, .. } = self.cache();
        let max_lines = MAX_LINES_PER_ITEM.saturating_mul(at_least.max(1));
        let (mut cursor, mut found, mut lines) = (cursor, 0, 0);
        let mut slots = Vec::new();
        loop {
            slots.clear();
            let wanted = MAX_PREFETCHED.min(at_least - found);
            loop {
                cursor = tables.scan(arena, cursor, &mut slots);
                // Counts empty lines, too: a cache with few items has many.
                lines += 1;
                if cursor == 0 || slots.len() >= wanted || lines >= max_lines {
                    break;
                }
            }
            slots.retain(|(slot, _)| is_included(*slot));
            for (slot, _) in slots.iter().filter(|(slot, _)| !slot.is_on_disk()) {
                arena.prefetch_item(slot.address(), HEADER_AND_KEY_LEN);
            }
            for (slot, hash) in &slots {
                if slot.is_on_disk() {
                    found += 1;
                    self.note_without_key(*hash, *slot);
                    continue;
                }
                let item = self.item(slot.address(), slot.frequency());
                if !self.is_expired(&item) {
                    found += 1;
                    each(&item);
                }
            }
            if cursor == 0 || found >= at_least || lines >= max_lines {
                return cursor;
            }
        }
    }

    /// Returns a random item, chosen by `seed`, or `None` if there are none: an item of a random
    /// index line, or of the next line with items. So items after empty lines are more likely than
    /// others, which matters only in a cache with few items. If the items of that line are on disk,
    /// returns `None`: see [`take_on_disk`](Self::take_on_disk).
    pub fn random(&self, seed: u64) -> Option<Item<'_>> {
        let cache = self.cache();
        let mut slots = Vec::new();
        let mut cursor = Tables::random_cursor(seed);
        let mut lines = cache.tables.count().saturating_mul(MAX_LINES_PER_TABLE);
        while lines > 0 {
            slots.clear();
            cursor = cache.tables.scan(&cache.arena, cursor, &mut slots);
            let items = slots.iter().filter(|(slot, _)| !slot.is_on_disk());
            let items = items.map(|(slot, _)| self.item(slot.address(), slot.frequency()));
            let valid: Vec<_> = items.filter(|item| !self.is_expired(item)).collect();
            if !valid.is_empty() {
                return Some(valid[seed as usize % valid.len()]);
            }
            if let Some((slot, hash)) = slots.iter().find(|(slot, _)| slot.is_on_disk()) {
                self.note_without_key(*hash, *slot);
                return None;
            }
            lines -= 1;
        }
        None
    }
}
