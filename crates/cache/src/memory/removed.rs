//! Bits for the items of an ordinary segment that were removed from the index. Reclamation skips
//! these items without an index lookup.
//!
//! Each bit stands for 32 bytes of the segment, and for the item that starts there. The bits are at
//! the start of the segment and take a 256th of it. If several items start in the same 32 bytes, a
//! set bit means that one of them was removed, and the index decides.

use crate::memory::arena::{Arena, INDEX_PAGE_LEN, prefetch};
use crate::memory::line::Line;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a segment that a bit stands for. Most items are longer.
const BYTES_PER_BIT: u64 = 32;

const WORD_BITS: u64 = u64::BITS as u64;
const LINE_BITS: u64 = WORD_BITS * Line::SLOTS as u64;

/// Returns the bytes that the bits of a segment take.
pub(crate) const fn removed_bits_len(segment_len: u32) -> u32 {
    segment_len / (8 * BYTES_PER_BIT as u32)
}

/// Returns the number of the bit for an address, counted from the start of the arena.
#[inline]
pub(crate) fn bit_index(address: u64) -> u64 {
    address / BYTES_PER_BIT
}

/// The removed bits of one segment.
#[derive(Clone, Copy)]
pub(crate) struct RemovedBits<'a> {
    arena: &'a Arena,
    /// Address of the segment.
    start: u64,
}

impl<'a> RemovedBits<'a> {
    /// Returns the bits of the segment at this address.
    #[inline]
    pub(crate) fn new(arena: &'a Arena, start: u64) -> Self {
        Self { arena, start }
    }

    /// Returns the word and the mask of the bit for an address.
    #[inline]
    fn find(self, address: u64) -> (&'a AtomicU64, u64) {
        let bit = bit_index(address - self.start);
        let page = (self.start / INDEX_PAGE_LEN as u64) as u32;
        let line = self.arena.line(page, (bit / LINE_BITS) as usize);
        (&line.0[(bit / WORD_BITS) as usize % Line::SLOTS], 1 << (bit % WORD_BITS))
    }

    /// Records that the item at this address was removed from the index.
    #[inline]
    pub(crate) fn set(self, address: u64) {
        let (word, bit) = self.find(address);
        word.fetch_or(bit, Ordering::Relaxed);
    }

    /// Returns whether an item that starts in the same 32 bytes as this address was removed.
    #[inline]
    pub(crate) fn has(self, address: u64) -> bool {
        let (word, bit) = self.find(address);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// Prefetches the bit of an item.
    #[inline]
    pub(crate) fn prefetch(self, address: u64) {
        prefetch(self.find(address).0);
    }

    /// Clears all bits of a free segment of `segment_len` bytes.
    pub(crate) fn clear(self, segment_len: u32) {
        let page = (self.start / INDEX_PAGE_LEN as u64) as u32;
        for line in 0..removed_bits_len(segment_len) as usize / size_of::<Line>() {
            let line = self.arena.line(page, line);
            line.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_32_bytes_have_a_bit_of_their_own() {
        let (start, len) = (1_u64 << 18, 1_u32 << 18);
        let arena = Arena::new(1 << 20, 0).expect("memory");
        let bits = RemovedBits::new(&arena, start);
        bits.clear(len);
        let addresses = || (start..start + u64::from(len)).step_by(BYTES_PER_BIT as usize);
        assert!(!addresses().any(|address| bits.has(address)));
        for address in addresses().step_by(3) {
            bits.set(address + 5);
        }
        for (at, address) in addresses().enumerate() {
            assert_eq!(bits.has(address), at % 3 == 0, "{address}");
        }
        let others = RemovedBits::new(&arena, 0);
        assert!(!(0..start).step_by(BYTES_PER_BIT as usize).any(|address| others.has(address)));
        bits.clear(len);
        assert!(!addresses().any(|address| bits.has(address)));
    }
}
