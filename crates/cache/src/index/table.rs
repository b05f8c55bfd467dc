//! One table of the index: a hash table of cache lines with linear probing.
//!
//! The tag of a key determines its home line. If that line is full, the item is in the next line
//! with a free slot, and each line passed has its overflow bit set. A lookup ends at a line that
//! has no match and no overflow.
//!
//! An item on disk is found by its long tag, without its key. Its slot is used only if no item in
//! memory has the key, as a key has one slot.
//!
//! Lines are allocated in pages of [`INDEX_PAGE_LINES`]. A table grows in place, by one page at a
//! time. Slots are placed again by their tags; no item is read. Readers take no lock: the version
//! is odd while the table grows, and a reader that sees an odd or changed version retries (a
//! seqlock). After a table was split, its version stays odd.

use crate::hash::{LONG_TAG_BITS, TAG_BITS};
use crate::index::slot::{HOME_BITS, Slot};
use crate::memory::arena::{Arena, INDEX_PAGE_LINES};
use crate::memory::line::Line;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Maximum number of pages of a table, which is split long before it has as many.
pub(crate) const MAX_PAGES: usize = 14;

/// Maximum number of slots of a page that are in use when a table is filled by a split. The rest is
/// for the next insertions.
const FILLED_SLOTS: usize = SLOTS_PER_PAGE * 7 / 8;

const SLOTS_PER_PAGE: usize = INDEX_PAGE_LINES * Line::SLOTS;

/// Number of items of a table that was split.
pub(crate) const RETIRED: u32 = u32::MAX;

/// A table grows before more than this share of its slots is in use, in sixteenths.
const FULL_SIXTEENTHS: u32 = 15;

/// What readers need to know of a table, in one cache line. Readers write nothing here.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Table {
    /// Odd while the table grows, and after it was split.
    pub(super) version: AtomicU32,
    /// Number of pages in use.
    page_count: AtomicU32,
    pages: [AtomicU32; MAX_PAGES],
}

const _: () = assert!(size_of::<Table>() == 64);

/// Whether a table has room for another slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Available,
    /// The table has as many pages as it can have, and all are full.
    TableFull,
    /// The table is full, and no page is spare.
    NoPage,
}

/// The slots of a table are moving, or have moved during a lookup.
#[derive(Debug)]
pub(crate) struct Moving;

/// The position of a slot in a table, and the word that was read there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    line: u32,
    at: u32,
    pub(crate) slot: Slot,
}

/// Increments the frequency in the word of a slot, if the word still equals the slot.
#[inline]
pub(super) fn count_use(word: &AtomicU64, slot: Slot) {
    let counted = slot.with_frequency(slot.frequency() + 1);
    let _ = word.compare_exchange(slot.0, counted.0, Ordering::Relaxed, Ordering::Relaxed);
}

/// The lines of a table, as many as it had at one moment.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    arena: &'a Arena,
    table: &'a Table,
    pub(super) count: u32,
}

