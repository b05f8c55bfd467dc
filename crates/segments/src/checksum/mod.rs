//! Checksums: XXH3-64. No other module calls the library.
//!
//! The checksum of a part can also be computed while bytes are copied or read. Then the bytes at
//! the destination are summed: another process cannot change them between the copy and the check.
//!
//! Long inputs use the loops of [`stripes`], with the widest instructions of the processor:
//! checking a part from the page cache then takes no longer than loading its bytes.

mod stripes;

use stripes::{BLOCK, Instructions, SECRET_LEN, STRIPE, add, copy_blocks, sum_blocks, word};
use twox_hash::XxHash3_64;
use twox_hash::xxhash3_64::{RawHasher, SecretBuffer};

/// Maximum length of inputs for which `twox_hash` is used, which is as fast for them.
const MAX_SHORT_LEN: usize = 8 << 10;
/// Minimum length of inputs that are hashed in stripes.
const MIN_STRIPED_LEN: usize = 241;

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
/// The accumulators before the first stripe.
const INITIAL: [u64; 8] = [
    0xC2B2_AE3D,
    PRIME_1,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x85EB_CA77,
    0x27D4_EB2F_1656_67C5,
    0x9E37_79B1,
];
/// The offsets in the secret for the last stripe and for merging the accumulators.
const LAST_SECRET: usize = SECRET_LEN - STRIPE - 7;
const MERGE_SECRET: usize = 11;

/// Returns the checksum of a part: XXH3-64 of its bytes.
#[inline]
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    if bytes.len() <= MAX_SHORT_LEN {
        XxHash3_64::oneshot(bytes)
    } else {
        sum(Instructions::best(), bytes)
    }
}

/// Returns the checksum of the head of a record: XXH3-64 of its bytes, with a seed.
pub(crate) fn seeded_checksum(bytes: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// Copies at least `MIN_STRIPED_LEN` bytes to a slice of the same length. Returns the checksum of
/// the copy.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) -> u64 {
    copy_with(Instructions::best(), from, to)
}

/// Fills a buffer in pieces of `piece` bytes, a multiple of a block, and sums each piece while it
/// is in the processor caches. `fill` gets the offset of the piece. A short buffer is filled at
/// once. Returns the checksum.
///
/// # Errors
///
/// Returns the first error of `fill`.
pub(crate) fn fill<E>(
    out: &mut [u8],
    piece: usize,
    mut fill: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let (instructions, len) = (Instructions::best(), out.len());
    if len <= MAX_SHORT_LEN {
        fill(0, out)?;
        return Ok(checksum(out));
    }
    let (mut sums, mut summed) = (INITIAL, 0);
    for start in (0..len).step_by(piece) {
        let end = len.min(start + piece);
        fill(start as u64, &mut out[start..end])?;
        let blocks_end = whole_blocks(len).min(end / BLOCK * BLOCK);
        sum_blocks(instructions, &mut sums, secret(), &out[summed..blocks_end]);
        summed = blocks_end;
    }
    Ok(finish(sums, out))
}

/// Returns the number of bytes in all blocks before the last one, which may be complete as well.
fn whole_blocks(len: usize) -> usize {
    len.saturating_sub(1) / BLOCK * BLOCK
}

/// Returns the checksum of bytes that have stripes.
fn sum(instructions: Instructions, bytes: &[u8]) -> u64 {
    let mut sums = INITIAL;
    sum_blocks(instructions, &mut sums, secret(), &bytes[..whole_blocks(bytes.len())]);
    finish(sums, bytes)
}

fn copy_with(instructions: Instructions, from: &[u8], to: &mut [u8]) -> u64 {
    let blocks_end = whole_blocks(from.len());
    let mut sums = INITIAL;
    copy_blocks(instructions, &mut sums, secret(), &from[..blocks_end], &mut to[..blocks_end]);
    to[blocks_end..].copy_from_slice(&from[blocks_end..]);
    // From here on only the copy is read.
    finish(sums, to)
}

