//! The memory of a cache: one range of addresses, cut into segments; those of large items are at
//! its end. It is backed by pages of the system only where something was written, ordinary segments
//! by huge ones where there are some.
//!
//! This file holds all unsafe code of the crate. What makes it sound:
//! - Bytes of a segment are written through a [`Tail`] alone. There is one for each stretch of
//!   memory at a time: `segments.rs` makes it, and makes no other before all readers have left.
//! - Bytes are read below a tail, where nobody writes again, and while the reader is pinned or has
//!   a counted reference to the segment, which keeps it from being given out anew.
//! - Pages go back to the system while a tail has them, and nothing is written below it: nobody
//!   reads there then, either.
//! - Lines of the index lie in segments of their own, and are only ever read and written as
//!   atomics.

use crate::error::{Error, Result};
use crate::memory::epoch::Pin;
use crate::memory::meta::Hold;
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// A line of the index: as many slots as a cache line holds.
#[repr(align(64))]
pub(crate) struct Line(pub(crate) [AtomicU64; Self::SLOTS]);

impl Line {
    pub(crate) const SLOTS: usize = 8;
}

/// Bytes of a piece of the index, and lines in it. The system's smallest page, so that an index of
/// few keys takes little.
pub(crate) const UNIT_LEN: usize = 4096;
pub(crate) const UNIT_LINES: usize = UNIT_LEN / size_of::<Line>();

/// Bytes of the system's smallest page: what a large item takes is a multiple.
pub(crate) const PAGE: u64 = 4096;

/// Bytes of a huge page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Lines of an item that are asked for ahead of a lookup, also of each page that it goes on in, and
/// how many pages that is done for: together no more than stays in the processor's cache.
const ITEM_LINES_MOST: usize = 6;
const ITEM_PAGES_MOST: usize = 4;

/// Memory is asked for so many bytes ahead of the writes to it: more than a handful of short items,
/// which are written in the time that takes. Of long ones the processor fetches more by itself.
const WRITE_AHEAD: usize = 1024;
const WRITE_LINES_MOST: usize = 8;

/// A stretch of memory that one session writes, from its start on.
#[derive(Debug)]
pub(crate) struct Tail {
    start: u64,
    len: u32,
    used: u32,
    items: u32,
}

impl Tail {
    /// Where the next byte goes.
    #[inline]
    pub(crate) fn place(&self) -> u64 {
        self.start + u64::from(self.used)
    }

    /// Bytes written.
    #[inline]
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Returns the addresses of the bytes written.
    pub(crate) fn written(&self) -> Range<u64> {
        self.start..self.place()
    }

    /// Bytes of an item, on average.
    pub(crate) fn item_len(&self) -> u32 {
        self.used.checked_div(self.items).unwrap_or(0)
    }

    /// Bytes that can still be written.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        (self.len - self.used) as usize
    }
}

pub(crate) struct Arena {
    map: MmapRaw,
    /// Bytes before the first huge page begins.
    skip: usize,
    len: usize,
}

impl Arena {
    /// Addresses for so many bytes of ordinary segments, and behind them so many for large items.
    pub(crate) fn new(ordinary: usize, large: usize) -> Result<Self> {
        let len = ordinary + large;
        let mapped = MmapOptions::new().len(len + HUGE_PAGE).no_reserve_swap().map_anon();
        let map = MmapRaw::from(mapped.map_err(Error::Memory)?);
        let address = map.as_ptr() as usize;
        let skip = address.next_multiple_of(HUGE_PAGE) - address;
        // Advice: where there are no huge pages, small ones do.
        let _ = map.advise_range(Advice::HugePage, skip, ordinary);
        if large > 0 {
            // A huge page would be more than most large items have written, and are counted for.
            let _ = map.advise_range(Advice::NoHugePage, skip + ordinary, large);
        }
        Ok(Self { map, skip, len })
    }

    /// Whether huge pages shall back these bytes when they are written next.
    pub(crate) fn prefer_huge(&self, place: u64, len: u64, huge: bool) {
        let advice = if huge { Advice::HugePage } else { Advice::NoHugePage };
        let _ = self.map.advise_range(advice, self.skip + place as usize, len as usize);
    }

    /// Takes pages of the system for these bytes, which keep what they hold, before somebody writes
    /// there.
    pub(crate) fn populate(&self, place: u64, len: u32) {
        // Where it cannot, or there is no memory, the first write finds out.
        let (start, len) = (self.skip + place as usize, len as usize);
        let _ = self.map.advise_range(Advice::PopulateWrite, start, len);
    }

