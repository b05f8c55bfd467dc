//! Files in memory: the words of the index, which processes share, and the bytes of segments, which
//! are only read.

use memmap2::{MmapOptions, MmapRaw};
use nuthatch_sigbus::MapGuard;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// A file of words that processes share. Every access is atomic; nothing else is ever done with
/// these bytes, by any process of this crate.
pub(crate) struct Words {
    guard: Option<MapGuard>,
    map: MmapRaw,
    writable: bool,
}

impl Words {
    /// Maps the first `len` bytes of a file that is open for reading, and for writing if it is to
    /// be `writable`. Otherwise nothing may be stored: it would end the process.
    pub(crate) fn map(file: &File, len: usize, guard: bool, writable: bool) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        let options = options.len(len);
        let map =
            if writable { options.map_raw(file)? } else { options.map_raw_read_only(file)? };
        let guard = if guard { register(&map) } else { None };
        Ok(Self { guard, map, writable })
    }

    /// Returns whether words may be stored.
    #[inline]
    pub(crate) fn writable(&self) -> bool {
        self.writable
    }

    /// Whether a page of the file vanished; what is read there since is no word of the file.
    #[inline]
    pub(crate) fn lost(&self) -> bool {
        self.guard.as_ref().is_some_and(MapGuard::is_lost)
    }

    /// `N` words from an offset on, which is a multiple of eight.
    #[inline]
    pub(crate) fn words<const N: usize>(&self, offset: usize) -> &[AtomicU64; N] {
        assert!(offset.is_multiple_of(8), "offset {offset} of a word");
        let end = offset.checked_add(N * 8);
        assert!(end.is_some_and(|end| end <= self.map.len()), "words at {offset}");
        // SAFETY: the words lie within the map, which begins with a page.
        let first = unsafe { self.map.as_mut_ptr().add(offset) };
        // SAFETY: aligned, within the map, which lives as long as the borrow; any bits are a word,
        // and every access of every process to these bytes is atomic.
        unsafe { &*first.cast::<[AtomicU64; N]>() }
    }

    /// The word at an offset, which is a multiple of eight.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words::<1>(offset)[0]
    }
}

/// The bytes of a segment. They are written once, before anybody knows where they are, and neither
/// changed nor cut off as long as somebody has the lock for lending.
pub(crate) struct Bytes {
    guard: Option<MapGuard>,
    map: MmapRaw,
}

impl Bytes {
    /// Maps the first `len` bytes of a file; it may be shorter as yet. `None` if they cannot be
    /// watched: then they are not safe to lend.
    pub(crate) fn map(file: &File, len: usize, guard: bool) -> io::Result<Option<Self>> {
        let map = MmapOptions::new().len(len).map_raw_read_only(file)?;
        let registered = if guard { register(&map) } else { None };
        let can_lend = registered.is_some() || !guard;
        Ok(can_lend.then_some(Self { guard: registered, map }))
    }

    /// Bytes of the map.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether a page of the file vanished: somebody cut it off. Its bytes are zero since.
    pub(crate) fn lost(&self) -> bool {
        self.guard.as_ref().is_some_and(MapGuard::is_lost)
    }

    /// Bytes that were written. Empty if the range is not within the map.
    pub(crate) fn slice(&self, range: Range<usize>) -> &[u8] {
        if range.start > range.end || range.end > self.map.len() {
            return &[];
        }
        // SAFETY: the start lies within the map.
        let start = unsafe { self.map.as_ptr().add(range.start) };
        // SAFETY: the range lies within the map, which lives as long as the borrow. The caller has
        // the lock for lending, so no process of this crate changes or frees these bytes; whoever
        // else does is told of in docs/formats/segments.md.
        unsafe { std::slice::from_raw_parts(start, range.len()) }
    }
}

/// Registers a map with the handler of `SIGBUS`. `None` if it cannot be.
fn register(map: &MmapRaw) -> Option<MapGuard> {
    // SAFETY: the guard is declared before the map in both structs, so it is dropped first. Words
    // are read as atomics, and bytes of a lost map are not used.
    unsafe { MapGuard::register(map.as_ptr(), map.len()) }
}
