//! The tables of the index. The hash of a key selects the table. Each table has a lock for writers.

use crate::hash::{KeyHash, TAG_BITS};
use crate::index::slot::Slot;
use crate::index::table::{Position, Table, TableWriter};
use crate::memory::arena::{Arena, INDEX_PAGE_LEN, prefetch_to_write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of budget for each table. A table of short items grows in a fraction of a millisecond at
/// this size, and an empty cache is small.
const BUDGET_PER_TABLE: u64 = 512 << 10;

/// Minimum number of spare pages, so that tables of several sessions can grow at the same time.
pub(crate) const MIN_SPARE_PAGES: usize = 32;

/// All tables of a cache.
pub(crate) struct Tables {
    bits: u32,
    all: Box<[Table]>,
    /// Number of items of each table, apart from what readers read.
    items: Box<[Items]>,
    /// Spare pages for tables.
    pages: Mutex<Vec<u32>>,
    /// Number of spare pages. Changes only under their lock; every write reads it without a lock.
    spare_pages: AtomicUsize,
}

/// Number of items of a table, in a cache line of its own: writers of different tables do not
/// contend.
#[derive(Default)]
#[repr(align(64))]
struct Items(Mutex<u32>);

/// The table of a key, locked for writing.
pub(crate) struct LockedTable<'a> {
    tables: &'a Tables,
    arena: &'a Arena,
    table: &'a Table,
    items: MutexGuard<'a, u32>,
    tag: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tables {
    pub(crate) fn new(memory: u64) -> Self {
        let bits = (memory / BUDGET_PER_TABLE).max(1).next_power_of_two().ilog2();
        let all = (0..1_usize << bits).map(|_| Table::default()).collect();
        let items = (0..1_usize << bits).map(|_| Items::default()).collect();
        Self { bits, all, items, pages: Mutex::default(), spare_pages: AtomicUsize::new(0) }
    }

    /// Returns the bytes that the tables take, without their pages.
    pub(crate) fn memory(&self) -> u64 {
        (size_of_val(&*self.all) + size_of_val(&*self.items)) as u64
    }

    /// Prefetches the home line of a key for a lookup.
    #[inline]
    pub(crate) fn prefetch(&self, arena: &Arena, hash: KeyHash) {
        self.all[hash.table(self.bits)].prefetch(arena, hash.tag(self.bits), false);
    }

    /// Prefetches the home line and the lock of a key for a write.
    #[inline]
    pub(crate) fn prefetch_to_write(&self, arena: &Arena, hash: KeyHash) {
        let number = hash.table(self.bits);
        self.all[number].prefetch(arena, hash.tag(self.bits), true);
        prefetch_to_write(&self.items[number]);
    }

    /// Finds the slot of a key without a lock. `is_match` compares the key.
    #[inline]
    pub(crate) fn find(
        &self,
        arena: &Arena,
        hash: KeyHash,
        is_match: impl FnMut(Slot) -> bool,
    ) -> Option<Position> {
        self.all[hash.table(self.bits)].find(arena, hash.tag(self.bits), is_match)
    }

    /// Counts a read of an item.
    #[inline]
    pub(crate) fn count_use(&self, arena: &Arena, hash: KeyHash, position: Position) {
        self.all[hash.table(self.bits)].count_use(arena, position);
    }

    /// Locks the table of a key for writing.
    #[inline]
    pub(crate) fn lock<'a>(&'a self, arena: &'a Arena, hash: KeyHash) -> LockedTable<'a> {
        let (number, tag) = (hash.table(self.bits), hash.tag(self.bits));
        let (table, items) = (&self.all[number], lock(&self.items[number].0));
        LockedTable { tables: self, arena, table, items, tag }
    }

    /// Returns the number of items.
    pub(crate) fn len(&self) -> u64 {
        self.items.iter().map(|items| u64::from(*lock(&items.0))).sum()
    }

    /// Returns the number of tables.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Appends the slots of one line of a table to `out`: the line that the cursor designates.
    /// Returns the cursor of the next line, or 0 after the last. A cursor contains the bits of a
    /// hash that select table and line, so it remains valid when tables grow.
    pub(crate) fn scan(&self, arena: &Arena, cursor: u64, out: &mut Vec<Slot>) -> u64 {
        let (number, tag) = ((cursor >> TAG_BITS) as usize, cursor as u32 & ((1 << TAG_BITS) - 1));
        let (Some(table), Some(items)) = (self.all.get(number), self.items.get(number)) else {
            return 0;
        };
        let mut items = lock(&items.0);
        let writer = TableWriter { arena, table, items: &mut items };
        match writer.items_with_home(tag, out) {
            Some(next) => (number as u64) << TAG_BITS | u64::from(next),
            None if number + 1 < self.all.len() => (number as u64 + 1) << TAG_BITS,
            None => 0,
        }
    }

    /// Empties a table and returns the slots that were in use.
    pub(crate) fn clear(&self, arena: &Arena, number: usize) -> Vec<Slot> {
        let mut items = lock(&self.items[number].0);
        let mut writer = TableWriter { arena, table: &self.all[number], items: &mut items };
        let slots = writer.slots().collect();
        writer.clear();
        slots
    }

    /// Returns whether there are enough spare pages.
    #[inline]
    pub(crate) fn has_spare_pages(&self) -> bool {
        self.spare_pages.load(Ordering::Relaxed) >= MIN_SPARE_PAGES
    }

    /// Adds a segment to the spare pages. The first page of the arena is left out, so that no item
    /// has address 0.
    pub(crate) fn add_segment(&self, start: u64, len: u64) {
        let first = (start / INDEX_PAGE_LEN as u64).max(1) as u32;
        let end = ((start + len) / INDEX_PAGE_LEN as u64) as u32;
        let mut pages = lock(&self.pages);
        pages.extend((first..end).rev());
        self.spare_pages.store(pages.len(), Ordering::Relaxed);
    }

    /// Takes up to `count` spare pages.
    fn take_pages(&self, count: usize) -> Vec<u32> {
        let mut pages = lock(&self.pages);
        let keep = pages.len() - count.min(pages.len());
        let taken = pages.split_off(keep);
        self.spare_pages.store(keep, Ordering::Relaxed);
        taken
    }
}

impl LockedTable<'_> {
    #[inline]
    fn writer(&mut self) -> TableWriter<'_> {
        TableWriter { arena: self.arena, table: self.table, items: &mut self.items }
    }

    #[inline]
    pub(crate) fn find(&mut self, is_match: impl FnMut(Slot) -> bool) -> Option<Position> {
        let tag = self.tag;
        self.writer().find(tag, is_match)
    }

    /// Replaces the slot at a position by one with this address, and keeps its frequency.
    #[inline]
    pub(crate) fn replace(&mut self, position: Position, address: u64) {
        let frequency = position.slot.frequency();
        let slot = Slot::new(address, self.tag).with_frequency(frequency);
        self.writer().replace(position, slot);
    }

    /// Replaces the slot at a position by one with this address and frequency.
    pub(crate) fn relocate(&mut self, position: Position, address: u64, frequency: u32) {
        let slot = Slot::new(address, self.tag).with_frequency(frequency);
        self.writer().replace(position, slot);
    }

    /// Empties the slot at a position.
    pub(crate) fn remove(&mut self, position: Position) {
        self.writer().remove(position);
    }

    /// Inserts the key's slot with this address. Returns `false` if the table is full and no page
    /// is available.
    pub(crate) fn insert(&mut self, address: u64) -> bool {
        let slot = Slot::new(address, self.tag);
        let missing_pages = self.writer().pages_to_grow();
        if missing_pages > 0 {
            let pages = self.tables.take_pages(missing_pages);
            if !pages.is_empty() {
                self.writer().grow(&pages);
            }
        }
        self.writer().insert(slot)
    }
}