    #[inline]
    fn at(&self, place: u64, len: usize) -> *mut u8 {
        let place = place as usize;
        assert!(place <= self.len && len <= self.len - place, "a place in the arena");
        self.map.as_mut_ptr().wrapping_add(self.skip + place)
    }

    /// The tail of memory that nobody else has. `segments.rs` alone may call this, for a segment
    /// that is free.
    pub(crate) fn tail(start: u64, len: u32) -> Tail {
        Tail { start, len, used: 0, items: 0 }
    }

    /// So many bytes to write, by which the tail moves on. They are not empty: they hold what was
    /// written there before, or zeros.
    #[inline]
    pub(crate) fn room<'a>(&'a self, tail: &'a mut Tail, len: usize) -> &'a mut [u8] {
        assert!(len <= tail.room(), "room in the segment");
        let at = self.at(tail.place(), len);
        tail.used += len as u32;
        tail.items += 1;
        // SAFETY: within the map, whose memory is zeroed or written before, and the tail's alone:
        // readers stay below it.
        unsafe { std::slice::from_raw_parts_mut(at, len) }
    }

    /// Takes back the last bytes given out by [`room`](Self::room), which nobody was told of.
    #[inline]
    pub(crate) fn take_back(tail: &mut Tail, len: usize) {
        tail.used -= len as u32;
        tail.items -= 1;
    }

    /// Bytes that were written. The place comes from the index, or from a walk of a segment.
    #[inline]
    pub(crate) fn read<'t>(&'t self, _pin: &'t Pin<'_>, place: u64, len: usize) -> &'t [u8] {
        let at = self.at(place, len);
        // SAFETY: within the map; below a tail, so nobody writes there before the segment is free,
        // and the pin keeps it from becoming so.
        unsafe { std::slice::from_raw_parts(at, len) }
    }

    /// Returns bytes that were written, as [`read`](Self::read) does, for as long as a reference to
    /// their segment is held. The bytes are an item's, or a value's that was received: what becomes
    /// an item of that is written before these bytes.
    #[inline]
    pub(crate) fn read_held<'h>(&'h self, _hold: &'h Hold, place: u64, len: usize) -> &'h [u8] {
        let at = self.at(place, len);
        // SAFETY: within the map; below a tail, so nobody writes there before the segment is free,
        // and the counted reference keeps it from becoming so.
        unsafe { std::slice::from_raw_parts(at, len) }
    }

    /// Where these bytes lie; none if they are not of this arena.
    pub(crate) fn place_of(&self, bytes: &[u8]) -> Option<u64> {
        let start = self.map.as_ptr() as usize + self.skip;
        let place = (bytes.as_ptr() as usize).checked_sub(start)?;
        (place < self.len && bytes.len() <= self.len - place).then_some(place as u64)
    }

    /// Gives a tail's pages back to the system. They are zeros when they are written next.
    pub(crate) fn give_back(&self, tail: &mut Tail) {
        assert!(tail.used == 0, "nothing is written yet");
        let (offset, len) = (tail.start as usize, tail.len as usize);
        assert!(offset <= self.len && len <= self.len - offset, "a place in the arena");
        // Where the system keeps them all the same, more memory is taken than we count, and all
        // else stays right.
        // SAFETY: within the map, and the tail's alone, which has written nothing: nobody reads
        // or writes there.
        let _ = unsafe {
            self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, self.skip + offset, len)
        };
    }

    /// Asks for so many cache lines, from this place on, ahead of their use.
    #[inline]
    pub(crate) fn prefetch(&self, place: u64, lines: usize) {
        let at = self.at(place, 0);
        for line in 0..lines {
            prefetch(at.wrapping_add(line * 64));
        }
    }

    /// Asks for an item that begins at this place, and is about so long, ahead of a lookup. Of a
    /// longer one the processor fetches more by itself once it is read, but no further than to the
    /// end of a page at a time: so the beginnings of pages are asked for, too.
    #[inline]
    pub(crate) fn prefetch_item(&self, place: u64, len: usize) {
        let first = place % 64;
        let lines = (first as usize + len).div_ceil(64);
        self.prefetch(place - first, lines.clamp(1, ITEM_LINES_MOST));
        if lines > ITEM_LINES_MOST {
            self.prefetch_pages(place, len);
        }
    }

    fn prefetch_pages(&self, place: u64, len: usize) {
        let end = (place + len as u64).min(self.len as u64);
        let pages = (place.next_multiple_of(PAGE)..end).step_by(PAGE as usize);
        for page in pages.take(ITEM_PAGES_MOST) {
            self.prefetch(page, 2);
        }
    }

    /// Asks for the memory that what comes behind the next bytes of a tail will be written to, as
    /// much as those are. Without that a write waits for its lines, and with it all that follows.
    #[inline]
    pub(crate) fn prefetch_behind(&self, tail: &Tail, len: usize) {
        let ahead = (tail.used as usize + WRITE_AHEAD).min(tail.len as usize);
        let lines = (len.min(tail.len as usize - ahead) / 64 + 1).min(WRITE_LINES_MOST);
        self.prefetch(tail.start + ahead as u64, lines);
    }

    /// A line of a piece of the index, which lies in a segment that `tables.rs` alone uses.
    #[inline]
    pub(crate) fn line(&self, unit: u32, line: usize) -> &Line {
        let place = u64::from(unit) * UNIT_LEN as u64 + (line * size_of::<Line>()) as u64;
        #[expect(clippy::cast_ptr_alignment, reason = "the map's start and units are aligned")]
        let at = self.at(place, size_of::<Line>()).cast::<Line>();
        debug_assert!(at.is_aligned());
        // SAFETY: within the map and aligned, since the map's start and units are; always accessed
        // as atomics, for which any bytes will do.
        unsafe { &*at }
    }

    /// Asks for a line of the index ahead of its use.
    #[inline]
    pub(crate) fn prefetch_line(&self, unit: u32, line: usize, to_write: bool) {
        let at = std::ptr::from_ref(self.line(unit, line)).cast();
        if to_write { prefetch_exclusive(at) } else { prefetch(at) }
    }
}

