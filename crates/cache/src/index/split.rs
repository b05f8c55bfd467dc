//! Splitting tables, so that their number follows the number of items.
//!
//! When tables have about [`FIRST_SPLIT_ITEMS`] items, they begin to be split, one after the other;
//! at [`LAST_SPLIT_ITEMS`], all have been. As hashes are random, one table shows how many items the
//! others have. So all tables have between half of the first and all of the second number. Each
//! split takes a few tens of microseconds, in which no session can write to that table.
//!
//! A slot contains only the bits of the hash that follow the prefix of its table. The halves need
//! one more bit, so a split reads the keys.

use crate::hash::KeyHash;
use crate::index::slot::Slot;
use crate::index::table::{Table, TableWriter};
use crate::index::tables::{Tables, lock};
use crate::memory::arena::Arena;
use std::sync::TryLockError;

/// Average number of items of a table at which the first of all tables is split.
const FIRST_SPLIT_ITEMS: u64 = 1216;

/// Average number of items of a table at which the last of all tables has been split. A table is
/// full with a fifth more, which is eight standard deviations of a random hash.
const LAST_SPLIT_ITEMS: u64 = 1376;

/// Maximum number of splits that one insertion performs.
const MAX_SPLITS: usize = 4;

/// Distance in slots between the item whose key is read and the one that is prefetched.
const PREFETCH_DISTANCE: usize = 16;

impl Tables {
    /// Splits the next tables, if all tables together contain about `items` items and have too
    /// many. `hash_of` reads the key of the item at an address and returns its hash.
    pub(crate) fn split(&self, arena: &Arena, items: u64, hash_of: impl Fn(u64) -> KeyHash) {
        let _splitting = match self.splitting.try_lock() {
            Ok(splitting) => splitting,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another session splits tables now.
            Err(TryLockError::WouldBlock) => return,
        };
        for _ in 0..MAX_SPLITS {
            if !self.should_split(items) || !self.split_next(arena, &hash_of) {
                break;
            }
        }
    }

    /// Returns whether the next table should be split when there are this many items.
    fn should_split(&self, items: u64) -> bool {
        let level = self.level.load();
        let average = items >> level.bits;
        let progress = average.saturating_sub(FIRST_SPLIT_ITEMS) << level.bits;
        u64::from(level.split) < progress / (LAST_SPLIT_ITEMS - FIRST_SPLIT_ITEMS)
    }

    /// Splits the next table. Returns `false` if there are not enough spare pages, or as many
    /// tables as possible.
    fn split_next(&self, arena: &Arena, hash_of: &impl Fn(u64) -> KeyHash) -> bool {
        let level = self.level.load();
        let parent_id = level.next_to_split();
        if level.bits == self.max_bits {
            return false;
        }
        let mut items = lock(&self.chunks.items(parent_id.number()).0);
        let table = self.chunks.table(parent_id.number());
        let mut parent = TableWriter { arena, table, items: &mut items };
        let slots: Vec<_> = parent.slots().collect();
        let halves = parent_id.halves();
        let mut parts = [(); 2].map(|()| Vec::with_capacity(slots.len() / 2 + slots.len() / 8));
        for (at, slot) in slots.iter().enumerate() {
            if let Some(ahead) = slots.get(at + PREFETCH_DISTANCE) {
                arena.prefetch(ahead.address(), 1);
            }
            let hash = hash_of(slot.address());
            let bits = parent_id.bits + 1;
            let moved = Slot::new(slot.address(), hash.tag(bits));
            let half = hash.prefix(bits) as usize & 1;
            parts[half].push(moved.with_frequency(slot.frequency()));
        }
        let counts = [0, 1].map(|half| Table::pages_for(parts[half].len()));
        let Some(mut pages) = self.spare.take(counts[0] + counts[1]) else { return false };
        let [mut first, mut second] = halves.map(|id| lock(&self.chunks.items(id.number()).0));
        for ((half, items), (part, count)) in
            halves.iter().zip([&mut first, &mut second]).zip(parts.into_iter().zip(counts))
        {
            let table = self.chunks.table(half.number());
            TableWriter { arena, table, items: &mut *items }.start();
            let pages = pages.split_off(pages.len() - count);
            **items = table.fill(arena, &pages, part.into_iter());
        }
        let freed = parent.retire();
        self.level.store(level.after_split());
        drop((first, second, items));
        self.spare.add(&freed);
        true
    }
}
