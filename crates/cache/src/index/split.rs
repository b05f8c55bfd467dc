//! Splitting tables, so that their number follows the number of items.
//!
//! When tables have about [`FIRST_SPLIT_ITEMS`] items, they begin to be split, one after the other;
//! at [`LAST_SPLIT_ITEMS`], all have been. As hashes are random, one table shows how many items the
//! others have. So all tables have between half of the first and all of the second number. Each
//! split takes a few tens of microseconds, in which no session can write to that table.
//!
//! A slot contains only the bits of the hash that follow the prefix of its table. The halves need
//! one more bit, so a split reads the keys of items in memory. For items on disk see `slot.rs`.

use crate::hash::KeyHash;
use crate::index::slot::Slot;
use crate::index::table::Room;
use crate::index::table::{Table, TableWriter};
use crate::index::tables::{LAST_SPLIT_ITEMS, Tables, lock};
use crate::memory::arena::Arena;
use std::sync::TryLockError;
use std::sync::atomic::Ordering;

/// Average number of items of a table at which the first of all tables is split.
const FIRST_SPLIT_ITEMS: u64 = 1216;

/// Maximum number of splits that one insertion performs.
const MAX_SPLITS: usize = 4;

/// Distance in slots between the item whose key is read and the one that is prefetched.
const PREFETCH_DISTANCE: usize = 16;

/// The items to which slots point.
pub(crate) trait SlotItems {
    /// Returns the hash of the key of the item in memory at an address.
    fn hash(&self, address: u64) -> KeyHash;

    /// Notes that the slot of the record at a place is dropped, since too few bits of its hash are
    /// known. Called while its table is locked.
    fn note_dropped(&self, place: u64);
}

impl Tables {
    /// Splits the next tables, if all tables together contain about `items` items and have too
    /// many.
    ///
    /// Returns whether more tables should be split.
    pub(crate) fn split(&self, arena: &Arena, items: u64, slot_items: &impl SlotItems) -> bool {
        // If another session splits tables now, it, or the next insertion, continues until there
        // are enough.
        let items = self.expected_items.fetch_max(items, Ordering::Relaxed).max(items);
        let _splitting = match self.splitting.try_lock() {
            Ok(splitting) => splitting,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return true,
        };
        for _ in 0..MAX_SPLITS {
            if !self.should_split(items) || !self.split_next(arena, slot_items) {
                return false;
            }
        }
        true
    }

