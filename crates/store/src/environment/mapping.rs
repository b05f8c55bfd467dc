//! The memory map of a store's file. This file has unsafe code: it reads the pages that LMDB has
//! mapped.

use crate::file::layout::{META_PAGES, meta, tree_record};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};

/// The address at which LMDB has mapped a store's file, as far as it is known.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// The address of the first page; null while it is unknown.
    first: AtomicPtr<u8>,
    /// The readable bytes: the known length of the file, within the map.
    len: AtomicUsize,
    /// Dropped before the map is unmapped: see `forget` and `Environment`.
    #[cfg(feature = "sigbus")]
    guard: std::sync::Mutex<Option<nuthatch_sigbus::MapGuard>>,
}

/// The map as a transaction sees it: no process changes the pages that the transaction reads, and
/// the map does not move while the transaction is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map<'t> {
    first: *const u8,
    /// Readable bytes.
    len: usize,
    page_size: usize,
    txn: PhantomData<&'t [u8]>,
}

/// A meta page, which another process may be writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta<'t>(&'t [u8; meta::LEN]);

impl Mapping {
    pub(crate) fn new() -> Self {
        Self {
            first: AtomicPtr::new(ptr::null_mut()),
            len: AtomicUsize::new(0),
            #[cfg(feature = "sigbus")]
            guard: std::sync::Mutex::new(None),
        }
    }

    /// Forgets the address. Called before the map moves, while no transaction is open.
    pub(crate) fn forget(&self) {
        self.first.store(ptr::null_mut(), Ordering::Release);
        self.len.store(0, Ordering::Release);
        #[cfg(feature = "sigbus")]
        drop(self.guard().take());
    }

    /// Records the address of the map, which has `map_size` bytes: the address of `bytes`, which
    /// LMDB returned, minus their offset in the file.
    pub(crate) fn found(&self, bytes: &[u8], offset: usize, map_size: usize) {
        let first = bytes.as_ptr().wrapping_sub(offset);
        #[cfg(feature = "sigbus")]
        {
            let mut guard = self.guard();
            *guard = guard.take().or_else(|| register(first, map_size));
        }
        #[cfg(not(feature = "sigbus"))]
        let _ = map_size;
        self.first.store(first.cast_mut(), Ordering::Release);
    }

    /// Returns whether a page of the file could not be read since it was mapped. If this returns
    /// `false`, all bytes read before the call are those of the file.
    #[cfg(feature = "sigbus")]
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        let is_lost = |guard: &nuthatch_sigbus::MapGuard| guard.is_lost();
        nuthatch_sigbus::is_any_lost() && self.guard().as_ref().is_some_and(is_lost)
    }

    /// Returns `false`: without the guard such a page ends the process.
    #[cfg(not(feature = "sigbus"))]
    #[inline]
    #[expect(clippy::unused_self, reason = "the same shape as with the feature")]
    pub(crate) fn is_lost(&self) -> bool {
        false
    }

    #[cfg(feature = "sigbus")]
    fn guard(&self) -> std::sync::MutexGuard<'_, Option<nuthatch_sigbus::MapGuard>> {
        self.guard.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Records how many bytes are readable: those that both the file and the map have.
    pub(crate) fn set_len(&self, file_len: u64, map_size: usize) {
        let len = usize::try_from(file_len).map_or(map_size, |len| len.min(map_size));
        self.len.store(len, Ordering::Release);
    }

    /// Returns the map for the lifetime of a transaction, which the caller has open. `None` while
    /// the address is unknown.
    #[inline]
    pub(crate) fn get<'t>(&self, page_size: u32) -> Option<Map<'t>> {
        let first = self.first.load(Ordering::Acquire).cast_const();
        let len = self.len.load(Ordering::Acquire);
        let (page_size, txn) = (page_size as usize, PhantomData);
        (!first.is_null()).then_some(Map { first, len, page_size, txn })
    }
}

