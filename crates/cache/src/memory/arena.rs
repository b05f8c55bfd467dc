//! The memory of a cache: one range of virtual addresses, divided into segments. Ordinary segments
//! come first, the segments of large items follow. The system backs only pages that were written,
//! and ordinary segments with huge pages if it has any.
//!
//! An address in this crate is an offset in bytes from the start of the arena.
//!
//! This file contains all unsafe code of the crate, apart from SIMD in `line.rs`. It is sound for
//! these reasons:
//! - Bytes of a segment are written only through a [`Tail`]. At most one tail exists for a range of
//!   memory: `Segments` creates it, and creates another only after all readers have left.
//! - Bytes are read only below a tail, where nothing is written any more, and only while the reader
//!   has an epoch guard or a counted reference to the segment. Either one keeps the segment from
//!   being reused.
//! - Pages are returned to the system only through a tail with nothing written below it, so no
//!   reader has a reference to them.
//! - Index lines and removed bits are in memory of their own, and are read and written only as
//!   atomics.

use crate::error::{Error, Result};
use crate::memory::epoch::EpochGuard;
use crate::memory::line::Line;
use crate::memory::meta::SegmentRef;
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use std::ops::Range;

/// Bytes of an index page, and index lines in it. A table consists of a few pages, so that it can
/// grow by small steps.
pub(crate) const INDEX_PAGE_LEN: usize = 1024;
pub(crate) const INDEX_PAGE_LINES: usize = INDEX_PAGE_LEN / size_of::<Line>();

/// Bytes of the smallest page of the system. The memory of a large item is a multiple of it.
pub(crate) const PAGE: u64 = 4096;

/// Bytes of a huge page.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Ordinary segments at the start of the arena have small pages: one of `SMALL_PAGES_RATIO` bytes,
/// and at most `MAX_SMALL_PAGES` bytes. They are used first, so that a cache with little content
/// takes little memory, however many sessions have begun a segment.
const SMALL_PAGES_RATIO: usize = 64;
const MAX_SMALL_PAGES: usize = 32 << 20;

/// Maximum number of cache lines of an item that are prefetched, and of later pages of which the
/// first two lines are prefetched. Together they fit in the second-level cache for a batch of
/// lookups.
const MAX_ITEM_LINES: usize = 6;
const MAX_ITEM_PAGES: usize = 4;

/// Distance in bytes between a write and the memory prefetched for later writes: longer than a few
/// short items, which take about as long to write as a prefetch takes. The processor prefetches the
/// rest of long items by itself.
const WRITE_PREFETCH_BYTES: usize = 1024;
const MAX_WRITE_LINES: usize = 8;

/// A range of memory that one session writes from start to end.
#[derive(Debug)]
pub(crate) struct Tail {
    start: u64,
    len: u32,
    used: u32,
    items: u32,
}

impl Tail {
    /// Returns the address of the next byte to write.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.start + u64::from(self.used)
    }

    /// Returns the number of bytes written.
    #[inline]
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Returns the addresses of the bytes written.
    pub(crate) fn written(&self) -> Range<u64> {
        self.start..self.address()
    }

    /// Returns the average length in bytes of the items written.
    pub(crate) fn item_len(&self) -> u32 {
        self.used.checked_div(self.items).unwrap_or(0)
    }

    /// Returns the number of bytes that can still be written.
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        (self.len - self.used) as usize
    }
}

pub(crate) struct Arena {
    map: MmapRaw,
    /// Bytes before the first huge page boundary.
    skip: usize,
    len: usize,
}

impl Arena {
    /// Reserves address space for `ordinary` bytes of ordinary segments, followed by `large` bytes
    /// for large items.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] if the process cannot reserve as much.
    pub(crate) fn new(ordinary: usize, large: usize) -> Result<Self> {
        let len = ordinary + large;
        let mapped = MmapOptions::new().len(len + HUGE_PAGE).no_reserve_swap().map_anon();
        let map = MmapRaw::from(mapped.map_err(Error::Memory)?);
        let address = map.as_ptr() as usize;
        let skip = address.next_multiple_of(HUGE_PAGE) - address;
        let arena = Self { map, skip, len };
        let small = (ordinary / SMALL_PAGES_RATIO).min(MAX_SMALL_PAGES) / HUGE_PAGE * HUGE_PAGE;
        arena.prefer_huge(0, small as u64, false);
        arena.prefer_huge(small as u64, (ordinary - small) as u64, true);
        // A huge page would exceed the memory that most large items are charged for.
        arena.prefer_huge(ordinary as u64, large as u64, false);
        Ok(arena)
    }

    /// Sets whether the system should back these bytes with huge pages when they are next written.
    pub(crate) fn prefer_huge(&self, address: u64, len: u64, huge: bool) {
        if len == 0 {
            return;
        }
        // Advice only: without huge pages, the system uses small ones.
        let advice = if huge { Advice::HugePage } else { Advice::NoHugePage };
        let _ = self.map.advise_range(advice, self.skip + address as usize, len as usize);
    }

