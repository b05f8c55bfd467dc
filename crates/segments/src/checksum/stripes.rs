//! The loop of XXH3-64 over complete blocks of stripes, with eight accumulators and the widest
//! instructions of the processor. Each stripe is loaded once: if it is also copied, the register
//! that was accumulated is stored.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _MM_PERM_BADC, _mm_prefetch, _mm256_add_epi64, _mm256_loadu_si256,
    _mm256_mul_epu32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi32,
    _mm256_slli_epi64, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256, _mm512_add_epi64,
    _mm512_loadu_si512, _mm512_mul_epu32, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_shuffle_epi32, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512,
    _mm512_xor_si512,
};

pub(crate) const STRIPE: usize = 64;
/// Sixteen stripes. Each uses the secret from eight bytes further on; after them the accumulators
/// are scrambled.
pub(crate) const BLOCK: usize = 16 * STRIPE;
pub(crate) const SECRET_LEN: usize = 192;
/// The offset of the secret for scrambling.
const SCRAMBLE_SECRET: usize = SECRET_LEN - STRIPE;
const PRIME: u32 = 0x9E37_79B1;
/// Bytes between a load and the prefetch: one page, since the hardware prefetcher stops at the end
/// of a page.
#[cfg(target_arch = "x86_64")]
const PREFETCH_DISTANCE: usize = 4096;

type Accumulators = [u64; 8];
type Secret = [u8; SECRET_LEN];

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instructions {
    #[cfg(target_arch = "x86_64")]
    Avx512(Proof),
    #[cfg(target_arch = "x86_64")]
    Avx2(Proof),
    Plain,
}

/// Proof that the processor has an instruction set. Only the functions below, which check it,
/// create one.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof(());

impl Instructions {
    /// Returns the widest instruction set of the processor.
    #[inline]
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            return Self::Avx512(Proof(()));
        } else if is_x86_feature_detected!("avx2") {
            return Self::Avx2(Proof(()));
        }
        Self::Plain
    }

    /// Returns all supported instruction sets of the processor.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Self::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(is_x86_feature_detected!("avx2").then_some(Self::Avx2(Proof(()))));
            all.extend(is_x86_feature_detected!("avx512f").then_some(Self::Avx512(Proof(()))));
        }
        all
    }
}

/// Adds the complete blocks of `from` to the accumulators and ignores the rest.
pub(crate) fn sum_blocks(
    instructions: Instructions,
    sums: &mut Accumulators,
    secret: &Secret,
    from: &[u8],
) {
    match instructions {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the instructions, and the slice has this many blocks.
        Instructions::Avx512(_) => unsafe {
            avx512::<false>(sums, secret, from.as_ptr(), std::ptr::null_mut(), from.len() / BLOCK);
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Instructions::Avx2(_) => unsafe {
            avx2::<false>(sums, secret, from.as_ptr(), std::ptr::null_mut(), from.len() / BLOCK);
        },
        Instructions::Plain => {
            from.chunks_exact(BLOCK).for_each(|block| plain(sums, secret, block));
        }
    }
}

/// Copies complete blocks and adds the copied bytes to the accumulators.
///
/// # Panics
///
/// Panics if both slices do not have the same length, a multiple of a block.
pub(crate) fn copy_blocks(
    instructions: Instructions,
    sums: &mut Accumulators,
    secret: &Secret,
    from: &[u8],
    to: &mut [u8],
) {
    assert!(from.len() == to.len() && from.len().is_multiple_of(BLOCK), "whole blocks");
    #[cfg(target_arch = "x86_64")]
    let blocks = from.len() / BLOCK;
    match instructions {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has the instructions, and both slices have this many blocks.
        Instructions::Avx512(_) => unsafe {
            avx512::<true>(sums, secret, from.as_ptr(), to.as_mut_ptr(), blocks);
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Instructions::Avx2(_) => unsafe {
            avx2::<true>(sums, secret, from.as_ptr(), to.as_mut_ptr(), blocks);
        },
        Instructions::Plain => {
            for (from, to) in from.chunks_exact(BLOCK).zip(to.chunks_exact_mut(BLOCK)) {
                to.copy_from_slice(from);
                plain(sums, secret, to);
            }
        }
    }
}

fn plain(sums: &mut Accumulators, secret: &Secret, block: &[u8]) {
    for (number, stripe) in block.chunks_exact(STRIPE).enumerate() {
        add(sums, stripe, &secret[number * 8..]);
    }
    for (sum, key) in sums.iter_mut().zip(secret[SCRAMBLE_SECRET..].chunks_exact(8)) {
        *sum = (*sum ^ (*sum >> 47) ^ word(key)).wrapping_mul(u64::from(PRIME));
    }
}

/// Adds blocks with AVX-512, and copies them if `COPY`. All secrets of a block stay in registers,
/// and four accumulators are used in turn, since each addition would wait for the one before it
/// otherwise.
///
/// # Safety
///
/// The processor must have AVX-512F. `from` must be valid for reading `blocks` blocks and, if
/// `COPY`, `to` for writing as many.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const COPY: bool>(
    sums: &mut Accumulators,
    secret: &Secret,
    from: *const u8,
    to: *mut u8,
    blocks: usize,
) {
    // SAFETY: 16 times 8 bytes plus a stripe are the length of the secret.
    let key = |at: usize| unsafe { _mm512_loadu_si512(secret[at..at + STRIPE].as_ptr().cast()) };
    let keys: [__m512i; 16] = std::array::from_fn(|stripe| key(stripe * 8));
    let (scramble, prime) = (key(SCRAMBLE_SECRET), _mm512_set1_epi64(i64::from(PRIME)));
    // SAFETY: a register has eight words.
    let mut sum = unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) };
    // Adds a stripe to an accumulator.
    let step = |sum: __m512i, block: usize, stripe: usize| {
        let at = block * BLOCK + stripe * STRIPE;
        if COPY {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at + PREFETCH_DISTANCE).cast());
        }
        // SAFETY: the stripe is in a block that the caller provides.
        let value = unsafe { _mm512_loadu_si512(from.wrapping_add(at).cast()) };
        if COPY {
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(to.wrapping_add(at).cast(), value) };
        }
        let key = _mm512_xor_si512(value, keys[stripe]);
        let product = _mm512_mul_epu32(key, _mm512_srli_epi64::<32>(key));
        let swapped = _mm512_shuffle_epi32::<_MM_PERM_BADC>(value);
        _mm512_add_epi64(_mm512_add_epi64(swapped, product), sum)
    };
    for block in 0..blocks {
        let none = _mm512_setzero_si512();
        let (mut first, mut second, mut third, mut fourth) = (sum, none, none, none);
        for stripe in (0..16).step_by(4) {
            first = step(first, block, stripe);
            second = step(second, block, stripe + 1);
            third = step(third, block, stripe + 2);
            fourth = step(fourth, block, stripe + 3);
        }
        let both = (_mm512_add_epi64(first, second), _mm512_add_epi64(third, fourth));
        sum = _mm512_add_epi64(both.0, both.1);
        let mixed = _mm512_xor_si512(sum, _mm512_srli_epi64::<47>(sum));
        let mixed = _mm512_xor_si512(mixed, scramble);
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(mixed), prime);
        let low = _mm512_mul_epu32(mixed, prime);
        sum = _mm512_add_epi64(low, _mm512_slli_epi64::<32>(high));
    }
    // SAFETY: as for the load.
    unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum) };
}

