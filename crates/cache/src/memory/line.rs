//! A cache line of atomic words, and the comparison of all its words at once.

use std::sync::atomic::AtomicU64;
#[cfg(any(test, not(target_arch = "x86_64")))]
use std::sync::atomic::Ordering;

/// A cache line of atomic words: slots of the index, or removed bits.
#[repr(align(64))]
pub(crate) struct Line(pub(crate) [AtomicU64; Self::SLOTS]);

impl Line {
    pub(crate) const SLOTS: usize = 8;

    /// Returns a mask whose bit `i` is set if the upper half of word `i`, masked by `mask`, is
    /// `wanted`. Reads each half as a relaxed load does.
    #[inline]
    pub(crate) fn upper_halves_equal(&self, wanted: u32, mask: u32) -> u32 {
        #[cfg(target_arch = "x86_64")]
        let equal = sse2::upper_halves_equal(self, wanted, mask);
        #[cfg(not(target_arch = "x86_64"))]
        let equal = upper_halves_equal(self, wanted, mask);
        equal
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn upper_halves_equal(line: &Line, wanted: u32, mask: u32) -> u32 {
    let upper = |word: &AtomicU64| (word.load(Ordering::Relaxed) >> 32) as u32;
    let words = line.0.iter().enumerate();
    words.fold(0, |equal, (at, word)| equal | u32::from(upper(word) & mask == wanted) << at)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::Line;
    use std::arch::asm;
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_packs_epi16,
        _mm_packs_epi32, _mm_set1_epi32, _mm_setzero_si128,
    };

    #[inline]
    pub(super) fn upper_halves_equal(line: &Line, wanted: u32, mask: u32) -> u32 {
        let [low, high] = upper_halves(line);
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { equal(low, high, wanted, mask) }
    }

    /// Returns the upper halves of the words. Other threads may write the line: so the loads are in
    /// assembly, since in Rust they would have to be atomic, one word at a time. A vector load may
    /// be several accesses of memory, but never divides an aligned half of a word.
    #[inline]
    fn upper_halves(line: &Line) -> [__m128i; 2] {
        let (low, high);
        // SAFETY: reads the 64 bytes of the line, which are aligned. Writes only the two registers.
        unsafe {
            asm!(
                "movaps {low}, [{line}]",
                "movaps {high}, [{line} + 32]",
                "shufps {low}, [{line} + 16], 0xdd",
                "shufps {high}, [{line} + 48], 0xdd",
                line = in(reg) line,
                low = out(xmm_reg) low,
                high = out(xmm_reg) high,
                options(nostack, preserves_flags, readonly),
            );
        }
        [low, high]
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(low: __m128i, high: __m128i, wanted: u32, mask: u32) -> u32 {
        let mask = _mm_set1_epi32(mask.cast_signed());
        let wanted = _mm_set1_epi32(wanted.cast_signed());
        let equal = |halves| _mm_cmpeq_epi32(_mm_and_si128(halves, mask), wanted);
        let words = _mm_packs_epi32(equal(low), equal(high));
        _mm_movemask_epi8(_mm_packs_epi16(words, _mm_setzero_si128())).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_halves_are_compared_under_the_mask() {
        let words = [0, 1, 0xab << 32, 0xab, 0x1ab << 32, 0xaa << 32, u64::MAX, 0xab << 32 | 7];
        let line = Line(words.map(AtomicU64::new));
        for (wanted, mask, equal) in [
            (0xab, u32::MAX, 0b1000_0100),
            (0xab, 0xff, 0b1001_0100),
            (0, u32::MAX, 0b0000_1011),
            (u32::MAX, u32::MAX, 0b0100_0000),
            (0x8000_0000, 0x8000_0000, 0b0100_0000),
            (1, 0, 0),
            (0, 0, 0xff),
        ] {
            assert_eq!(line.upper_halves_equal(wanted, mask), equal, "{wanted:x} & {mask:x}");
            assert_eq!(upper_halves_equal(&line, wanted, mask), equal, "{wanted:x} & {mask:x}");
        }
    }

    #[test]
    fn each_word_has_its_bit() {
        for at in 0..Line::SLOTS {
            let line =
                Line(std::array::from_fn(|word| AtomicU64::new(u64::from(word == at) << 63)));
            assert_eq!(line.upper_halves_equal(1 << 31, 1 << 31), 1 << at);
        }
    }
}