    /// Makes the system back these bytes with pages before they are written. Their content stays.
    pub(crate) fn populate(&self, address: u64, len: u32) {
        // If the system cannot do this or has no memory, the first write takes the page fault.
        let (start, len) = (self.skip + address as usize, len as usize);
        let _ = self.map.advise_range(Advice::PopulateWrite, start, len);
    }

    #[inline]
    fn at(&self, address: u64, len: usize) -> *mut u8 {
        let address = address as usize;
        assert!(address <= self.len && len <= self.len - address, "an address in the arena");
        self.map.as_mut_ptr().wrapping_add(self.skip + address)
    }

    /// Creates the tail of a range of memory. Only `Segments` and the code that converts pending
    /// values may call this, for memory that nothing else writes or reads.
    pub(crate) fn tail(start: u64, len: u32) -> Tail {
        Tail { start, len, used: 0, items: 0 }
    }

    /// Returns the next `len` bytes of a tail for writing, and advances the tail. The bytes hold
    /// arbitrary earlier content or zeros.
    ///
    /// # Panics
    ///
    /// If fewer than `len` bytes remain.
    #[inline]
    pub(crate) fn allocate<'a>(&'a self, tail: &'a mut Tail, len: usize) -> &'a mut [u8] {
        assert!(len <= tail.remaining(), "room in the segment");
        let at = self.at(tail.address(), len);
        tail.used += len as u32;
        tail.items += 1;
        // SAFETY: within the map, whose memory is zeroed or written before. It belongs to the tail
        // alone: readers stay below it.
        unsafe { std::slice::from_raw_parts_mut(at, len) }
    }

    /// Returns the last bytes given out by [`allocate`](Self::allocate) to the tail. The index must
    /// never have pointed to them.
    #[inline]
    pub(crate) fn undo_allocate(tail: &mut Tail, len: usize) {
        tail.used -= len as u32;
        tail.items -= 1;
    }

    /// Returns bytes that were written. The address comes from the index or from a walk through a
    /// segment.
    ///
    /// # Panics
    ///
    /// If the range exceeds the arena.
    #[inline]
    pub(crate) fn read<'t>(
        &'t self,
        _guard: &'t EpochGuard<'_>,
        address: u64,
        len: usize,
    ) -> &'t [u8] {
        let at = self.at(address, len);
        // SAFETY: within the map, and below a tail, so nothing writes there before the segment is
        // free. The guard keeps it from becoming free.
        unsafe { std::slice::from_raw_parts(at, len) }
    }

    /// Returns bytes that were written, as [`read`](Self::read) does, for as long as a counted
    /// reference to their segment exists. They are an item, or a pending value that was received
    /// completely; the header and key of an item are written before the value.
    #[inline]
    pub(crate) fn read_referenced<'h>(
        &'h self,
        _segment_ref: &'h SegmentRef,
        address: u64,
        len: usize,
    ) -> &'h [u8] {
        let at = self.at(address, len);
        // SAFETY: within the map, and below a tail, so nothing writes there before the segment is
        // free. The counted reference keeps it from becoming free.
        unsafe { std::slice::from_raw_parts(at, len) }
    }

    /// Returns the address of these bytes, or `None` if they are outside this arena.
    pub(crate) fn address_of(&self, bytes: &[u8]) -> Option<u64> {
        let start = self.map.as_ptr() as usize + self.skip;
        let address = (bytes.as_ptr() as usize).checked_sub(start)?;
        (address < self.len && bytes.len() <= self.len - address).then_some(address as u64)
    }

    /// Returns the pages of a tail to the system. They contain zeros when they are next used.
    ///
    /// # Panics
    ///
    /// If something was written to the tail.
    pub(crate) fn release_pages(&self, tail: &mut Tail) {
        assert!(tail.used == 0, "nothing is written yet");
        let (offset, len) = (tail.start as usize, tail.len as usize);
        assert!(offset <= self.len && len <= self.len - offset, "an address in the arena");
        // If the system keeps the pages, the process uses more memory than is counted. Nothing else
        // depends on it. SAFETY: within the map, and the tail's alone. Nothing was written to it,
        // so nothing reads or writes there.
        let _ = unsafe {
            self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, self.skip + offset, len)
        };
    }

    /// Prefetches `lines` cache lines, starting at this address.
    #[inline]
    pub(crate) fn prefetch(&self, address: u64, lines: usize) {
        let at = self.at(address, 0);
        for line in 0..lines {
            prefetch_at(at.wrapping_add(line * 64));
        }
    }

    /// Prefetches an item of about `len` bytes ahead of a lookup. Of a longer item, it also
    /// prefetches the start of later pages: the hardware prefetcher follows a read up to the end of
    /// a page.
    #[inline]
    pub(crate) fn prefetch_item(&self, address: u64, len: usize) {
        let first = address % 64;
        let lines = (first as usize + len).div_ceil(64);
        self.prefetch(address - first, lines.clamp(1, MAX_ITEM_LINES));
        if lines > MAX_ITEM_LINES {
            self.prefetch_pages(address, len);
        }
    }

    fn prefetch_pages(&self, address: u64, len: usize) {
        let end = (address + len as u64).min(self.len as u64);
        let pages = (address.next_multiple_of(PAGE)..end).step_by(PAGE as usize);
        for page in pages.take(MAX_ITEM_PAGES) {
            self.prefetch(page, 2);
        }
    }

    /// Prefetches the memory behind the next `len` bytes of a tail, about as many bytes. Otherwise
    /// each write would stall on cache misses, and delay all instructions after it.
    #[inline]
    pub(crate) fn prefetch_behind(&self, tail: &Tail, len: usize) {
        let ahead = (tail.used as usize + WRITE_PREFETCH_BYTES).min(tail.len as usize);
        let lines = (len.min(tail.len as usize - ahead) / 64 + 1).min(MAX_WRITE_LINES);
        self.prefetch(tail.start + ahead as u64, lines);
    }

    /// Returns a line of a page that holds index lines or removed bits.
    #[inline]
    pub(crate) fn line(&self, page: u32, line: usize) -> &Line {
        let address = u64::from(page) * INDEX_PAGE_LEN as u64 + (line * size_of::<Line>()) as u64;
        #[expect(clippy::cast_ptr_alignment, reason = "the map's start and its pages are aligned")]
        let at = self.at(address, size_of::<Line>()).cast::<Line>();
        debug_assert!(at.is_aligned());
        // SAFETY: within the map and aligned, since the map's start and the pages are aligned;
        // always accessed as atomics, or by the vector loads of `line.rs`. Any bytes are valid.
        unsafe { &*at }
    }
}

