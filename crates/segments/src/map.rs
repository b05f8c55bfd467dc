//! Memory maps: the words of the index, which processes share, and the bytes of segments, which are
//! only read.

use memmap2::{MmapOptions, MmapRaw};
use nuthatch_sigbus::MapGuard;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// A file of words that processes share. Every process accesses these bytes only with atomic
/// instructions.
pub(crate) struct Words {
    guard: Option<MapGuard>,
    map: MmapRaw,
    is_writable: bool,
}

impl Words {
    /// Maps the first `len` bytes of a file that is open for reading, and for writing if
    /// `is_writable`. Storing a word in a map that is not writable would end the process.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn map(file: &File, len: usize, guard: bool, is_writable: bool) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        let options = options.len(len);
        let map =
            if is_writable { options.map_raw(file)? } else { options.map_raw_read_only(file)? };
        let guard = if guard { register(&map) } else { None };
        Ok(Self { guard, map, is_writable })
    }

    /// Returns whether words may be stored.
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns whether a page of the file vanished. Words that were read since then are invalid.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.guard.as_ref().is_some_and(MapGuard::is_lost)
    }

    /// Returns `N` words from an offset on.
    ///
    /// # Panics
    ///
    /// Panics if the offset is not a multiple of eight or the words are not in the map.
    #[inline]
    pub(crate) fn words<const N: usize>(&self, offset: usize) -> &[AtomicU64; N] {
        assert!(offset.is_multiple_of(8), "offset {offset} of a word");
        let end = offset.checked_add(N * 8);
        assert!(end.is_some_and(|end| end <= self.map.len()), "words at {offset}");
        // SAFETY: the words are within the map, which begins with a page.
        let first = unsafe { self.map.as_mut_ptr().add(offset) };
        // SAFETY: aligned, within the map, which lives as long as the borrow. Any bits are a valid
        // word, and every process accesses these bytes atomically.
        unsafe { &*first.cast::<[AtomicU64; N]>() }
    }

    /// Returns the word at an offset.
    ///
    /// # Panics
    ///
    /// Panics as [`Words::words`] does.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words::<1>(offset)[0]
    }
}

/// The bytes of a segment. They are written once, before a word points to them. Processes neither
/// change nor truncate them while the view lock (byte 1) of the segment is held.
pub(crate) struct Bytes {
    guard: Option<MapGuard>,
    map: MmapRaw,
}

impl Bytes {
    /// Maps the first `len` bytes of a file, which may be shorter. Returns `None` if `guard` is set
    /// and the map cannot be registered with the handler of `SIGBUS`: then it is not safe to use.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn map(file: &File, len: usize, guard: bool) -> io::Result<Option<Self>> {
        let map = MmapOptions::new().len(len).map_raw_read_only(file)?;
        let registered = if guard { register(&map) } else { None };
        let is_safe = registered.is_some() || !guard;
        Ok(is_safe.then_some(Self { guard: registered, map }))
    }

    /// Returns the length of the map.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns whether a page of the file vanished because the file was truncated. Its bytes are
    /// zero since then.
    pub(crate) fn is_lost(&self) -> bool {
        self.guard.as_ref().is_some_and(MapGuard::is_lost)
    }

    /// Returns bytes of a range, or none if the range is not in the map.
    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        if range.start > range.end || range.end > self.map.len() {
            return &[];
        }
        // SAFETY: the start is within the map.
        let start = unsafe { self.map.as_ptr().add(range.start) };
        // SAFETY: the range is within the map, which lives as long as the borrow. The caller holds
        // the view lock, so no process of this crate changes or frees these bytes.
        // docs/formats/segments.md describes the effect of other programs.
        unsafe { std::slice::from_raw_parts(start, range.len()) }
    }
}

/// Registers a map with the handler of `SIGBUS`. Returns `None` if that fails.
fn register(map: &MmapRaw) -> Option<MapGuard> {
    // SAFETY: both structs declare the guard before the map, so it is dropped first. Words are read
    // as atomics, and bytes of a lost map are not used.
    unsafe { MapGuard::register(map.as_ptr(), map.len()) }
}
