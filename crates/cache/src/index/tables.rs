//! The tables of the index. The hash of a key selects the table. Each table has a lock for writers.
//!
//! The number of tables follows the number of items: see `split.rs`.

use crate::hash::KeyHash;
use crate::index::chunks::TableChunks;
use crate::index::level::{CurrentLevel, INITIAL_BITS, Level, TableId};
use crate::index::probe::{ProbeLine, SeenSlot};
use crate::index::slot::Slot;
use crate::index::spare::SparePages;
use crate::index::table::{Position, RETIRED, Room, Table, TableWriter};
use crate::memory::arena::Arena;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::yield_now;

/// Bits of a hash that a scan cursor leaves out. A table and its tag have fewer than those that
/// remain. Programs that read cursors as floating-point numbers lose nothing.
const CURSOR_SHIFT: u32 = 14;

/// Average number of items of a table at which the last of all tables has been split. A table is
/// full with a fifth more, which is eight standard deviations of a random hash.
pub(super) const LAST_SPLIT_ITEMS: u64 = 1376;

/// Minimum bytes of the budget for each table. A table that was split has about as many bytes.
const MIN_BUDGET_PER_TABLE: u64 = 8192;

/// All tables of a cache.
pub(crate) struct Tables {
    pub(super) level: CurrentLevel,
    /// Maximum number of bits that select a table.
    pub(super) max_bits: u32,
    pub(super) chunks: TableChunks,
    pub(super) spare: SparePages,
    /// Held while a table is split.
    pub(super) splitting: Mutex<()>,
    /// The largest number of items for which tables should be split.
    pub(super) expected_items: AtomicU64,
    /// Number of slots of items on disk.
    pub(super) on_disk: AtomicU64,
    /// Whether items can be on disk.
    with_disk: bool,
}

/// The table of a key, locked for writing.
pub(crate) struct LockedTable<'a> {
    tables: &'a Tables,
    arena: &'a Arena,
    id: TableId,
    table: &'a Table,
    items: MutexGuard<'a, u32>,
    hash: KeyHash,
    tag: u32,
    has_grown: bool,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits a moment before the `tries`th retry.
fn back_off(tries: u32) {
    if tries.is_multiple_of(64) { yield_now() } else { spin_loop() }
}

impl Tables {
    /// Creates the tables of a cache with a budget of `memory` bytes. `with_disk` is whether items
    /// can be on disk.
    pub(crate) fn new(memory: u64, with_disk: bool) -> Self {
        let max_bits = (memory / MIN_BUDGET_PER_TABLE).max(1).ilog2().max(INITIAL_BITS);
        Self {
            level: CurrentLevel::new(Level::INITIAL),
            max_bits,
            chunks: TableChunks::new(2 << max_bits),
            spare: SparePages::default(),
            splitting: Mutex::default(),
            expected_items: AtomicU64::new(0),
            on_disk: AtomicU64::new(0),
            with_disk,
        }
    }

    /// Returns the bytes that the tables take, without their pages.
    pub(crate) fn memory(&self) -> u64 {
        self.chunks.memory()
    }

    /// Returns the table of a key at present.
    #[inline]
    fn table_of(&self, hash: KeyHash) -> (TableId, &Table) {
        let id = self.level.load().table_of(hash);
        (id, self.chunks.table(id.number()))
    }

    /// Prefetches the table of a key, and its lock for a write.
    #[inline]
    pub(crate) fn prefetch_table(&self, hash: KeyHash, to_write: bool) {
        let id = self.level.load().table_of(hash);
        self.chunks.prefetch(id.number(), to_write);
    }

    /// Returns the home line of a key. Reads its table, but not the line.
    #[inline]
    pub(crate) fn home<'a>(&'a self, arena: &'a Arena, hash: KeyHash) -> ProbeLine<'a> {
        let (id, table) = self.table_of(hash);
        table.home(arena, id.number(), hash.tag(id.bits))
    }

    /// Returns whether items can be on disk.
    #[inline]
    pub(crate) fn has_disk(&self) -> bool {
        self.with_disk
    }

    /// Returns the slot of a key that was found by a [probe](ProbeLine::probe), with its present
    /// frequency, if it still points to the same item.
    #[inline]
    pub(crate) fn find_seen(&self, arena: &Arena, hash: KeyHash, seen: SeenSlot) -> Option<Slot> {
        let (id, table) = self.table_of(hash);
        table.find_seen(arena, id.number(), seen)
    }