/// Prefetches the cache line of a value, into the second-level cache: see docs/decisions/0105.
#[inline]
pub(crate) fn prefetch<T>(what: &T) {
    prefetch_at(std::ptr::from_ref(what).cast());
}

/// Prefetches the cache line of a value that will be written, in exclusive state: other processors
/// give up their copy now instead of at the write. The processor ignores it if it waits for too
/// many other lines, so a line that is in none of its caches is prefetched for a read first.
#[inline]
pub(crate) fn prefetch_to_write<T>(what: &T) {
    prefetch_exclusive(std::ptr::from_ref(what).cast());
}

#[inline]
fn prefetch_exclusive(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no visible effect. Processors without this instruction
    // execute it as a no-op.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    prefetch_at(at);
}

#[inline]
fn prefetch_at(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch of any address has no visible effect.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::epoch::Epochs;

    #[test]
    fn written_bytes_are_read_back() {
        let arena = Arena::new(1 << 20, 0).expect("memory");
        let epochs = Epochs::new();
        let slot = epochs.register().expect("a slot");
        let mut tail = Arena::tail(4096, 100);
        arena.allocate(&mut tail, 5).copy_from_slice(b"hello");
        assert_eq!((tail.address(), tail.remaining()), (4101, 95));
        arena.allocate(&mut tail, 3).copy_from_slice(b"you");
        Arena::undo_allocate(&mut tail, 3);
        assert_eq!(tail.used(), 5);
        let guard = epochs.enter(slot);
        assert_eq!(arena.read(&guard, 4096, 5), b"hello");
    }

    #[test]
    fn released_pages_are_zeros() {
        let arena = Arena::new(1 << 20, 1 << 20).expect("memory");
        let epochs = Epochs::new();
        let slot = epochs.register().expect("a slot");
        for start in [1 << 18, 5 << 18] {
            let mut tail = Arena::tail(start, 1 << 18);
            let bytes = arena.allocate(&mut tail, 1 << 18);
            bytes.fill(7);
            assert_eq!(arena.address_of(bytes), Some(start));
            arena.release_pages(&mut Arena::tail(start + 4096, 8192));
            let guard = epochs.enter(slot);
            let read = arena.read(&guard, start, 1 << 18);
            assert!(read[..4096].iter().all(|byte| *byte == 7));
            assert!(read[4096..12_288].iter().all(|byte| *byte == 0));
            assert!(read[12_288..].iter().all(|byte| *byte == 7));
        }
        assert_eq!(arena.address_of(b"elsewhere"), None);
    }

    #[test]
    #[should_panic(expected = "room in the segment")]
    fn allocating_beyond_a_tail_panics() {
        let arena = Arena::new(1 << 20, 0).expect("memory");
        let mut tail = Arena::tail(0, 10);
        arena.allocate(&mut tail, 11);
    }

    #[test]
    #[should_panic(expected = "an address in the arena")]
    fn reading_beyond_the_arena_panics() {
        let arena = Arena::new(1 << 20, 0).expect("memory");
        let epochs = Epochs::new();
        let slot = epochs.register().expect("a slot");
        let guard = epochs.enter(slot);
        arena.read(&guard, 1 << 20, 1);
    }
}
