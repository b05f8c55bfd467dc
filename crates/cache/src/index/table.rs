//! One table of the index: lines of slots, found by the tag of a key.
//!
//! A key's home is the line that its tag points at; when that is full, the item lies in the next
//! line with room, and each line on the way is marked as overflowing. So a lookup that finds no
//! match in a line that does not overflow is done.
//!
//! Lines come in pieces of [`UNIT_LINES`]. A table grows by pieces, in place: its slots are placed
//! anew from their tags, no item is read. Whoever reads meanwhile sees an odd or a changed version,
//! and looks again.

use crate::hash::TAG_BITS;
use crate::index::slot::Slot;
use crate::memory::arena::{Arena, Line, UNIT_LINES};
use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::thread::yield_now;

/// Pieces that a table names in its own cache line, and those that it names elsewhere.
const NEAR_UNITS: usize = 10;
const FAR_UNITS: usize = 118;

/// The most pieces of a table.
pub(crate) const MOST_UNITS: usize = NEAR_UNITS + FAR_UNITS;

/// A table grows when more than this share of its slots would be in use, in sixteenths.
const FULL_SIXTEENTHS: u32 = 15;

/// What readers need to know of a table, in one cache line. They write nothing here.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Table {
    /// Odd while slots are placed anew.
    version: AtomicU32,
    /// Pieces in use, from the first on.
    units: AtomicU32,
    near: [AtomicU32; NEAR_UNITS],
    far: OnceLock<Box<[AtomicU32; FAR_UNITS]>>,
}

const _: () = assert!(size_of::<Table>() == 64);

/// Where a slot is, and what was in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    line: u32,
    at: u32,
    pub(crate) slot: Slot,
}

/// The lines of a table, as many as it had at some moment.
#[derive(Clone, Copy)]
struct Lines<'a> {
    arena: &'a Arena,
    table: &'a Table,
    count: u32,
}

impl<'a> Lines<'a> {
    #[inline]
    fn line(self, line: u32) -> &'a Line {
        let (unit, at) = (line as usize / UNIT_LINES, line as usize % UNIT_LINES);
        self.arena.line(self.table.piece(unit), at)
    }

    #[inline]
    fn home(self, tag: u32) -> u32 {
        (u64::from(tag) * u64::from(self.count) >> TAG_BITS) as u32
    }

    #[inline]
    fn next(self, line: u32) -> u32 {
        if line + 1 == self.count { 0 } else { line + 1 }
    }

    /// Steps from one line on to another.
    fn distance(self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.count - from }
    }

    #[inline]
    fn overflows(self, line: u32) -> bool {
        load(self.line(line), 0).overflows()
    }

    fn set_overflow(self, line: u32, overflows: bool) {
        // Readers count in the same word, so that what is lost at worst is a count.
        let first = load(self.line(line), 0);
        store(self.line(line), 0, first.with_overflow(overflows));
    }

    /// The slots whose tag is this one, from its home on, until one suits.
    #[inline]
    fn find(self, tag: u32, mut suits: impl FnMut(Slot) -> bool) -> Option<Position> {
        let mut line = self.home(tag);
        for _ in 0..self.count {
            let slots = self.line(line);
            let mut matches = matches(slots, tag);
            while matches != 0 {
                let at = matches.trailing_zeros();
                matches &= matches - 1;
                let slot = load(slots, at as usize);
                if slot.has_tag(tag) && !slot.is_empty() && suits(slot) {
                    return Some(Position { line, at, slot });
                }
            }
            if !self.overflows(line) {
                return None;
            }
            line = self.next(line);
        }
        None
    }

    /// Puts a slot into the first free place from its home on; false if there is none.
    fn insert(self, slot: Slot) -> bool {
        let home = self.home(slot.tag());
        let mut line = home;
        for _ in 0..self.count {
            let slots = self.line(line);
            if let Some(at) = (0..Line::SLOTS).find(|at| load(slots, *at).is_empty()) {
                store(slots, at, slot.in_place_of(load(slots, at)));
                let mut passed = home;
                while passed != line {
                    self.set_overflow(passed, true);
                    passed = self.next(passed);
                }
                return true;
            }
            line = self.next(line);
        }
        false
    }

    /// Whether an item whose home is this line, or one before it, lies beyond it.
    fn is_passed(self, line: u32) -> bool {
        let mut steps = 0;
        let mut at = line;
        while steps < self.count && self.overflows(at) {
            at = self.next(at);
            steps += 1;
            let slots = self.line(at);
            let passes =
                |slot: Slot| !slot.is_empty() && self.distance(self.home(slot.tag()), at) >= steps;
            if (0..Line::SLOTS).any(|slot| passes(load(slots, slot))) {
                return true;
            }
        }
        false
    }
}