    /// Finds the slot of a key without a lock. `is_match` compares the key of an item in memory. If
    /// there is none, returns that of an item on disk, which has the key with a high probability.
    #[inline]
    pub(crate) fn find(
        &self,
        arena: &Arena,
        hash: KeyHash,
        mut is_match: impl FnMut(Slot) -> bool,
    ) -> Option<Position> {
        let mut tries = 0;
        loop {
            let (id, table) = self.table_of(hash);
            let wanted = (hash.long_tag(id.bits), self.with_disk);
            if let Ok(found) = table.find(arena, wanted, &mut is_match) {
                return found;
            }
            tries += 1;
            back_off(tries);
        }
    }

    /// Counts a read of an item.
    #[inline]
    pub(crate) fn count_use(&self, arena: &Arena, hash: KeyHash, position: Position) {
        self.table_of(hash).1.count_use(arena, position);
    }

    /// Locks the table of a key for writing.
    #[inline]
    pub(crate) fn lock<'a>(&'a self, arena: &'a Arena, hash: KeyHash) -> LockedTable<'a> {
        let mut tries = 0;
        loop {
            let (id, table) = self.table_of(hash);
            let items = lock(&self.chunks.items(id.number()).0);
            // Another session may have split the table before it was locked here.
            if *items != RETIRED {
                let tag = hash.tag(id.bits);
                return LockedTable {
                    tables: self,
                    arena,
                    id,
                    table,
                    items,
                    hash,
                    tag,
                    has_grown: false,
                };
            }
            drop(items);
            tries += 1;
            back_off(tries);
        }
    }