impl<'a> Lines<'a> {
    #[inline]
    pub(super) fn line(self, line: u32) -> &'a Line {
        let (page, at) = self.table.page_and_line(line);
        self.arena.line(page, at)
    }

    /// Returns the home line of a tag. The first bits determine it, which slots of items on disk
    /// know, too.
    #[inline]
    pub(super) fn home(self, tag: u32) -> u32 {
        (tag >> (TAG_BITS - HOME_BITS)) * self.count >> HOME_BITS
    }

    #[inline]
    pub(super) fn next(self, line: u32) -> u32 {
        if line + 1 == self.count { 0 } else { line + 1 }
    }

    /// Returns the number of lines from one line to another, in probe order.
    fn distance(self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.count - from }
    }

    #[inline]
    fn overflows(self, line: u32) -> bool {
        load(self.line(line), 0).overflows()
    }

    fn set_overflow(self, line: u32, overflows: bool) {
        // Readers count frequencies in the same word: at worst a count is lost.
        let first = load(self.line(line), 0);
        store(self.line(line), 0, first.with_overflow(overflows));
    }

    /// Returns the first slot with this long tag, in probe order: that of an item in memory for
    /// which `is_match` is true, or else that of an item on disk, if there can be any.
    #[inline]
    fn find(
        self,
        long_tag: u32,
        with_disk: bool,
        mut is_match: impl FnMut(Slot) -> bool,
    ) -> Option<Position> {
        let tag = tag_of(long_tag);
        let mut line = self.home(tag);
        let mut on_disk = None;
        for _ in 0..self.count {
            let slots = self.line(line);
            if let Some((at, slot)) = slots_with(slots, tag).find(|(_, slot)| is_match(*slot)) {
                return Some(Position { line, at, slot });
            }
            if with_disk && let Some((at, slot)) = find_on_disk(slots, long_tag, &mut is_match) {
                let position = Position { line, at, slot };
                if !slot.is_on_disk() {
                    return Some(position);
                }
                on_disk = on_disk.or(Some(position));
            }
            if !self.overflows(line) {
                return on_disk;
            }
            line = self.next(line);
        }
        on_disk
    }

    /// Returns the slot with this place and long tag.
    fn find_place(self, long_tag: u32, place: u64) -> Option<Position> {
        let mut line = self.home(tag_of(long_tag));
        for _ in 0..self.count {
            let slots = self.line(line);
            for at in 0..Line::SLOTS {
                let slot = load(slots, at);
                if slot.may_have_long_tag(long_tag) && slot.place() == place {
                    return Some(Position { line, at: at as u32, slot });
                }
            }
            if !self.overflows(line) {
                return None;
            }
            line = self.next(line);
        }
        None
    }

    /// Stores a slot in the first free one in probe order. Returns `false` if the table is full.
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

    /// Returns whether an item whose home is this line or an earlier one is in a later line.
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
pub(super) fn load(line: &Line, at: usize) -> Slot {
    Slot(line.0[at].load(Ordering::Acquire))
}

#[inline]
fn store(line: &Line, at: usize, slot: Slot) {
    line.0[at].store(slot.0, Ordering::Release);
}

/// Returns the tag in a long tag.
#[inline]
fn tag_of(long_tag: u32) -> u32 {
    long_tag >> (LONG_TAG_BITS - TAG_BITS)
}

/// Returns a bit for each slot of an item in memory with this tag, and for some empty ones.
#[inline]
fn matches(line: &Line, tag: u32) -> u32 {
    let (wanted, mask) = Slot::upper_half_of(tag);
    line.upper_halves_equal(wanted, mask)
}

/// Returns the slots of items in memory with this tag, with their places in the line.
#[inline]
pub(super) fn slots_with(line: &Line, tag: u32) -> impl Iterator<Item = (u32, Slot)> {
    let mut matches = matches(line, tag);
    std::iter::from_fn(move || {
        while matches != 0 {
            let at = matches.trailing_zeros();
            matches &= matches - 1;
            let slot = load(line, at as usize);
            if slot.has_tag(tag) && !slot.is_empty() {
                return Some((at, slot));
            }
        }
        None
    })
}

/// Returns the slot of an item on disk with this long tag in a line in which no item in memory was
/// found. An item may have moved to memory since, so those are examined again.
#[cold]
#[inline(never)]
fn find_on_disk(
    line: &Line,
    long_tag: u32,
    is_match: &mut impl FnMut(Slot) -> bool,
) -> Option<(u32, Slot)> {
    let mut on_disk = None;
    for at in 0..Line::SLOTS {
        let slot = load(line, at);
        if slot.may_have_long_tag(long_tag) {
            on_disk = on_disk.or(Some((at as u32, slot)));
        } else if slot.has_tag(tag_of(long_tag)) && !slot.is_empty() && is_match(slot) {
            return Some((at as u32, slot));
        }
    }
    on_disk
}

impl Table {
    /// Returns a page of the table. For a page that does not exist yet, it is the first page of the
    /// arena, which is always empty.
    #[inline]
    fn page(&self, number: usize) -> u32 {
        self.pages.get(number).map_or(0, |page| page.load(Ordering::Acquire))
    }

    /// Returns the page of the arena with a line of the table, and the line in it.
    #[inline]
    pub(super) fn page_and_line(&self, line: u32) -> (u32, usize) {
        let line = line as usize;
        (self.page(line / INDEX_PAGE_LINES), line % INDEX_PAGE_LINES)
    }

    fn set_page(&self, number: usize, page: u32) {
        self.pages[number].store(page, Ordering::Release);
    }