    /// Splits tables until that of a key has room for another slot. This is necessary only if the
    /// thread that splits tables was interrupted for long. Returns `false` if there are not enough
    /// pages.
    #[cold]
    pub(crate) fn make_room(
        &self,
        arena: &Arena,
        hash: KeyHash,
        slot_items: &impl SlotItems,
    ) -> bool {
        let _splitting = lock(&self.splitting);
        loop {
            let room = self.lock(arena, hash).room();
            if room == Room::Available {
                return true;
            }
            if room == Room::NoPage || !self.split_next(arena, slot_items) {
                return false;
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
    fn split_next(&self, arena: &Arena, slot_items: &impl SlotItems) -> bool {
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
            if let Some(ahead) = slots.get(at + PREFETCH_DISTANCE).filter(|it| !it.is_on_disk()) {
                arena.prefetch(ahead.address(), 1);
            }
            if slot.is_on_disk() {
                let (half, moved) = slot.after_split();
                parts[half].extend(moved);
                if moved.is_none() {
                    slot_items.note_dropped(slot.place());
                    self.on_disk.fetch_sub(1, Ordering::Relaxed);
                }
                continue;
            }
            let hash = slot_items.hash(slot.address());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::level::{INITIAL_BITS, Level};
    use crate::memory::arena::INDEX_PAGE_LEN;
    use nuthatch_testing::random::Random;
    use std::cell::RefCell;
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    /// Bytes of the arena. Its upper half has the pages of the index, and its lower half the
    /// addresses of items, which nothing reads.
    const ARENA_LEN: u64 = 64 << 20;

    /// Items at one address for each number, whose keys have random hashes.
    struct Index {
        arena: Arena,
        tables: Tables,
    }

    fn hash_of(address: u64) -> KeyHash {
        KeyHash(Random::new(address).next_u64())
    }

    /// The items of an index without a disk.
    struct Numbers;

    impl SlotItems for Numbers {
        fn hash(&self, address: u64) -> KeyHash {
            hash_of(address)
        }

        fn note_dropped(&self, place: u64) {
            panic!("{place}: there is no disk");
        }
    }

    fn address(number: u64) -> u64 {
        32 * number + 32
    }

    impl Index {
        fn new() -> Self {
            let arena = Arena::new(ARENA_LEN as usize, 0).expect("memory");
            let tables = Tables::new(ARENA_LEN, false);
            tables.add_segment(ARENA_LEN / 2, ARENA_LEN / 2);
            Self { arena, tables }
        }

        fn insert(&self, number: u64) {
            let hash = hash_of(address(number));
            loop {
                let mut table = self.tables.lock(&self.arena, hash);
                if table.insert(address(number), 0) {
                    if let Some(items) = table.unlock() {
                        self.tables.split(&self.arena, items, &Numbers);
                    }
                    return;
                }
                drop(table);
                assert!(self.tables.make_room(&self.arena, hash, &Numbers), "{number}");
            }
        }

        fn has(&self, number: u64) -> bool {
            let hash = hash_of(address(number));
            let is_match = |slot: Slot| slot.address() == address(number);
            self.tables.find(&self.arena, hash, is_match).is_some()
        }

        fn remove(&self, number: u64) {
            let mut table = self.tables.lock(&self.arena, hash_of(address(number)));
            let found = table.find(|slot| slot.address() == address(number));
            table.remove(found.expect("it was inserted"));
        }

        /// Returns the bytes of pages in use.
        fn page_bytes(&self) -> u64 {
            let all = ARENA_LEN / 2 / INDEX_PAGE_LEN as u64;
            (all - self.tables.spare.len() as u64) * INDEX_PAGE_LEN as u64
        }
    }

    #[test]
    fn the_index_is_as_large_as_its_items_need() {
        let index = Index::new();
        for number in 0..300_000 {
            index.insert(number);
            if number % 10_000 == 9_999 {
                let items = number + 1;
                assert_eq!(index.tables.len(&index.arena), items);
                let per_table = items / index.tables.count();
                assert!(items < 20_000 || (580..=1400).contains(&per_table), "{per_table}");
                let per_item = index.page_bytes() as f64 / items as f64;
                assert!(items < 20_000 || (8.5..10.5).contains(&per_item), "{per_item} at {items}");
            }
        }
        assert!((0..300_000).all(|number| index.has(number)));
        assert!((300_000..400_000).all(|number| !index.has(number)));
        (0..300_000).step_by(2).for_each(|number| index.remove(number));
        assert!((0..300_000).all(|number| index.has(number) == (number % 2 == 1)));
    }

    #[test]
    fn a_scan_finds_each_key_while_tables_split() {
        let index = Index::new();
        (0..50_000).for_each(|number| index.insert(number));
        let (mut cursor, mut found, mut next) = (0, HashSet::new(), 50_000);
        let mut slots = Vec::new();
        loop {
            slots.clear();
            cursor = index.tables.scan(&index.arena, cursor, &mut slots);
            found.extend(slots.iter().map(|(slot, _)| slot.address()));
            if cursor == 0 {
                break;
            }
            (0..20).for_each(|more| index.insert(next + more));
            next += 20;
        }
        assert!(index.tables.count() > 64, "tables were split meanwhile");
        assert!((0..50_000).all(|number| found.contains(&address(number))));
    }

    #[test]
    fn readers_find_all_keys_while_tables_split() {
        let index = Index::new();
        let inserted = AtomicU64::new(0);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut random = Random::new(1);
                let mut reads = 0_u64;
                loop {
                    let end = inserted.load(Ordering::Acquire);
                    for _ in 0..end.min(100) {
                        let number = random.below(end);
                        assert!(index.has(number), "{number} of {end}");
                        reads += 1;
                    }
                    if end == 200_000 {
                        return reads;
                    }
                }
            });
            for number in 0..200_000 {
                index.insert(number);
                inserted.store(number + 1, Ordering::Release);
            }
            assert!(reader.join().expect("no panic") > 0);
        });
    }