/// Returns the checksum of bytes that have stripes. The accumulators contain all blocks but the
/// last.
fn finish(mut sums: [u64; 8], bytes: &[u8]) -> u64 {
    debug_assert!(bytes.len() >= MIN_STRIPED_LEN, "{} bytes have no stripes", bytes.len());
    let last_block = &bytes[whole_blocks(bytes.len())..];
    let stripes = last_block[..last_block.len() - 1].chunks_exact(STRIPE);
    for (number, stripe) in stripes.enumerate() {
        add(&mut sums, stripe, &secret()[number * 8..]);
    }
    // The last stripe may overlap the one before it.
    add(&mut sums, &bytes[bytes.len() - STRIPE..], &secret()[LAST_SECRET..]);
    let mut result = (bytes.len() as u64).wrapping_mul(PRIME_1);
    for (pair, key) in sums.chunks_exact(2).zip(secret()[MERGE_SECRET..].chunks_exact(16)) {
        let product = u128::from(pair[0] ^ word(key)) * u128::from(pair[1] ^ word(&key[8..]));
        result = result.wrapping_add(product as u64 ^ (product >> 64) as u64);
    }
    result ^= result >> 37;
    result = result.wrapping_mul(0x1656_6791_9E37_79F9);
    result ^ (result >> 32)
}

/// Returns the default secret of XXH3.
fn secret() -> &'static [u8; SECRET_LEN] {
    RawHasher::new(SecretBuffer::default()).into_secret()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_testing::random;
    use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

    /// Returns lengths around the limits of the algorithm; without Miri also all lengths up to
    /// 5000.
    fn lengths() -> Vec<usize> {
        let max = if cfg!(miri) { 0 } else { 5000 };
        let some =
            [MIN_STRIPED_LEN, 1023, 1024, 1025, 1088, 1089, 2047, 2048, 2049, 8192, 8193, 70_001];
        (MIN_STRIPED_LEN..max)
            .chain(some.into_iter().filter(|len| !cfg!(miri) || *len < 2100))
            .collect()
    }

    #[test]
    fn all_instruction_sets_agree_with_another_implementation() {
        let all = random::bytes(1, 70_100);
        for len in lengths() {
            // Each length begins at another alignment.
            let from = &all[len % 67..][..len];
            let expected = xxh3_64(from);
            for instructions in Instructions::all() {
                let mut to = vec![0x5A; len + 2];
                let place = &mut to[1..=len];
                assert_eq!(
                    copy_with(instructions, from, place),
                    expected,
                    "{instructions:?}, {len} bytes"
                );
                assert!(place == from, "{instructions:?} copied {len} bytes wrongly");
                assert_eq!(
                    (to[0], to[len + 1]),
                    (0x5A, 0x5A),
                    "{instructions:?} went beyond {len}"
                );
                assert_eq!(
                    sum(instructions, from),
                    expected,
                    "{instructions:?}, {len} bytes without a copy"
                );
            }
        }
    }

    #[test]
    fn checksums_are_those_of_another_implementation() {
        let all = random::bytes(1, 20_000);
        for len in (0..MIN_STRIPED_LEN).chain(lengths().into_iter().filter(|len| *len < 20_000)) {
            let bytes = &all[..len];
            assert_eq!(checksum(bytes), xxh3_64(bytes), "{len} bytes");
            let seed = len as u64 ^ 0xD1B5_4A32_D192_ED03;
            assert_eq!(seeded_checksum(bytes, seed), xxh3_64_with_seed(bytes, seed), "{len} bytes");
        }
    }

    #[test]
    fn a_buffer_that_is_filled_in_pieces_has_the_same_sum() {
        let all = random::bytes(1, 70_001);
        for len in (0..MIN_STRIPED_LEN).chain(lengths()) {
            for piece in [BLOCK, 4 * BLOCK, 128 << 10] {
                let mut out = vec![0; len];
                let filled = fill(&mut out, piece, |at, out| {
                    out.copy_from_slice(&all[at as usize..][..out.len()]);
                    Ok::<(), ()>(())
                });
                assert_eq!(filled, Ok(xxh3_64(&all[..len])), "{len} bytes in pieces of {piece}");
            }
        }
        for len in [5000, 50_000] {
            let mut out = vec![0; len];
            let last = |at, out: &mut [u8]| at as usize + out.len() == len;
            let refused =
                fill(&mut out, BLOCK, |at, out| if last(at, out) { Err(7) } else { Ok(()) });
            assert_eq!(refused, Err(7));
        }
    }

    #[test]
    fn every_flipped_bit_changes_the_checksum() {
        let len = if cfg!(miri) { 1100 } else { 3200 };
        let good = random::bytes(1, len);
        let mut to = vec![0; len];
        for instructions in Instructions::all() {
            let sum = copy_with(instructions, &good, &mut to);
            for at in (0..len).step_by(if cfg!(miri) { 97 } else { 1 }) {
                let mut flipped = good.clone();
                flipped[at] ^= 1 << (at % 8);
                assert_ne!(
                    copy_with(instructions, &flipped, &mut to),
                    sum,
                    "{instructions:?}, byte {at}"
                );
            }
        }
    }
}
