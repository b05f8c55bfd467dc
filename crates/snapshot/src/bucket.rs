//! A line of the index: which slots have a fingerprint, and where their records begin.

use crate::layout::line as at;

/// One line of the index, 64 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a>(&'a [u8; at::LEN]);

/// The slots of a line whose fingerprint matches, lowest first.
#[derive(Clone, Copy)]
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

    /// Number of slots in use; a damaged line may claim more than there are.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        usize::from(self.0[at::COUNT])
    }

    #[inline(always)]
    pub(crate) fn shift(self) -> u8 {
        self.0[at::SHIFT]
    }

    #[inline(always)]
    pub(crate) fn overflow(self) -> u16 {
        u16::from_le_bytes([self.0[at::OVERFLOW], self.0[at::OVERFLOW + 1]])
    }

    #[inline(always)]
    pub(crate) fn base(self) -> u64 {
        // Eight bytes from the base on: its six, count and shift, which are cut off.
        let (_, tail) = self.0.split_at(at::BASE);
        let word = tail.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        word & 0xffff_ffff_ffff
    }

    #[inline(always)]
    pub(crate) fn fingerprint(self, slot: usize) -> u8 {
        self.0[at::FINGERPRINTS + slot]
    }

    /// Where the record of a slot begins in the file. Any result is possible in a damaged line.
    #[inline(always)]
    pub(crate) fn record(self, slot: usize) -> u64 {
        let (_, offsets) = self.0.split_at(at::OFFSETS);
        let (offsets, _) = offsets.as_chunks::<2>();
        let offset = u16::from_le_bytes(offsets[slot]);
        self.base() + (u64::from(offset) << (self.shift() % 32))
    }

    /// The used slots that hold this fingerprint.
    #[inline(always)]
    pub(crate) fn matches(self, fingerprint: u8) -> Slots {
        let used = (1_u64 << (self.count() % 64)) - 1;
        let all = (1_u32 << at::SLOTS) - 1;
        Slots(equal_mask(self.0, fingerprint) & used as u32 & all)
    }
}

/// Bit `i` is set when byte `i` of the line, of the first 32, equals `byte`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn equal_mask(line: &[u8; at::LEN], byte: u8) -> u32 {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { equal_mask_sse2(line, byte) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn equal_mask_sse2(line: &[u8; at::LEN], byte: u8) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
    };
    let wanted = _mm_set1_epi8(byte.cast_signed());
    let (chunks, _) = line.as_chunks::<16>();
    // SAFETY: the load reads 16 bytes, needs no alignment, and the reference is to 16 bytes.
    let low = unsafe { _mm_loadu_si128(std::ptr::from_ref(&chunks[0]).cast::<__m128i>()) };
    // SAFETY: as above.
    let high = unsafe { _mm_loadu_si128(std::ptr::from_ref(&chunks[1]).cast::<__m128i>()) };
    let low = _mm_movemask_epi8(_mm_cmpeq_epi8(low, wanted)).cast_unsigned();
    let high = _mm_movemask_epi8(_mm_cmpeq_epi8(high, wanted)).cast_unsigned();
    low | high << 16
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn equal_mask(line: &[u8; at::LEN], byte: u8) -> u32 {
    equal_mask_portable(line, byte)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn equal_mask_portable(line: &[u8; at::LEN], byte: u8) -> u32 {
    line[..32].iter().enumerate().fold(0, |mask, (i, &b)| mask | u32::from(b == byte) << i)
}

/// Asks for the cache line of this address ahead of its use. Never faults.
#[inline(always)]
pub(crate) fn prefetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: a prefetch reads nothing, faults at no address and clobbers nothing.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) std::ptr::from_ref(byte),
                options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = byte;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_the_used_slots_with_the_fingerprint() {
        let mut bytes = [0_u8; at::LEN];
        for slot in [0, 5, 16, 17] {
            bytes[slot] = 0xab;
        }
        bytes[at::OFFSETS] = 0xab; // the byte after the last fingerprint
        for (count, expected) in
            [(0, vec![]), (1, vec![0]), (6, vec![0, 5]), (17, vec![0, 5, 16]), (18, vec![0, 5, 16, 17])]
        {
            bytes[at::COUNT] = count;
            let found: Vec<_> = Line::new(&bytes).matches(0xab).collect();
            assert_eq!(found, expected, "with {count} slots in use");
        }
        bytes[at::COUNT] = 63; // damaged
        assert_eq!(Line::new(&bytes).matches(0xab).count(), 4);
    }

    #[test]
    fn both_ways_to_compare_agree() {
        let mut bytes = [0_u8; at::LEN];
        for seed in 0..=255_u8 {
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = seed.wrapping_mul(i as u8) & 3;
            }
            for byte in 0..4 {
                assert_eq!(equal_mask(&bytes, byte), equal_mask_portable(&bytes, byte));
            }
        }
    }
}
