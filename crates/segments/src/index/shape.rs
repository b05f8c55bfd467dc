//! Where the sets of an index lie.

use crate::layout::word;

/// Where the sets lie and how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Where the first begins.
    pub(super) from: usize,
    /// The sets that the index was made with, as a power of two.
    base: u32,
    base_mask: u64,
    /// The bits of a tag that choose a set since the index has grown.
    pub(super) grown_mask: u64,
    pub(super) mask: u64,
}

impl Shape {
    pub(crate) fn new(from: usize, base: u32, grown: u32) -> Self {
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let (base_mask, grown_mask) = (mask(base), mask(grown));
        Self { from, base, base_mask, grown_mask, mask: mask(base + grown) }
    }

    /// Returns the set in which a hash is looked for first.
    #[inline]
    pub(super) fn home(&self, hash: u64) -> u64 {
        (hash >> word::TAG_BITS) & self.base_mask | (hash & self.grown_mask) << self.base
    }

    /// Returns the other set of a word: from its home to the one for words that are away, and back.
    #[inline]
    pub(super) fn other(&self, set: u64, tag: u64) -> u64 {
        let distance = (tag + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        set ^ (distance & self.mask | 1)
    }
}
