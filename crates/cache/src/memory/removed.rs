//! Which items of an ordinary segment are gone from the index: so that whoever reclaims the segment
//! passes them by, and need not ask the index for each.
//!
//! There is a bit for each granule of a segment, which stands for the item that begins there. The
//! bits lie at the segment's start, and so take memory only where items do: a 256th of it. Where
//! several short items begin in one granule, its bit tells that some of them is gone, and the index
//! is asked after all.

use crate::memory::arena::{Arena, Line, UNIT_LEN, prefetch_to_write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a bit stands for. Most items are longer.
const GRANULE: u64 = 32;

const WORD_BITS: u64 = u64::BITS as u64;
const LINE_BITS: u64 = WORD_BITS * Line::SLOTS as u64;

/// Bytes of the bits of a segment of so many.
pub(crate) const fn marks_len(segment_len: u32) -> u32 {
    segment_len / (8 * GRANULE as u32)
}

/// The granule of the arena that a place lies in.
#[inline]
pub(crate) fn granule(place: u64) -> u64 {
    place / GRANULE
}

/// The bits of one segment.
#[derive(Clone, Copy)]
pub(crate) struct Marks<'a> {
    arena: &'a Arena,
    /// Where the segment starts.
    start: u64,
}

impl<'a> Marks<'a> {
    /// Those of the segment that starts here.
    #[inline]
    pub(crate) fn new(arena: &'a Arena, start: u64) -> Self {
        Self { arena, start }
    }

    #[inline]
    fn find(self, place: u64) -> (&'a AtomicU64, u64) {
        let bit = granule(place - self.start);
        let unit = (self.start / UNIT_LEN as u64) as u32;
        let line = self.arena.line(unit, (bit / LINE_BITS) as usize);
        (&line.0[(bit / WORD_BITS) as usize % Line::SLOTS], 1 << (bit % WORD_BITS))
    }

    /// The item that begins here is gone from the index.
    #[inline]
    pub(crate) fn set(self, place: u64) {
        let (word, bit) = self.find(place);
        word.fetch_or(bit, Ordering::Relaxed);
    }

    /// Whether an item that begins in the granule of this place is gone.
    #[inline]
    pub(crate) fn has(self, place: u64) -> bool {
        let (word, bit) = self.find(place);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// Asks for the memory of an item's bit.
    #[inline]
    pub(crate) fn prefetch(self, place: u64) {
        prefetch_to_write(self.find(place).0);
    }

    /// Begins anew, for a segment of so many bytes that is free.
    pub(crate) fn clear(self, segment_len: u32) {
        let unit = (self.start / UNIT_LEN as u64) as u32;
        for line in 0..marks_len(segment_len) as usize / size_of::<Line>() {
            let line = self.arena.line(unit, line);
            line.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_granule_has_a_bit_of_its_own() {
        let (start, len) = (1_u64 << 18, 1_u32 << 18);
        let arena = Arena::new(1 << 20, 0).expect("memory");
        let marks = Marks::new(&arena, start);
        marks.clear(len);
        let places = || (start..start + u64::from(len)).step_by(GRANULE as usize);
        assert!(!places().any(|place| marks.has(place)));
        for place in places().step_by(3) {
            marks.set(place + 5);
        }
        for (at, place) in places().enumerate() {
            assert_eq!(marks.has(place), at % 3 == 0, "{place}");
        }
        let others = Marks::new(&arena, 0);
        assert!(!(0..start).step_by(GRANULE as usize).any(|place| others.has(place)));
        marks.clear(len);
        assert!(!places().any(|place| marks.has(place)));
    }
}
