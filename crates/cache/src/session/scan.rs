//! Going through what is there, without holding anybody up.

use crate::hash::TAG_BITS;
use crate::index::table::MOST_UNITS;
use crate::item::Item;
use crate::memory::arena::UNIT_LINES;
use crate::session::state::Turn;

/// Empty lines looked at for each item asked for, so that one call takes little time.
const LINES_EACH: usize = 16;

/// Lines that a table can have.
const LINES_MOST: u64 = (MOST_UNITS * UNIT_LINES) as u64;

impl Turn<'_> {
    /// Calls `each` for some of the items, at least so many where there are, and answers the cursor
    /// with which to go on; it is 0 after the last. A scan begins with 0 and may go on in later
    /// turns. Every key that is there all the while is met, some more than once; one that comes or
    /// goes meanwhile may be met or not.
    pub fn scan(&self, cursor: u64, at_least: usize, mut each: impl FnMut(&Item<'_>)) -> u64 {
        let cache = self.cache();
        let mut slots = Vec::new();
        let (mut cursor, mut met, mut lines) = (cursor, 0, 0);
        loop {
            slots.clear();
            cursor = cache.tables.scan(&cache.arena, cursor, &mut slots);
            for slot in &slots {
                let item = self.item(slot.place(), slot.frequency());
                if !self.is_over(&item) {
                    met += 1;
                    each(&item);
                }
            }
            // A cache of few items has many empty lines: they count, too.
            lines += 1;
            if cursor == 0 || met >= at_least || lines >= LINES_EACH.saturating_mul(at_least.max(1))
            {
                return cursor;
            }
        }
    }

    /// Some item, chosen by the seed: none if there are none. Each has about the same chance.
    pub fn random(&self, seed: u64) -> Option<Item<'_>> {
        let cache = self.cache();
        let mut slots = Vec::new();
        let tables = cache.tables.count() as u64;
        let mut cursor = seed % (tables << TAG_BITS);
        let mut lines = tables.saturating_mul(LINES_MOST);
        while lines > 0 {
            slots.clear();
            cursor = cache.tables.scan(&cache.arena, cursor, &mut slots);
            let there = slots.iter().map(|slot| self.item(slot.place(), slot.frequency()));
            let there: Vec<_> = there.filter(|item| !self.is_over(item)).collect();
            if !there.is_empty() {
                return Some(there[(seed >> 32) as usize % there.len()]);
            }
            lines -= 1;
        }
        None
    }
}