    #[test]
    fn writers_of_one_table_continue_after_it_was_split() {
        let index = Index::new();
        thread::scope(|scope| {
            for part in 0..4 {
                let index = &index;
                scope.spawn(move || {
                    (0..50_000).for_each(|number| index.insert(4 * number + part));
                });
            }
        });
        assert_eq!(index.tables.len(&index.arena), 200_000);
        assert!((0..200_000).all(|number| index.has(number)));
    }

    /// The items of an index with a disk: all slots are of records.
    #[derive(Default)]
    struct Records(RefCell<Vec<u64>>);

    impl SlotItems for Records {
        fn hash(&self, address: u64) -> KeyHash {
            panic!("{address}: no item is in memory");
        }

        fn note_dropped(&self, place: u64) {
            self.0.borrow_mut().push(place);
        }
    }

    /// When too few bits of a hash are known, the slot is dropped, and its record noted.
    #[test]
    fn dropped_slots_of_records_are_noted() {
        let memory = 1_u64 << 30;
        let arena = Arena::new(memory as usize, 0).expect("memory");
        let tables = Tables::new(memory, true);
        tables.add_segment(memory / 2, memory / 2);
        for place in 1..=100 {
            assert!(tables.lock(&arena, hash_of(place)).insert_on_disk(place, 0));
        }
        let records = Records::default();
        for bits in INITIAL_BITS + 1..=16 {
            while tables.level.load().bits < bits {
                assert!(tables.split_next(&arena, &records));
            }
            let expected = if bits < 16 { (100, 100, 0) } else { (0, 0, 100) };
            let dropped = records.0.borrow().len();
            assert_eq!((tables.len(&arena), tables.on_disk(), dropped), expected, "{bits} bits");
        }
        let mut dropped = records.0.into_inner();
        dropped.sort_unstable();
        assert!(dropped.iter().copied().eq(1..=100));
    }

    #[test]
    fn without_pages_tables_are_not_split() {
        let index = Index::new();
        (0..19_000).for_each(|number| index.insert(number));
        let level = index.tables.level.load();
        assert_eq!(level, Level::INITIAL);
        let pages = index.tables.spare.take(index.tables.spare.len()).expect("all of them");
        assert!(!index.tables.split_next(&index.arena, &Numbers));
        assert_eq!(index.tables.level.load(), level);
        index.tables.spare.add(&pages);
        assert!(index.tables.split_next(&index.arena, &Numbers));
        assert!((0..19_000).all(|number| index.has(number)));
    }

    /// After FLUSHALL of many items, few new ones must not be spread over many tables.
    #[test]
    fn an_exclusive_clear_leaves_the_initial_tables() {
        let index = Index::new();
        for _ in 0..3 {
            (0..60_000).for_each(|number| index.insert(number));
            let mut removed = 0;
            index.tables.clear(&index.arena, false, |slots| removed += slots.len());
            assert_eq!((removed, index.tables.len(&index.arena)), (60_000, 0));
            assert!(index.tables.count() > 32);
            (0..1000).for_each(|number| index.insert(number));
            index.tables.clear(&index.arena, true, |slots| removed += slots.len());
            assert_eq!((removed, index.tables.len(&index.arena)), (61_000, 0));
            assert_eq!(index.tables.level.load(), Level::INITIAL);
            assert_eq!(index.page_bytes(), 0);
            assert!((0..1000).all(|number| !index.has(number)));
        }
    }
}
