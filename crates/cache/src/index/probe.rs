//! Probing single lines of a table before the lookup of a key, and using what was found there.

use crate::index::slot::Slot;
use crate::index::table::{Table, count_use, load, slots_with};
use crate::memory::arena::{Arena, INDEX_PAGE_LINES, prefetch, prefetch_to_write};
use crate::memory::line::Line;
use std::sync::atomic::{AtomicU64, Ordering};

/// The slot of a key, its position, and the table and its version when the slot was read. The slot
/// is empty if none was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenSlot {
    table: u32,
    version: u32,
    /// The page of the arena with the line of the slot.
    page: u32,
    /// The number of the line in the table.
    line: u16,
    /// The number of the slot in the line.
    at: u16,
    pub(crate) slot: Slot,
}

impl SeenSlot {
    pub(crate) const NONE: Self = Self::without_position(Slot(0));

    /// Creates one for which [`Table::find_seen`] finds nothing.
    pub(crate) const fn without_position(slot: Slot) -> Self {
        Self { table: 0, version: 1, page: 0, line: 0, at: 0, slot }
    }

    /// Returns the word at the position. It is one of the index only if the table is unchanged.
    #[inline]
    fn word(self, arena: &Arena) -> &AtomicU64 {
        let line = arena.line(self.page, usize::from(self.line) % INDEX_PAGE_LINES);
        &line.0[usize::from(self.at)]
    }

    /// Counts a read of the item of a slot that [`Table::find_seen`] has just returned. The count
    /// is lost if the slot is written at the same time.
    #[inline]
    pub(crate) fn count_use(self, arena: &Arena, slot: Slot) {
        count_use(self.word(arena), slot);
    }
}

/// The result of a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probed {
    /// This is probably the slot of the key, of an item in memory.
    Found(SeenSlot),
    /// No slot of an item in memory matches, and the line has overflowed.
    Overflow,
    /// No slot of an item in memory matches, and the line has not overflowed.
    NotFound,
}

/// A line to probe for a tag: its home line, or one after it. The line may belong to another table
/// by the time of the probe.
#[derive(Clone, Copy)]
pub(crate) struct ProbeLine<'a> {
    table: &'a Table,
    line: &'a Line,
    tag: u32,
    /// Describes the line. The slot is empty.
    position: SeenSlot,
}

impl<'a> ProbeLine<'a> {
    /// Prefetches the line.
    #[inline]
    pub(crate) fn prefetch(self) {
        prefetch(self.line);
    }

    /// Prefetches the line for a write, once a read has found it: see [`prefetch_to_write`].
    #[inline]
    pub(crate) fn prefetch_to_write(self) {
        prefetch_to_write(self.line);
    }

    /// Looks for a slot with the tag.
    #[inline]
    pub(crate) fn probe(self) -> Probed {
        if let Some((at, slot)) = slots_with(self.line, self.tag).next() {
            return Probed::Found(SeenSlot { at: at as u16, slot, ..self.position });
        }
        if load(self.line, 0).overflows() { Probed::Overflow } else { Probed::NotFound }
    }

    /// Returns the next line of the table.
    #[inline]
    pub(crate) fn next(self, arena: &'a Arena) -> Self {
        let number = self.table.lines(arena).next(self.position.line.into());
        let (page, at) = self.table.page_and_line(number);
        let position = SeenSlot { page, line: number as u16, ..self.position };
        Self { line: arena.line(page, at), position, ..self }
    }
}

impl Table {
    /// Returns the home line of a tag. Reads the table, which has this number, but not the line.
    #[inline]
    pub(crate) fn home<'a>(&'a self, arena: &'a Arena, number: usize, tag: u32) -> ProbeLine<'a> {
        let version = self.version.load(Ordering::Acquire);
        let line = self.lines(arena).home(tag);
        let (page, at) = self.page_and_line(line);
        let (table, line_number) = (number as u32, line as u16);
        let position = SeenSlot { table, version, page, line: line_number, ..SeenSlot::NONE };
        ProbeLine { table: self, line: arena.line(page, at), tag, position }
    }

    /// Returns a slot that was found by a probe, with its present frequency, if it still points to
    /// the same item. `None` if slots have moved since then. `number` is that of this table.
    ///
    /// All conditions are checked before the slot is read: with a position of another table, it may
    /// be memory that does not belong to the index.
    #[inline]
    pub(crate) fn find_seen(&self, arena: &Arena, number: usize, seen: SeenSlot) -> Option<Slot> {
        let version = self.version.load(Ordering::Acquire);
        let line = u32::from(seen.line);
        // A table without lines still has the pages that it had before.
        let is_unchanged = seen.table == number as u32
            && seen.version == version
            && version & 1 == 0
            && line < self.lines(arena).count;
        let (page, _) = self.page_and_line(line);
        if !is_unchanged || page != seen.page || seen.slot.is_empty() {
            return None;
        }
        // The page of the prefetch, so the processor need not wait for that of the table.
        let present = Slot(seen.word(arena).load(Ordering::Acquire));
        present.has_item_of(seen.slot).then_some(present)
    }
}