/// Asks for the line of something that will be written, ahead of that: other processors that have
/// it give it up now, and not when it is written.
#[inline]
pub(crate) fn prefetch_to_write<T>(what: &T) {
    prefetch_exclusive(std::ptr::from_ref(what).cast());
}

#[inline]
fn prefetch_exclusive(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address does nothing that can be seen. Processors that do not know
    // this one take it for nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    prefetch(at);
}

#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address does nothing that can be seen.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::epoch::Epochs;

    #[test]
    fn what_is_written_is_read() {
        let arena = Arena::new(1 << 20, 0).expect("memory");
        let epochs = Epochs::new();
        let slot = epochs.enter().expect("a slot");
        let mut tail = Arena::tail(4096, 100);
        arena.room(&mut tail, 5).copy_from_slice(b"hello");
        assert_eq!((tail.place(), tail.room()), (4101, 95));
        arena.room(&mut tail, 3).copy_from_slice(b"you");
        Arena::take_back(&mut tail, 3);
        assert_eq!(tail.used(), 5);
        let pin = epochs.pin(slot);
        assert_eq!(arena.read(&pin, 4096, 5), b"hello");
    }

    #[test]
    fn what_was_given_back_is_zeros() {
        let arena = Arena::new(1 << 20, 1 << 20).expect("memory");
        let epochs = Epochs::new();
        let slot = epochs.enter().expect("a slot");
        for start in [1 << 18, 5 << 18] {
            let mut tail = Arena::tail(start, 1 << 18);
            let bytes = arena.room(&mut tail, 1 << 18);
            bytes.fill(7);
            assert_eq!(arena.place_of(bytes), Some(start));
            arena.give_back(&mut Arena::tail(start + 4096, 8192));
            let pin = epochs.pin(slot);
            let read = arena.read(&pin, start, 1 << 18);
            assert!(read[..4096].iter().all(|byte| *byte == 7));
            assert!(read[4096..12_288].iter().all(|byte| *byte == 0));
            assert!(read[12_288..].iter().all(|byte| *byte == 7));
        }
        assert_eq!(arena.place_of(b"elsewhere"), None);
    }

    #[test]
    #[should_panic(expected = "room in the segment")]
    fn a_tail_ends() {
        let arena = Arena::new(1 << 20, 0).expect("memory");
        let mut tail = Arena::tail(0, 10);
        arena.room(&mut tail, 11);
    }

    #[test]
    #[should_panic(expected = "a place in the arena")]
    fn nothing_beyond_the_arena_is_read() {
        let arena = Arena::new(1 << 20, 0).expect("memory");
        let epochs = Epochs::new();
        let slot = epochs.enter().expect("a slot");
        let pin = epochs.pin(slot);
        arena.read(&pin, 1 << 20, 1);
    }
}