/// Does the same as [`avx512`] with AVX2, with two registers for each stripe.
///
/// # Safety
///
/// The processor must have AVX2. `from` must be valid for reading `blocks` blocks and, if `COPY`,
/// `to` for writing as many.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<const COPY: bool>(
    sums: &mut Accumulators,
    secret: &Secret,
    from: *const u8,
    to: *mut u8,
    blocks: usize,
) {
    const HALF: usize = STRIPE / 2;
    // SAFETY: the half is in the secret.
    let key = |at: usize| unsafe { _mm256_loadu_si256(secret[at..at + HALF].as_ptr().cast()) };
    let prime = _mm256_set1_epi64x(i64::from(PRIME));
    // SAFETY: two registers have eight words.
    let load = |half: usize| unsafe { _mm256_loadu_si256(sums[half * 4..].as_ptr().cast()) };
    let mut sum = [load(0), load(1)];
    for block in 0..blocks {
        let mut products = [_mm256_setzero_si256(); 2];
        for stripe in 0..16 {
            let at = block * BLOCK + stripe * STRIPE;
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at + PREFETCH_DISTANCE).cast());
            for half in 0..2 {
                let at = at + half * HALF;
                // SAFETY: the half is in a block that the caller provides.
                let value = unsafe { _mm256_loadu_si256(from.wrapping_add(at).cast()) };
                if COPY {
                    // SAFETY: as above.
                    unsafe { _mm256_storeu_si256(to.wrapping_add(at).cast(), value) };
                }
                let key = _mm256_xor_si256(value, key(stripe * 8 + half * HALF));
                let product = _mm256_mul_epu32(key, _mm256_srli_epi64::<32>(key));
                let swapped = _mm256_shuffle_epi32::<0b0100_1110>(value);
                products[half] = _mm256_add_epi64(products[half], product);
                sum[half] = _mm256_add_epi64(sum[half], swapped);
            }
        }
        for half in 0..2 {
            let all = _mm256_add_epi64(sum[half], products[half]);
            let mixed = _mm256_xor_si256(all, _mm256_srli_epi64::<47>(all));
            let mixed = _mm256_xor_si256(mixed, key(SCRAMBLE_SECRET + half * HALF));
            let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(mixed), prime);
            let low = _mm256_mul_epu32(mixed, prime);
            sum[half] = _mm256_add_epi64(low, _mm256_slli_epi64::<32>(high));
        }
    }
    for (half, sum) in sum.into_iter().enumerate() {
        // SAFETY: as for the loads.
        unsafe { _mm256_storeu_si256(sums[half * 4..].as_mut_ptr().cast(), sum) };
    }
}

/// Adds a stripe to the accumulators.
pub(super) fn add(sums: &mut [u64; 8], stripe: &[u8], secret: &[u8]) {
    for (lane, (value, key)) in stripe.chunks_exact(8).zip(secret.chunks_exact(8)).enumerate() {
        let (value, key) = (word(value), word(value) ^ word(key));
        sums[lane ^ 1] = sums[lane ^ 1].wrapping_add(value);
        sums[lane] = sums[lane].wrapping_add((key & 0xFFFF_FFFF) * (key >> 32));
    }
}

/// Returns the first eight bytes as a number, or zero if there are fewer.
pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}