    /// Returns all pages of the table, which has none after that. No reader may use the table.
    fn take_pages(&self) -> Vec<u32> {
        let count = self.page_count.swap(0, Ordering::Release) as usize;
        (0..count).map(|number| self.page(number)).collect()
    }

    /// Returns how many pages a table should have that is filled with this many slots.
    pub(crate) fn pages_for(slots: usize) -> usize {
        (slots / FILLED_SLOTS + 1).min(MAX_PAGES)
    }

    /// Replaces the content of the table by these slots in these pages, whatever the pages contain.
    /// No reader may use the table. Returns the number of slots that found room.
    pub(crate) fn fill(
        &self,
        arena: &Arena,
        pages: &[u32],
        slots: impl Iterator<Item = Slot>,
    ) -> u32 {
        for (number, page) in pages.iter().enumerate() {
            empty_page(arena, *page);
            self.set_page(number, *page);
        }
        self.page_count.store(pages.len() as u32, Ordering::Release);
        let lines = self.lines(arena);
        slots.map(|slot| u32::from(lines.insert(slot.with_overflow(false)))).sum()
    }

    #[inline]
    pub(super) fn lines<'a>(&'a self, arena: &'a Arena) -> Lines<'a> {
        let count = self.page_count.load(Ordering::Acquire) * INDEX_PAGE_LINES as u32;
        Lines { arena, table: self, count }
    }

    /// Finds a slot with this long tag without a lock: that of an item in memory for which
    /// `is_match` is true, or else that of an item on disk, if there can be any.
    ///
    /// # Errors
    ///
    /// [`Moving`] if slots of the table moved meanwhile. Then the slot may be in another table.
    #[inline]
    pub(crate) fn find(
        &self,
        arena: &Arena,
        (long_tag, with_disk): (u32, bool),
        is_match: impl FnMut(Slot) -> bool,
    ) -> Result<Option<Position>, Moving> {
        let version = self.version.load(Ordering::Acquire);
        if version & 1 != 0 {
            return Err(Moving);
        }
        let found = self.lines(arena).find(long_tag, with_disk, is_match);
        // Orders the reads above before the read of the version.
        fence(Ordering::Acquire);
        if found.is_some() || self.version.load(Ordering::Relaxed) == version {
            return Ok(found);
        }
        Err(Moving)
    }

    /// Counts a read of an item. The count is lost if the slot is written at the same time.
    #[inline]
    pub(crate) fn count_use(&self, arena: &Arena, position: Position) {
        let lines = self.lines(arena);
        if position.line < lines.count {
            count_use(&lines.line(position.line).0[position.at as usize], position.slot);
        }
    }
}

/// A table that is locked for writing. Readers continue.
pub(crate) struct TableWriter<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) table: &'a Table,
    /// Number of items in the table.
    pub(crate) items: &'a mut u32,
}