/// Registers LMDB's map with the signal handler. `None` if it has no room for another one.
#[cfg(feature = "sigbus")]
fn register(first: *const u8, map_size: usize) -> Option<nuthatch_sigbus::MapGuard> {
    // Data read from pages is checked before it is used as an offset or a length. LMDB fails on a
    // page of zeros as on other damage; without the guard the process would have ended.
    // SAFETY: so reading tolerates zeros, and the guard is dropped before the map is unmapped or
    // moved: `Environment` drops it first, and calls `forget` before it moves the map.
    unsafe { nuthatch_sigbus::MapGuard::register(first, map_size) }
}

impl<'t> Map<'t> {
    /// Returns bytes from an offset in a page on, which may continue in the following pages; `None`
    /// beyond the end of the file.
    #[inline]
    pub(crate) fn bytes(self, page: u64, offset: usize, len: usize) -> Option<&'t [u8]> {
        let start = usize::try_from(page).ok()?.checked_mul(self.page_size)?.checked_add(offset)?;
        let end = start.checked_add(len)?;
        if end > self.len {
            return None;
        }
        // SAFETY: the file has these bytes, and LMDB maps all of it up to the pages in use. The map
        // does not move during `'t`, and LMDB does not change pages that a read transaction reads,
        // nor those that a write transaction is based on: it copies them.
        Some(unsafe { std::slice::from_raw_parts(self.first.wrapping_add(start), len) })
    }

    /// Returns the meta page of a transaction, and the other one.
    #[inline]
    pub(crate) fn meta_pages(self, transaction: u64) -> Option<[Meta<'t>; 2]> {
        let pages = self.bytes(0, 0, META_PAGES as usize * self.page_size)?;
        let (even, odd) = pages.split_at_checked(self.page_size)?;
        let (even, odd) = (Meta(even.first_chunk()?), Meta(odd.first_chunk()?));
        Some(if transaction & 1 == 0 { [even, odd] } else { [odd, even] })
    }

    /// Returns the offset in the file of bytes within the map.
    pub(crate) fn offset_of(self, bytes: &[u8]) -> u64 {
        (bytes.as_ptr().addr() - self.first.addr()) as u64
    }

    /// Returns the size of a page in bytes.
    #[inline]
    pub(crate) fn page_size(self) -> usize {
        self.page_size
    }
}

impl Meta<'_> {
    /// Reads the number of the transaction that wrote the page.
    #[inline]
    pub(crate) fn transaction(self) -> u64 {
        self.word::<{ meta::TRANSACTION }>()
    }

    /// Reads the root and the flags of the main table.
    #[inline]
    pub(crate) fn main(self) -> (u64, u16) {
        let head = self.word::<{ meta::MAIN_TREE }>();
        let root = self.word::<{ meta::MAIN_TREE + tree_record::ROOT }>();
        (root, (head >> (8 * tree_record::FLAGS)) as u16)
    }

    #[inline]
    fn word<const AT: usize>(self) -> u64 {
        const { assert!(AT.is_multiple_of(8) && AT + size_of::<u64>() <= meta::LEN) };
        let word = self.0.as_ptr().wrapping_add(AT);
        #[expect(clippy::cast_ptr_alignment, reason = "pages and words of a meta page are aligned")]
        let word = word.cast::<u64>();
        // SAFETY: the word is within the page, at an offset that is a multiple of eight in a page
        // that is aligned to its size. A volatile read tolerates that it changes meanwhile.
        let word = unsafe { ptr::read_volatile(word) };
        // Words are read in the order of the calls.
        fence(Ordering::Acquire);
        u64::from_le(word)
    }
}

/// Prefetches memory at a distance from these bytes.
#[inline(always)]
pub(crate) fn prefetch_beyond(bytes: &[u8], distance: usize) {
    prefetch(bytes.as_ptr().wrapping_add(distance));
}

/// Prefetches a cache line.
#[inline(always)]
pub(crate) fn prefetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no visible effect.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