#[inline]
fn load(line: &Line, at: usize) -> Slot {
    Slot(line.0[at].load(Ordering::Acquire))
}

#[inline]
fn store(line: &Line, at: usize, slot: Slot) {
    line.0[at].store(slot.0, Ordering::Release);
}

/// A bit for each slot with this tag. Empty ones may be among them.
#[inline]
fn matches(line: &Line, tag: u32) -> u32 {
    let mut matches = 0;
    for at in 0..Line::SLOTS {
        let slot = Slot(line.0[at].load(Ordering::Relaxed));
        matches |= u32::from(slot.has_tag(tag)) << at;
    }
    matches
}

impl Table {
    /// A piece of the table's memory; the arena's first, where all is empty, for one that is not
    /// there yet.
    #[inline]
    fn piece(&self, unit: usize) -> u32 {
        match self.near.get(unit) {
            Some(piece) => piece.load(Ordering::Acquire),
            None => self.far_piece(unit),
        }
    }

    fn far_piece(&self, unit: usize) -> u32 {
        self.far.get().map_or(0, |far| far[unit - NEAR_UNITS].load(Ordering::Acquire))
    }

    fn set_piece(&self, unit: usize, piece: u32) {
        let far = || self.far.get_or_init(|| Box::new([const { AtomicU32::new(0) }; FAR_UNITS]));
        let place = self.near.get(unit).unwrap_or_else(|| &far()[unit - NEAR_UNITS]);
        place.store(piece, Ordering::Release);
    }

    #[inline]
    fn lines<'a>(&'a self, arena: &'a Arena) -> Lines<'a> {
        let count = self.units.load(Ordering::Acquire) * UNIT_LINES as u32;
        Lines { arena, table: self, count }
    }

    /// Asks for the home line of a tag ahead of a lookup.
    #[inline]
    pub(crate) fn prefetch(&self, arena: &Arena, tag: u32, to_write: bool) {
        let lines = self.lines(arena);
        if lines.count > 0 {
            let home = lines.home(tag) as usize;
            arena.prefetch_line(self.piece(home / UNIT_LINES), home % UNIT_LINES, to_write);
        }
    }

    /// Finds a slot without a lock, among those that have the tag the one that suits.
    #[inline]
    pub(crate) fn find(
        &self,
        arena: &Arena,
        tag: u32,
        mut suits: impl FnMut(Slot) -> bool,
    ) -> Option<Position> {
        let mut tries = 0_u32;
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version & 1 == 0 {
                let found = self.lines(arena).find(tag, &mut suits);
                // What was read above was read before this.
                fence(Ordering::Acquire);
                if found.is_some() || self.version.load(Ordering::Relaxed) == version {
                    return found;
                }
            }
            tries += 1;
            if tries.is_multiple_of(64) { yield_now() } else { spin_loop() }
        }
    }

    /// Counts that the item was asked for. When somebody else writes the slot at the same time, the
    /// count is lost, which is little.
    #[inline]
    pub(crate) fn count_use(&self, arena: &Arena, position: Position) {
        let lines = self.lines(arena);
        if position.line < lines.count {
            let word = &lines.line(position.line).0[position.at as usize];
            let slot = position.slot;
            let counted = slot.with_frequency(slot.frequency() + 1);
            let relaxed = Ordering::Relaxed;
            let _ = word.compare_exchange(slot.0, counted.0, relaxed, relaxed);
        }
    }
}

/// A table, locked for writing. Readers go on.
pub(crate) struct Writer<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) table: &'a Table,
    /// Items in the table.
    pub(crate) items: &'a mut u32,
}

