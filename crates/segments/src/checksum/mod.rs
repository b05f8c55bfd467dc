//! The checksum of bytes, XXH3-64, also of bytes on their way to another place: what is summed up
//! is what was stored there, so nobody can change it in between.
//!
//! Long inputs are summed up here, with the widest instructions that the machine has: a part that
//! comes from the page cache is then checked in the time that its bytes take to arrive.

mod stripes;

use stripes::{BLOCK, Kind, SECRET_LEN, STRIPE, add, copy_blocks, sum_blocks, word};
use twox_hash::XxHash3_64;
use twox_hash::xxhash3_64::{RawHasher, SecretBuffer};

/// Inputs up to here are left to the other crate, which is as fast at them.
const SHORT: usize = 8 << 10;
/// The least input that has stripes.
const STRIPED: usize = 241;

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
/// The sums before the first stripe.
const START: [u64; 8] = [
    0xC2B2_AE3D,
    PRIME_1,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x85EB_CA77,
    0x27D4_EB2F_1656_67C5,
    0x9E37_79B1,
];
/// Where in the secret the last stripe has its part, and the merging of the sums.
const LAST_SECRET: usize = SECRET_LEN - STRIPE - 7;
const MERGE_SECRET: usize = 11;

/// The checksum of a part: XXH3-64.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    if bytes.len() <= SHORT { XxHash3_64::oneshot(bytes) } else { sum(Kind::best(), bytes) }
}

/// Copies bytes, `STRIPED` at least, to a place of the same length and answers the checksum of what
/// is there then.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) -> u64 {
    copy_with(Kind::best(), from, to)
}

/// Has a buffer filled piece by piece, from offsets in it on, and sums each piece up while it is
/// near. The pieces have `piece` bytes, a multiple of a block, but for the last; a short buffer is
/// filled at once.
pub(crate) fn fill<E>(
    out: &mut [u8],
    piece: usize,
    mut fill: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let (kind, len) = (Kind::best(), out.len());
    if len <= SHORT {
        fill(0, out)?;
        return Ok(checksum(out));
    }
    let (mut sums, mut summed) = (START, 0);
    for start in (0..len).step_by(piece) {
        let end = len.min(start + piece);
        fill(start as u64, &mut out[start..end])?;
        let whole = whole_blocks(len).min(end / BLOCK * BLOCK);
        sum_blocks(kind, &mut sums, secret(), &out[summed..whole]);
        summed = whole;
    }
    Ok(finish(sums, out))
}

/// The bytes of the blocks before the last one, which may be whole as well.
fn whole_blocks(len: usize) -> usize {
    len.saturating_sub(1) / BLOCK * BLOCK
}

/// Of bytes that have stripes.
fn sum(kind: Kind, bytes: &[u8]) -> u64 {
    let mut sums = START;
    sum_blocks(kind, &mut sums, secret(), &bytes[..whole_blocks(bytes.len())]);
    finish(sums, bytes)
}

fn copy_with(kind: Kind, from: &[u8], to: &mut [u8]) -> u64 {
    let whole = whole_blocks(from.len());
    let mut sums = START;
    copy_blocks(kind, &mut sums, secret(), &from[..whole], &mut to[..whole]);
    to[whole..].copy_from_slice(&from[whole..]);
    // From here on what was copied alone is looked at.
    finish(sums, to)
}

/// The checksum of bytes that have stripes, of which all blocks but the last are in the sums.
fn finish(mut sums: [u64; 8], bytes: &[u8]) -> u64 {
    debug_assert!(bytes.len() >= STRIPED, "{} bytes have no stripes", bytes.len());
    let last_block = &bytes[whole_blocks(bytes.len())..];
    let stripes = last_block[..last_block.len() - 1].chunks_exact(STRIPE);
    for (number, stripe) in stripes.enumerate() {
        add(&mut sums, stripe, &secret()[number * 8..]);
    }
    // It may have bytes that were in the one before.
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

/// What the sums are mixed with.
fn secret() -> &'static [u8; SECRET_LEN] {
    RawHasher::new(SecretBuffer::default()).into_secret()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    /// Lengths around those at which something begins, or all of them up to one where that is fast.
    fn lengths() -> Vec<usize> {
        let most = if cfg!(miri) { 0 } else { 5000 };
        let some = [STRIPED, 1023, 1024, 1025, 1088, 1089, 2047, 2048, 2049, 8192, 8193, 70_001];
        (STRIPED..most).chain(some.into_iter().filter(|len| !cfg!(miri) || *len < 2100)).collect()
    }

    /// XXH3-64 as the other crate has it, but where its instructions cannot be run.
    fn expected(bytes: &[u8]) -> u64 {
        if cfg!(miri) { xxhash_rust::xxh3::xxh3_64(bytes) } else { XxHash3_64::oneshot(bytes) }
    }

    #[test]
    fn all_kinds_agree_with_the_other_crate_at_every_length() {
        let all = bytes(70_100);
        for len in lengths() {
            // Never aligned alike.
            let from = &all[len % 67..][..len];
            let expected = expected(from);
            for kind in Kind::all() {
                let mut to = vec![0x5A; len + 2];
                let place = &mut to[1..=len];
                assert_eq!(copy_with(kind, from, place), expected, "{kind:?}, {len} bytes");
                assert!(place == from, "{kind:?} copied {len} bytes wrongly");
                assert_eq!((to[0], to[len + 1]), (0x5A, 0x5A), "{kind:?} went beyond {len}");
                assert_eq!(sum(kind, from), expected, "{kind:?}, {len} bytes without a copy");
            }
        }
    }

    #[test]
    fn a_buffer_that_is_filled_in_pieces_has_the_same_sum() {
        let all = bytes(70_001);
        for len in (0..STRIPED).chain(lengths()) {
            for piece in [BLOCK, 4 * BLOCK, 128 << 10] {
                let mut out = vec![0; len];
                let filled = fill(&mut out, piece, |at, out| {
                    out.copy_from_slice(&all[at as usize..][..out.len()]);
                    Ok::<(), ()>(())
                });
                assert_eq!(filled, Ok(expected(&all[..len])), "{len} bytes in pieces of {piece}");
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
    fn no_bit_can_change_unseen() {
        let len = if cfg!(miri) { 1100 } else { 3200 };
        let good = bytes(len);
        let mut to = vec![0; len];
        for kind in Kind::all() {
            let sum = copy_with(kind, &good, &mut to);
            for at in (0..len).step_by(if cfg!(miri) { 97 } else { 1 }) {
                let mut bad = good.clone();
                bad[at] ^= 1 << (at % 8);
                assert_ne!(copy_with(kind, &bad, &mut to), sum, "{kind:?}, byte {at}");
            }
        }
    }
}
