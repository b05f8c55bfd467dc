//! What is known of a key ahead of its lookup: its home line, and the slot that was found there.

use crate::index::slot::Slot;
use crate::index::table::{Table, count_use, load, slots_with};
use crate::memory::arena::{Arena, INDEX_PAGE_LINES, prefetch, prefetch_to_write};
use crate::memory::line::Line;
use std::sync::atomic::{AtomicU64, Ordering};

/// A slot that was found ahead of the lookup of its key, and the version of the table at that time.
/// The slot is empty if none was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenSlot {
    version: u32,
    /// The page of the arena and the line in it.
    page: u32,
    line: u16,
    at: u16,
    pub(crate) slot: Slot,
}

impl SeenSlot {
    pub(crate) const NONE: Self = Self::hint(Slot(0));

    /// Creates one from a slot without its place. It is never [found again](Table::is_as_at).
    pub(crate) const fn hint(slot: Slot) -> Self {
        Self { version: 1, page: 0, line: 0, at: 0, slot }
    }

    /// Returns the word of the slot. It is another one if the table has grown or was split since.
    #[inline]
    fn word(self, arena: &Arena) -> &AtomicU64 {
        &arena.line(self.page, self.line.into()).0[usize::from(self.at)]
    }

    /// Returns the slot with its present frequency, if it is still that of the same item. Does not
    /// know whether the table still has the line.
    #[inline]
    pub(crate) fn read_again(self, arena: &Arena) -> Option<Slot> {
        let present = Slot(self.word(arena).load(Ordering::Acquire));
        (present.has_item_of(self.slot) && !self.slot.is_empty()).then_some(present)
    }

    /// Counts a read of the item of a slot that [`read_again`](Self::read_again) has returned. The
    /// count is lost if the slot is written at the same time.
    #[inline]
    pub(crate) fn count_use(self, arena: &Arena, slot: Slot) {
        count_use(self.word(arena), slot);
    }
}

/// What a line says about the slot of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead {
    /// It is probably this one, of an item in memory.
    Found(SeenSlot),
    /// It may be in the next line.
    Overflows,
    /// There is none of an item in memory.
    Missing,
}

/// The home line of a tag, or one of those after it. Slots may move, so what it says is a hint.
#[derive(Clone, Copy)]
pub(crate) struct LineAhead<'a> {
    table: &'a Table,
    line: &'a Line,
    /// The number of the line in the table.
    number: u32,
    /// The page of the arena that has the line.
    page: u32,
    version: u32,
    tag: u32,
}

impl<'a> LineAhead<'a> {
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

    /// Returns what the line says about a slot with this tag.
    #[inline]
    pub(crate) fn look(self) -> Ahead {
        if let Some((at, slot)) = slots_with(self.line, self.tag).next() {
            let Self { version, page, number, .. } = self;
            let (line, at) = ((number as usize % INDEX_PAGE_LINES) as u16, at as u16);
            return Ahead::Found(SeenSlot { version, page, line, at, slot });
        }
        if load(self.line, 0).overflows() { Ahead::Overflows } else { Ahead::Missing }
    }

    /// Returns the next line of the table.
    #[inline]
    pub(crate) fn next(self, arena: &'a Arena) -> Self {
        let number = self.table.lines(arena).next(self.number);
        let (page, at) = self.table.place(number);
        Self { line: arena.line(page, at), number, page, ..self }
    }
}

impl Table {
    /// Returns the home line of a tag. Reads the table, but not the line.
    #[inline]
    pub(crate) fn home<'a>(&'a self, arena: &'a Arena, tag: u32) -> LineAhead<'a> {
        let version = self.version.load(Ordering::Acquire);
        let lines = self.lines(arena);
        let number = lines.home(tag);
        // In a table without lines, this is one that it had before, or of the empty page. With an
        // odd version, what is found there is only a hint.
        let version = version | u32::from(lines.count == 0);
        let (page, at) = self.place(number);
        LineAhead { table: self, line: arena.line(page, at), number, page, version, tag }
    }

    /// Returns whether the table still has the lines that it had when a slot was found ahead, and
    /// all slots where they were.
    #[inline]
    pub(crate) fn is_as_at(&self, seen: SeenSlot) -> bool {
        seen.version & 1 == 0 && self.version.load(Ordering::Relaxed) == seen.version
    }
}