impl Writer<'_> {
    #[inline]
    fn lines(&self) -> Lines<'_> {
        self.table.lines(self.arena)
    }

    #[inline]
    pub(crate) fn find(&self, tag: u32, suits: impl FnMut(Slot) -> bool) -> Option<Position> {
        self.lines().find(tag, suits)
    }

    /// Puts another item in the place of one that was found.
    #[inline]
    pub(crate) fn replace(&self, position: Position, slot: Slot) {
        let line = self.lines().line(position.line);
        let at = position.at as usize;
        store(line, at, slot.in_place_of(load(line, at)));
    }

    pub(crate) fn remove(&mut self, position: Position) {
        let lines = self.lines();
        let line = lines.line(position.line);
        let at = position.at as usize;
        store(line, at, load(line, at).vacated());
        // Lines that were passed by this item alone no longer overflow.
        let home = lines.home(position.slot.tag());
        let mut passed = home;
        while passed != position.line {
            if !lines.is_passed(passed) {
                lines.set_overflow(passed, false);
            }
            passed = lines.next(passed);
        }
        *self.items -= 1;
    }

    /// How many more pieces the table should have before another item comes.
    pub(crate) fn wants_units(&self) -> usize {
        let lines = self.lines().count;
        let slots = lines * Line::SLOTS as u32;
        if *self.items < slots / 16 * FULL_SIXTEENTHS {
            return 0;
        }
        let units = lines as usize / UNIT_LINES;
        (units / 8).max(1).min(MOST_UNITS - units)
    }

    /// Puts an item into a free slot; false if there is none.
    pub(crate) fn insert(&mut self, slot: Slot) -> bool {
        let inserted = self.lines().insert(slot);
        *self.items += u32::from(inserted);
        inserted
    }

    /// Adds pieces of memory, which hold anything, and places all slots anew.
    pub(crate) fn grow(&mut self, pieces: &[u32]) {
        let old = self.lines();
        let mut slots = Vec::with_capacity(*self.items as usize);
        for line in 0..old.count {
            let line = old.line(line);
            slots.extend((0..Line::SLOTS).map(|at| load(line, at)).filter(|slot| !slot.is_empty()));
        }
        let version = self.table.version.load(Ordering::Relaxed);
        self.table.version.store(version + 1, Ordering::Relaxed);
        // Whoever sees a slot that was moved also sees the odd version.
        fence(Ordering::Release);
        let units = old.count as usize / UNIT_LINES;
        for (at, piece) in pieces.iter().enumerate() {
            // Empty before anybody reads it.
            for line in 0..UNIT_LINES {
                let line = self.arena.line(*piece, line);
                (0..Line::SLOTS).for_each(|at| store(line, at, Slot(0)));
            }
            self.table.set_piece(units + at, *piece);
        }
        self.table.units.store((units + pieces.len()) as u32, Ordering::Release);
        let new = self.lines();
        for line in 0..old.count {
            (0..Line::SLOTS).for_each(|at| store(new.line(line), at, Slot(0)));
        }
        for slot in slots {
            let inserted = new.insert(slot.with_overflow(false));
            debug_assert!(inserted, "a larger table has room for what was in it");
        }
        self.table.version.store(version + 2, Ordering::Release);
    }

    /// All items, for a moment in which nobody writes.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let lines = self.lines();
        (0..lines.count)
            .flat_map(move |line| (0..Line::SLOTS).map(move |at| load(lines.line(line), at)))
            .filter(|slot| !slot.is_empty())
    }

    /// The items whose home is the line that this tag points at, and the tag at which the next line
    /// begins; none when that was the last one. Tags keep their order when the table grows.
    pub(crate) fn at_home(&self, tag: u32, out: &mut Vec<Slot>) -> Option<u32> {
        let lines = self.lines();
        if lines.count == 0 {
            return None;
        }
        let home = lines.home(tag);
        let mut line = home;
        for _ in 0..lines.count {
            let slots = (0..Line::SLOTS).map(|at| load(lines.line(line), at));
            out.extend(slots.filter(|slot| !slot.is_empty() && lines.home(slot.tag()) == home));
            if !lines.overflows(line) {
                break;
            }
            line = lines.next(line);
        }
        // The least tag whose home is the next line.
        let next = (u64::from(home + 1) << TAG_BITS).div_ceil(u64::from(lines.count));
        (next < 1 << TAG_BITS).then_some(next as u32)
    }

    /// Takes all items out.
    pub(crate) fn clear(&mut self) {
        let lines = self.lines();
        for line in 0..lines.count {
            (0..Line::SLOTS).for_each(|at| store(lines.line(line), at, Slot(0)));
        }
        *self.items = 0;
    }
}
