//! CRC-16/XMODEM: polynomial 0x1021, initial value 0, not reflected.
//!
//! Requests of clients wait for it, so a word of eight bytes is added at a time: with instructions
//! for carry-less multiplication, or with tables.

#[cfg(target_arch = "x86_64")]
mod products;
mod tables;

/// Number of bytes in a word.
const WORD: usize = 8;

/// Computes the checksum of `bytes`.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    let (first, rest) = words(bytes);
    rest.iter().fold(tables::add(0, first), |crc, bytes| tables::add(crc, word(bytes)))
}

/// Computes the checksum of `bytes` that do not contain `excluded`, which is not zero. Returns
/// `None` if they do.
#[inline]
pub(super) fn crc16_without(bytes: &[u8], excluded: u8) -> Option<u16> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: the processor has the instructions that the function requires.
        return unsafe { products::crc16_without(bytes, excluded) };
    }
    crc16_without_by_tables(bytes, excluded)
}

/// Computes what [`crc16_without`] returns, with tables. Not inlined, so that the callers of the
/// faster function stay short.
#[inline(never)]
fn crc16_without_by_tables(bytes: &[u8], excluded: u8) -> Option<u16> {
    fold_without(bytes, excluded, 0, tables::add)
}

/// Adds all words of `bytes` to a checksum that begins with `start`. Returns `None` if they contain
/// `excluded`.
#[inline(always)]
fn fold_without<C>(bytes: &[u8], excluded: u8, start: C, add: impl Fn(C, u64) -> C) -> Option<C> {
    let (first, rest) = words(bytes);
    let (mut checksum, mut found) = (add(start, first), matches(first, excluded));
    for bytes in rest {
        let word = word(bytes);
        found |= matches(word, excluded);
        checksum = add(checksum, word);
    }
    (found == 0).then_some(checksum)
}

/// Returns the bytes as words: the first, and the others. The first has zeros before the first
/// byte, if necessary: these do not change a checksum that begins with zero.
#[inline(always)]
fn words(bytes: &[u8]) -> (u64, &[[u8; WORD]]) {
    match bytes.first_chunk::<WORD>() {
        Some(chunk) => {
            let len = (bytes.len() - 1) % WORD + 1;
            // Faster than a loop over the bytes: the chunk ends within the next word.
            (word(chunk) >> (64 - 8 * len), bytes[len..].as_chunks().0)
        }
        None => (bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), &[]),
    }
}

/// Returns bytes as a word, with the first one as the highest.
#[inline(always)]
fn word(bytes: &[u8; WORD]) -> u64 {
    u64::from_le_bytes(*bytes).swap_bytes()
}

/// Returns a number that is not zero if a byte of `word` equals `byte`, which must not be zero.
#[inline(always)]
fn matches(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    // A byte is found if subtracting one from its difference borrows: see Warren, "Hacker's
    // Delight", section 6-1. Bytes above the lowest one may be found wrongly, which does not
    // matter here.
    let difference = word ^ ONES * u64::from(byte);
    difference.wrapping_sub(ONES) & !difference & ONES << 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_testing::random::Random;

    /// Computes the checksum by its definition, a bit at a time.
    fn by_bits(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0, |crc, byte| {
            (0..8).fold(crc ^ u16::from(*byte) << 8, |crc: u16, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
            })
        })
    }

    /// Checks the value that the catalogue of CRC algorithms lists for XMODEM.
    #[test]
    fn the_check_value_is_that_of_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn words_have_the_checksum_of_bits() {
        let mut random = Random::new(16);
        for len in 0..200 {
            let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            let expected = by_bits(&bytes);
            assert_eq!(crc16(&bytes), expected, "{bytes:?}");
            let excluded = (1..=u8::MAX).find(|byte| !bytes.contains(byte)).expect("a byte");
            assert_eq!(crc16_without_by_tables(&bytes, excluded), Some(expected), "{bytes:?}");
            assert_eq!(crc16_without(&bytes, excluded), Some(expected), "{bytes:?}");
        }
    }

    #[test]
    fn a_byte_that_is_excluded_is_found_at_each_place_and_no_other_byte() {
        for len in 0..40 {
            for other in 0..=u8::MAX {
                let mut bytes = vec![other; len];
                let has_it = other == b'{' && len > 0;
                assert_eq!(crc16_without(&bytes, b'{').is_none(), has_it, "{len} of {other}");
                for at in 0..len {
                    bytes[at] = b'{';
                    assert_eq!(crc16_without(&bytes, b'{'), None, "{len} of {other}, at {at}");
                    bytes[at] = other;
                }
            }
        }
    }
}
