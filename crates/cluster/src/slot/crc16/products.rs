//! The checksum of a word by Barrett reduction, with two products of polynomials over GF(2): Gopal
//! et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.

use super::{WORD, fold_without, word};
use std::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_cmpeq_epi8, _mm_cvtsi64_si128, _mm_cvtsi128_si32,
    _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8, _mm_setzero_si128, _mm_slli_epi64,
    _mm_unpackhi_epi64, _mm_xor_si128,
};

/// The polynomial of the checksum, of degree 16.
const POLYNOMIAL: u64 = 0x1_1021;
/// The quotient of x^80 and the polynomial, without its highest term, x^64.
const QUOTIENT: u64 = quotient();

const fn quotient() -> u64 {
    let (mut rest, mut quotient) = (1_u128 << 80, 0_u128);
    let mut degree = 80;
    while degree >= 16 {
        if rest >> degree & 1 == 1 {
            rest ^= (POLYNOMIAL as u128) << (degree - 16);
            quotient |= 1 << (degree - 16);
        }
        degree -= 1;
    }
    quotient as u64
}

/// Computes the checksum of `bytes`. Returns `None` if they contain `excluded`.
#[target_feature(enable = "pclmulqdq")]
pub(super) fn crc16_without(bytes: &[u8], excluded: u8) -> Option<u16> {
    let factors = _mm_set_epi64x(POLYNOMIAL.cast_signed(), QUOTIENT.cast_signed());
    let add = |crc, word| add(crc, word, factors);
    let start = _mm_setzero_si128();
    let crc = match (bytes.first_chunk(), bytes.last_chunk()) {
        // Most keys have two words, which need no loop.
        (Some(first), Some(last)) if bytes.len() <= 2 * WORD => {
            let (first, last) = (word(first), word(last));
            if has_byte(first, last, excluded) {
                return None;
            }
            // The first word ends where the last one begins. It may have no bits left.
            let half = 4 * (2 * WORD - bytes.len());
            add(add(start, first >> half >> half), last)
        }
        _ => fold_without(bytes, excluded, start, add)?,
    };
    Some(_mm_cvtsi128_si32(crc).cast_unsigned() as u16)
}

/// Returns whether a byte of two words equals `byte`.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn has_byte(first: u64, last: u64, byte: u8) -> bool {
    let words = _mm_set_epi64x(last.cast_signed(), first.cast_signed());
    _mm_movemask_epi8(_mm_cmpeq_epi8(words, _mm_set1_epi8(byte.cast_signed()))) != 0
}

/// Adds the bytes of a word to a checksum, the highest first: returns the remainder of the word,
/// multiplied by x^16. Checksums are the lowest 16 bits; the bits above are undefined.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn add(crc: __m128i, word: u64, factors: __m128i) -> __m128i {
    let word = _mm_xor_si128(_mm_slli_epi64::<48>(crc), _mm_cvtsi64_si128(word.cast_signed()));
    let product = _mm_clmulepi64_si128::<0x00>(word, factors);
    // The highest term of the quotient adds the word itself.
    let quotient = _mm_xor_si128(_mm_unpackhi_epi64(product, product), word);
    // The lowest terms of the word multiplied by x^16 are zero, so the remainder is the rest.
    _mm_clmulepi64_si128::<0x10>(quotient, factors)
}
