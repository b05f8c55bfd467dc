//! A line of the index: the slots that match a fingerprint, and the offsets of their records.

use super::layout::line as at;

/// A line of the index, 64 bytes. Not validated: a damaged file may hold any bytes.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a>(&'a [u8; at::LEN]);

/// A set of slots of a line, iterated in ascending order. Bit `i` stands for slot `i`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(u32);

impl Iterator for Slots {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let slot = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(slot)
    }
}

impl<'a> Line<'a> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8; at::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns shift, overflow bits and base in one word, because lookups need them together.
    #[inline(always)]
    fn tail(self) -> u64 {
        self.0.last_chunk().map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// Returns the overflow bits: bit `c` is set if a key of class `c` was moved past this line.
    #[inline(always)]
    pub(crate) fn overflow(self) -> u8 {
        self.0[at::OVERFLOW]
    }

    /// Returns the binary logarithm of the unit of record offsets.
    #[inline(always)]
    pub(crate) fn shift(self) -> u8 {
        self.0[at::SHIFT]
    }

    /// Returns the base of record offsets, as an offset in the data section.
    pub(crate) fn base(self) -> u64 {
        self.tail() >> 16
    }

    /// Returns the offset in the data section at which the record of a slot begins.
    #[inline(always)]
    pub(crate) fn record(self, slot: usize) -> u64 {
        let (offsets, _) = self.0[at::OFFSETS..].as_chunks::<2>();
        let offset = u64::from(u16::from_le_bytes(offsets[slot]));
        let tail = self.tail();
        (tail >> 16).wrapping_add(offset.wrapping_shl(tail as u32))
    }

    /// Returns the slots that hold this fingerprint.
    #[inline(always)]
    pub(crate) fn matches(self, fingerprint: u16) -> Slots {
        Slots(equal_mask(self.0, fingerprint) & ALL_SLOTS)
    }

    /// Returns the slots in use.
    pub(crate) fn used(self) -> Slots {
        Slots(!self.matches(0).0 & ALL_SLOTS)
    }
}

const ALL_SLOTS: u32 = (1 << at::SLOTS) - 1;

/// Returns a mask whose bit `i` is set if `u16` number `i` of the line equals `wanted`, for `i`
/// from 0 to 15.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn equal_mask(line: &[u8; at::LEN], wanted: u16) -> u32 {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { equal_mask_sse2(line, wanted) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn equal_mask_sse2(line: &[u8; at::LEN], wanted: u16) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16,
        _mm_set1_epi16,
    };
    let (halves, _) = line.as_chunks::<16>();
    let at = |half: usize| std::ptr::from_ref(&halves[half]).cast::<()>().cast::<__m128i>();
    // SAFETY: the load reads the 16 bytes that the reference points to, at any alignment.
    let low = unsafe { _mm_loadu_si128(at(0)) };
    // SAFETY: as above.
    let high = unsafe { _mm_loadu_si128(at(1)) };
    let wanted = _mm_set1_epi16(wanted.cast_signed());
    let equal = _mm_packs_epi16(_mm_cmpeq_epi16(low, wanted), _mm_cmpeq_epi16(high, wanted));
    _mm_movemask_epi8(equal).cast_unsigned()
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn equal_mask(line: &[u8; at::LEN], wanted: u16) -> u32 {
    equal_mask_portable(line, wanted)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn equal_mask_portable(line: &[u8; at::LEN], wanted: u16) -> u32 {
    let (words, _) = line[..32].as_chunks::<2>();
    words
        .iter()
        .enumerate()
        .fold(0, |mask, (i, word)| mask | u32::from(u16::from_le_bytes(*word) == wanted) << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_returns_the_slots_with_the_fingerprint() {
        let mut bytes = [0_u8; at::LEN];
        for slot in [0, 5, 13, 14] {
            bytes[2 * slot..2 * slot + 2].copy_from_slice(&0xabcd_u16.to_le_bytes());
        }
        let line = Line::new(&bytes);
        assert!(line.matches(0xabcd).eq([0, 5, 13]), "the equal first offset is not a slot");
        assert!(line.used().eq([0, 5, 13]));
        assert_eq!(line.matches(0xabce).count(), 0);
    }

    #[test]
    fn records_begin_at_units_from_the_base() {
        let mut bytes = [0_u8; at::LEN];
        bytes[at::BASE..].copy_from_slice(&[0, 0, 0, 0, 0, 1]);
        bytes[at::OFFSETS + 2..at::OFFSETS + 4].copy_from_slice(&[3, 0]);
        bytes[at::SHIFT] = 20;
        bytes[at::OVERFLOW] = 0xff;
        let line = Line::new(&bytes);
        assert_eq!(line.record(0), 1 << 40);
        assert_eq!(line.record(1), (1 << 40) + (3 << 20));
        assert_eq!((line.shift(), line.overflow()), (20, 0xff));
    }

    #[test]
    fn the_sse2_comparison_agrees_with_the_portable_one() {
        for seed in 0..=255_u8 {
            let bytes = std::array::from_fn(|i| seed.wrapping_mul(i as u8) & 3);
            for wanted in 0..0x404 {
                assert_eq!(equal_mask(&bytes, wanted), equal_mask_portable(&bytes, wanted));
            }
        }
    }
}