impl TableWriter<'_> {
    #[inline]
    fn lines(&self) -> Lines<'_> {
        self.table.lines(self.arena)
    }

    #[inline]
    pub(crate) fn find(
        &self,
        long_tag: u32,
        with_disk: bool,
        is_match: impl FnMut(Slot) -> bool,
    ) -> Option<Position> {
        self.lines().find(long_tag, with_disk, is_match)
    }

    pub(crate) fn find_place(&self, long_tag: u32, place: u64) -> Option<Position> {
        self.lines().find_place(long_tag, place)
    }

    /// Replaces the slot at a position.
    #[inline]
    pub(crate) fn replace(&self, position: Position, slot: Slot) {
        let line = self.lines().line(position.line);
        let at = position.at as usize;
        store(line, at, slot.in_place_of(load(line, at)));
    }

    /// Empties the slot at a position, and clears the overflow bits that only its item needed.
    pub(crate) fn remove(&mut self, position: Position) {
        let lines = self.lines();
        let line = lines.line(position.line);
        let at = position.at as usize;
        store(line, at, load(line, at).vacated());
        // Lines that only this item passed no longer overflow.
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

    /// Returns whether the table should grow by a page before the next insertion.
    pub(crate) fn needs_page(&self) -> bool {
        let lines = self.lines().count;
        let slots = lines * Line::SLOTS as u32;
        *self.items >= slots / 16 * FULL_SIXTEENTHS && lines < (MAX_PAGES * INDEX_PAGE_LINES) as u32
    }

    /// Returns whether a slot can be inserted, now or after the table grew by a page, if there are
    /// spare pages.
    pub(crate) fn room(&self, has_pages: bool) -> Room {
        let pages = self.table.page_count.load(Ordering::Relaxed) as usize;
        match (*self.items as usize) < pages * SLOTS_PER_PAGE {
            true => Room::Available,
            false if pages == MAX_PAGES => Room::TableFull,
            false if has_pages => Room::Available,
            false => Room::NoPage,
        }
    }

    /// Stores a slot. Returns `false` if the table is full.
    pub(crate) fn insert(&mut self, slot: Slot) -> bool {
        let inserted = self.lines().insert(slot);
        *self.items += u32::from(inserted);
        inserted
    }

    /// Adds a page, whatever it contains, and places all slots again.
    pub(crate) fn grow(&mut self, page: u32) {
        let slots: Vec<_> = self.slots().collect();
        let old_pages = self.table.page_count.load(Ordering::Relaxed) as usize;
        let mut pages: Vec<_> = (0..old_pages).map(|number| self.table.page(number)).collect();
        pages.push(page);
        self.begin_move();
        let items = self.table.fill(self.arena, &pages, slots.into_iter());
        debug_assert_eq!(items, *self.items, "a larger table has room for its slots");
        self.end_move();
    }

    /// Makes readers wait, because slots are about to move.
    fn begin_move(&self) {
        let version = self.table.version.load(Ordering::Relaxed);
        self.table.version.store(version + 1, Ordering::Relaxed);
        // A reader that sees a moved slot sees the odd version, too.
        fence(Ordering::Release);
    }

    fn end_move(&self) {
        let version = self.table.version.load(Ordering::Relaxed);
        self.table.version.store(version.wrapping_add(1), Ordering::Release);
    }

    /// Ends the use of a table whose slots were copied to others. Returns its pages. Readers that
    /// still have the table must look for the one that replaces it.
    pub(crate) fn retire(&mut self) -> Vec<u32> {
        self.begin_move();
        *self.items = RETIRED;
        self.table.take_pages()
    }

    /// Starts to use a table that has no pages: a new one, or one that was retired. The second
    /// requires that no reader has the table.
    pub(crate) fn start(&mut self) {
        if self.table.version.load(Ordering::Relaxed) & 1 != 0 {
            self.end_move();
        }
        *self.items = 0;
    }

    /// Returns all slots in use. The table is locked for writing, so they do not change, apart from
    /// frequencies.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        let lines = self.lines();
        (0..lines.count)
            .flat_map(move |line| (0..Line::SLOTS).map(move |at| load(lines.line(line), at)))
            .filter(|slot| !slot.is_empty())
    }

    /// Calls `each` with the slots whose home is the home line of this tag. Returns the first tag
    /// of the next line, or `None` after the last line. Growing keeps the order of tags.
    pub(crate) fn items_with_home(&self, tag: u32, mut each: impl FnMut(Slot)) -> Option<u32> {
        let lines = self.lines();
        if lines.count == 0 {
            return None;
        }
        let home = lines.home(tag);
        let mut line = home;
        for _ in 0..lines.count {
            let slots = (0..Line::SLOTS).map(|at| load(lines.line(line), at));
            let is_here = |slot: &Slot| !slot.is_empty() && lines.home(slot.tag()) == home;
            slots.filter(is_here).for_each(&mut each);
            if !lines.overflows(line) {
                break;
            }
            line = lines.next(line);
        }
        // The smallest tag whose home is the next line.
        let next = ((home + 1) << HOME_BITS).div_ceil(lines.count) << (TAG_BITS - HOME_BITS);
        (next < 1 << TAG_BITS).then_some(next)
    }

    /// Removes all slots. Returns the pages of the table, which has none after that.
    pub(crate) fn clear(&mut self) -> Vec<u32> {
        self.begin_move();
        let pages = self.table.take_pages();
        self.end_move();
        *self.items = 0;
        pages
    }
}

/// Empties a page that no table uses.
fn empty_page(arena: &Arena, page: u32) {
    for line in 0..INDEX_PAGE_LINES {
        let line = arena.line(page, line);
        (0..Line::SLOTS).for_each(|at| store(line, at, Slot(0)));
    }
}