    /// Calls `each` for all tables, one after the other, each of them locked.
    fn for_each(&self, arena: &Arena, mut each: impl FnMut(LockedTable<'_>)) {
        let mut next = Some(KeyHash(0));
        while let Some(hash) = next {
            let table = self.lock(arena, hash);
            next = table.id.hash_after();
            each(table);
        }
    }

    /// Returns the number of items.
    pub(crate) fn len(&self, arena: &Arena) -> u64 {
        let mut items = 0;
        self.for_each(arena, |table| items += u64::from(*table.items));
        items
    }

    /// Returns the number of items on disk.
    pub(crate) fn on_disk(&self) -> u64 {
        self.on_disk.load(Ordering::Relaxed)
    }

    /// Subtracts the slots of items on disk that are removed.
    fn subtract_on_disk(&self, slot: Slot) {
        if slot.is_on_disk() {
            self.on_disk.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of tables.
    pub(crate) fn count(&self) -> u64 {
        self.level.load().count()
    }

    /// Appends the slots of one line of a table to `out`, with the bits of the hash that are known:
    /// the line that the cursor designates. Returns the cursor of the next line, or 0 after the
    /// last. A cursor is the start of a hash, so it remains valid when tables grow or are split.
    /// Numbers that are no cursors end the scan.
    pub(crate) fn scan(&self, arena: &Arena, cursor: u64, out: &mut Vec<(Slot, KeyHash)>) -> u64 {
        if cursor > u64::MAX >> CURSOR_SHIFT {
            return 0;
        }
        let hash = KeyHash(cursor << CURSOR_SHIFT);
        let mut table = self.lock(arena, hash);
        let (id, tag) = (table.id, table.tag);
        let add = |slot: Slot| out.push((slot, hash.with_long_tag(id.bits, slot.known_bits())));
        let next = match table.writer().items_with_home(tag, add) {
            Some(tag) => Some(hash.with_tag(id.bits, tag)),
            None => id.hash_after(),
        };
        next.map_or(0, |hash| hash.0 >> CURSOR_SHIFT)
    }

    /// Returns a random cursor.
    pub(crate) fn random_cursor(seed: u64) -> u64 {
        seed >> CURSOR_SHIFT
    }

    /// Removes all slots and calls `each` with those of each table. If `is_exclusive` is set, no
    /// other session may use the tables, and as few remain as at first.
    pub(crate) fn clear(&self, arena: &Arena, is_exclusive: bool, mut each: impl FnMut(Vec<Slot>)) {
        let _no_splits = lock(&self.splitting);
        self.for_each(arena, |mut table| {
            let mut writer = table.writer();
            let slots: Vec<_> = writer.slots().collect();
            let pages = if is_exclusive { writer.retire() } else { writer.clear() };
            self.spare.add(&pages);
            drop(table);
            for slot in &slots {
                self.subtract_on_disk(*slot);
            }
            each(slots);
        });
        if is_exclusive {
            for prefix in 0..1 << INITIAL_BITS {
                let number = TableId { bits: INITIAL_BITS, prefix }.number();
                let mut items = lock(&self.chunks.items(number).0);
                let table = self.chunks.table(number);
                TableWriter { arena, table, items: &mut items }.start();
            }
            self.expected_items.store(0, Ordering::Relaxed);
            self.level.store(Level::INITIAL);
        }
    }

    /// Returns whether there are enough spare pages.
    #[inline]
    pub(crate) fn has_spare_pages(&self) -> bool {
        self.spare.are_enough()
    }

    /// Adds a segment to the spare pages.
    pub(crate) fn add_segment(&self, start: u64, len: u64) {
        self.spare.add_segment(start, len);
    }
}

impl LockedTable<'_> {
    #[inline]
    fn writer(&mut self) -> TableWriter<'_> {
        TableWriter { arena: self.arena, table: self.table, items: &mut self.items }
    }

    /// Finds the slot of the key as [`Tables::find`] does.
    #[inline]
    pub(crate) fn find(&mut self, is_match: impl FnMut(Slot) -> bool) -> Option<Position> {
        let long_tag = self.hash.long_tag(self.id.bits);
        let with_disk = self.tables.with_disk;
        self.writer().find(long_tag, with_disk, is_match)
    }

    /// Finds the slot of the item in memory at this address.
    pub(crate) fn find_address(&mut self, address: u64) -> Option<Position> {
        let found = self.find(|slot| slot.address() == address);
        found.filter(|position| !position.slot.is_on_disk())
    }

    /// Finds the slot of the item on disk with this place.
    pub(crate) fn find_place(&mut self, place: u64) -> Option<Position> {
        let long_tag = self.hash.long_tag(self.id.bits);
        self.writer().find_place(long_tag, place)
    }

    /// Replaces the slot at a position by that of the key's item on disk.
    pub(crate) fn move_to_disk(&mut self, position: Position, place: u64, frequency: u32) {
        let slot = Slot::on_disk(place, self.hash.long_tag(self.id.bits));
        self.writer().replace(position, slot.with_frequency(frequency));
        self.tables.on_disk.fetch_add(1, Ordering::Relaxed);
    }

    /// Inserts the slot of the key's item on disk, as [`insert`](Self::insert) does.
    pub(crate) fn insert_on_disk(&mut self, place: u64, frequency: u32) -> bool {
        let slot = Slot::on_disk(place, self.hash.long_tag(self.id.bits));
        let is_inserted = self.insert_slot(slot.with_frequency(frequency));
        self.tables.on_disk.fetch_add(u64::from(is_inserted), Ordering::Relaxed);
        is_inserted
    }

    /// Replaces the slot at a position by one with this address, and keeps its frequency.
    #[inline]
    pub(crate) fn replace(&mut self, position: Position, address: u64) {
        let frequency = position.slot.frequency();
        let slot = Slot::new(address, self.tag).with_frequency(frequency);
        self.writer().replace(position, slot);
        self.tables.subtract_on_disk(position.slot);
    }

    /// Replaces the slot at a position by one with this address and frequency.
    pub(crate) fn relocate(&mut self, position: Position, address: u64, frequency: u32) {
        let slot = Slot::new(address, self.tag).with_frequency(frequency);
        self.writer().replace(position, slot);
    }

    /// Empties the slot at a position.
    pub(crate) fn remove(&mut self, position: Position) {
        self.writer().remove(position);
        self.tables.subtract_on_disk(position.slot);
    }

    /// Inserts the key's slot with this address and frequency. Returns `false` if the table is full
    /// and no page is available.
    #[inline]
    pub(crate) fn insert(&mut self, address: u64, frequency: u32) -> bool {
        self.insert_slot(Slot::new(address, self.tag).with_frequency(frequency))
    }

    #[inline]
    fn insert_slot(&mut self, slot: Slot) -> bool {
        if self.writer().needs_page()
            && let Some(pages) = self.tables.spare.take(1)
        {
            self.writer().grow(pages[0]);
            self.has_grown = true;
        }
        self.writer().insert(slot)
    }

    /// Returns whether a slot can be inserted.
    pub(super) fn room(&mut self) -> Room {
        let has_pages = !self.tables.spare.is_empty();
        self.writer().room(has_pages)
    }

    /// Unlocks the table. If it has grown or is nearly full, returns the number of items that all
    /// tables contain if they contain as many as this one, so that tables are split.
    pub(crate) fn unlock(self) -> Option<u64> {
        let is_due = self.has_grown || u64::from(*self.items) > LAST_SPLIT_ITEMS;
        is_due.then(|| u64::from(*self.items) << self.id.bits)
    }
}
