//! The position and number of the sets of an index.

use crate::layout::word;

/// The position and number of the sets of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The offset of the first set.
    pub(super) start: usize,
    /// The binary logarithm of the number of sets at creation.
    base_bits: u32,
    base_mask: u64,
    /// The bits of a tag that choose a set since the index has grown.
    pub(super) grown_mask: u64,
    pub(super) mask: u64,
}

impl Shape {
    pub(crate) fn new(start: usize, base_bits: u32, grown: u32) -> Self {
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let (base_mask, grown_mask) = (mask(base_bits), mask(grown));
        Self { start, base_bits, base_mask, grown_mask, mask: mask(base_bits + grown) }
    }

    /// Returns the home of a hash: its first set.
    #[inline]
    pub(super) fn home(&self, hash: u64) -> u64 {
        (hash >> word::TAG_BITS) & self.base_mask | (hash & self.grown_mask) << self.base_bits
    }

    /// Returns the other set of a word: the second set for the home, and the home for the second
    /// set.
    #[inline]
    pub(super) fn other(&self, set: u64, tag: u64) -> u64 {
        let distance = (tag + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        set ^ (distance & self.mask | 1)
    }
}
