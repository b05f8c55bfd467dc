//! The index: tables that keys are spread over by their hash, each with a lock for its writers.

use crate::hash::{KeyHash, TAG_BITS};
use crate::index::slot::Slot;
use crate::index::table::{Position, Table, Writer};
use crate::memory::arena::{Arena, UNIT_LEN, prefetch_to_write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One table for so many bytes of memory: so that a table of short items is still placed anew in a
/// fraction of a millisecond, and that an empty cache is small.
const MEMORY_EACH: u64 = 512 << 10;

/// Pieces kept at hand, so that a table that must grow can: for each session that might write.
pub(crate) const UNITS_AT_HAND: usize = 32;

/// All tables.
pub(crate) struct Tables {
    bits: u32,
    each: Box<[Table]>,
    /// The number of items of each table. Apart from what readers read.
    items: Box<[Items]>,
    /// Pieces of memory for tables.
    units: Mutex<Vec<u32>>,
    /// How many those are. Changes under their lock; every write looks here, and locks nothing.
    at_hand: AtomicUsize,
}

/// How many items a table has, in a line of its own: who writes to one table writes to no other's.
#[derive(Default)]
#[repr(align(64))]
struct Items(Mutex<u32>);

/// A table that is locked for writing.
pub(crate) struct Locked<'a> {
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
        let bits = (memory / MEMORY_EACH).max(1).next_power_of_two().ilog2();
        let each = (0..1_usize << bits).map(|_| Table::default()).collect();
        let items = (0..1_usize << bits).map(|_| Items::default()).collect();
        Self { bits, each, items, units: Mutex::default(), at_hand: AtomicUsize::new(0) }
    }

    /// Bytes besides the pieces.
    pub(crate) fn memory(&self) -> u64 {
        (size_of_val(&*self.each) + size_of_val(&*self.items)) as u64
    }

    /// Asks for the line of a key ahead of a lookup.
    #[inline]
    pub(crate) fn prefetch(&self, arena: &Arena, hash: KeyHash) {
        self.each[hash.table(self.bits)].prefetch(arena, hash.tag(self.bits), false);
    }

    /// As [`prefetch`](Self::prefetch), ahead of a write.
    #[inline]
    pub(crate) fn prefetch_to_write(&self, arena: &Arena, hash: KeyHash) {
        let number = hash.table(self.bits);
        self.each[number].prefetch(arena, hash.tag(self.bits), true);
        prefetch_to_write(&self.items[number]);
    }

    /// Finds the slot of a key without a lock. `suits` compares the key.
    #[inline]
    pub(crate) fn find(
        &self,
        arena: &Arena,
        hash: KeyHash,
        suits: impl FnMut(Slot) -> bool,
    ) -> Option<Position> {
        self.each[hash.table(self.bits)].find(arena, hash.tag(self.bits), suits)
    }

    /// Counts that an item was asked for.
    #[inline]
    pub(crate) fn count_use(&self, arena: &Arena, hash: KeyHash, position: Position) {
        self.each[hash.table(self.bits)].count_use(arena, position);
    }

    /// Locks the table of a key for writing.
    #[inline]
    pub(crate) fn lock<'a>(&'a self, arena: &'a Arena, hash: KeyHash) -> Locked<'a> {
        let (number, tag) = (hash.table(self.bits), hash.tag(self.bits));
        let (table, items) = (&self.each[number], lock(&self.items[number].0));
        Locked { tables: self, arena, table, items, tag }
    }

    /// Number of items.
    pub(crate) fn len(&self) -> u64 {
        self.items.iter().map(|items| u64::from(*lock(&items.0))).sum()
    }

    /// Number of tables.
    pub(crate) fn count(&self) -> usize {
        self.each.len()
    }

    /// Appends the items of one line of a table to `out`: the one that the cursor points at.
    /// Answers the cursor of the next line, or 0 after the last. A cursor holds the bits of a hash
    /// that choose table and line, so that it stays right when tables grow.
    pub(crate) fn scan(&self, arena: &Arena, cursor: u64, out: &mut Vec<Slot>) -> u64 {
        let (number, tag) = ((cursor >> TAG_BITS) as usize, cursor as u32 & ((1 << TAG_BITS) - 1));
        let (Some(table), Some(items)) = (self.each.get(number), self.items.get(number)) else {
            return 0;
        };
        let mut items = lock(&items.0);
        let writer = Writer { arena, table, items: &mut items };
        match writer.at_home(tag, out) {
            Some(next) => (number as u64) << TAG_BITS | u64::from(next),
            None if number + 1 < self.each.len() => (number as u64 + 1) << TAG_BITS,
            None => 0,
        }
    }

    /// Takes everything out of one table, and answers what was in it.
    pub(crate) fn clear(&self, arena: &Arena, number: usize) -> Vec<Slot> {
        let mut items = lock(&self.items[number].0);
        let mut writer = Writer { arena, table: &self.each[number], items: &mut items };
        let slots = writer.slots().collect();
        writer.clear();
        slots
    }

    /// Whether there are enough pieces at hand.
    #[inline]
    pub(crate) fn has_units(&self) -> bool {
        self.at_hand.load(Ordering::Relaxed) >= UNITS_AT_HAND
    }

    /// Takes a segment as pieces for tables. The first piece of the arena is never used, so that
    /// place 0 is nobody's.
    pub(crate) fn add_segment(&self, start: u64, len: u64) {
        let first = (start / UNIT_LEN as u64).max(1) as u32;
        let end = ((start + len) / UNIT_LEN as u64) as u32;
        let mut units = lock(&self.units);
        units.extend((first..end).rev());
        self.at_hand.store(units.len(), Ordering::Relaxed);
    }

    fn take_units(&self, count: usize) -> Vec<u32> {
        let mut units = lock(&self.units);
        let keep = units.len() - count.min(units.len());
        let taken = units.split_off(keep);
        self.at_hand.store(keep, Ordering::Relaxed);
        taken
    }
}

impl Locked<'_> {
    #[inline]
    fn writer(&mut self) -> Writer<'_> {
        Writer { arena: self.arena, table: self.table, items: &mut self.items }
    }

    #[inline]
    pub(crate) fn find(&mut self, suits: impl FnMut(Slot) -> bool) -> Option<Position> {
        let tag = self.tag;
        self.writer().find(tag, suits)
    }

    /// Puts the item at this place in the place of one that was found. How often that was asked for
    /// counts on.
    #[inline]
    pub(crate) fn replace(&mut self, position: Position, place: u64) {
        let frequency = position.slot.frequency();
        let slot = Slot::new(place, self.tag).with_frequency(frequency);
        self.writer().replace(position, slot);
    }

    /// As [`replace`](Self::replace), with a frequency of its own.
    pub(crate) fn relocate(&mut self, position: Position, place: u64, frequency: u32) {
        let slot = Slot::new(place, self.tag).with_frequency(frequency);
        self.writer().replace(position, slot);
    }

    pub(crate) fn remove(&mut self, position: Position) {
        self.writer().remove(position);
    }

    /// Adds an item; false when the table is full and there is no memory for it to grow.
    pub(crate) fn insert(&mut self, place: u64) -> bool {
        let slot = Slot::new(place, self.tag);
        let wanted = self.writer().wants_units();
        if wanted > 0 {
            let pieces = self.tables.take_units(wanted);
            if !pieces.is_empty() {
                self.writer().grow(&pieces);
            }
        }
        self.writer().insert(slot)
    }
}
