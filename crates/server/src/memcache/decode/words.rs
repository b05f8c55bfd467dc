//! Words of a line, and numbers.

use crate::memcache::MAX_KEY_LEN;

/// Returns the number of leading bytes that may be part of a word: no space, control character or
/// delete.
#[inline]
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (i, chunk) in chunks.iter().enumerate() {
        let marks = special_bytes(u64::from_le_bytes(*chunk));
        if marks != 0 {
            return i * 8 + marks.trailing_zeros() as usize / 8;
        }
    }
    let special = rest.iter().position(|&byte| !is_plain(byte));
    bytes.len() - rest.len() + special.unwrap_or(rest.len())
}

/// Returns whether a byte may be part of a word.
#[inline]
pub(crate) fn is_plain(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// Sets the highest bit of the first of eight bytes that is not plain. Later bytes may be marked
/// wrongly, since the subtraction borrows from them.
#[inline]
fn special_bytes(eight: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let delete = eight ^ (ONES * 0x7f);
    let up_to_space = eight.wrapping_sub(ONES * 0x21) & !eight;
    let zero = delete.wrapping_sub(ONES) & !delete;
    (up_to_space | zero) & (ONES * 0x80)
}

/// Returns whether a word is a valid key.
#[inline]
pub(crate) fn is_key(word: &[u8]) -> bool {
    word.len() <= MAX_KEY_LEN && plain_len(word) == word.len()
}

/// An iterator over the words of a line, which are separated by spaces.
#[derive(Clone, Debug)]
pub(crate) struct Words<'b> {
    pub(crate) rest: &'b [u8],
}

impl<'b> Iterator for Words<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        let start = self.rest.iter().position(|&byte| byte != b' ')?;
        let text = &self.rest[start..];
        // A control character is part of its word, and refused when the word is parsed.
        let mut end = plain_len(text);
        if text.get(end).is_some_and(|&byte| byte != b' ') {
            end = memchr::memchr(b' ', text).unwrap_or(text.len());
        }
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

/// Parses an unsigned number of 64 bits. As in C, a plus sign is allowed.
#[inline]
pub(crate) fn unsigned(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        let next = number.checked_mul(10)?.checked_add(u64::from(digit))?;
        (digit < 10).then_some(next)
    })
}

/// Parses a signed number of 64 bits.
#[inline]
pub(crate) fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some([b'+', ..]) => None,
        Some(digits) => 0_i64.checked_sub_unsigned(unsigned(digits)?),
        None => i64::try_from(unsigned(word)?).ok(),
    }
}

/// Parses an unsigned number of 32 bits.
pub(crate) fn unsigned_32(word: &[u8]) -> Option<u32> {
    u32::try_from(unsigned(word)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_ends_where_each_byte_by_itself_says() {
        for special in 0..=u8::MAX {
            for at in 0..20 {
                for around in [b'!', b'~', 0x80, 0xff] {
                    let mut bytes = [around; 20];
                    bytes[at] = special;
                    let plain = special > b' ' && special != 0x7f;
                    let expected = if plain { 20 } else { at };
                    assert_eq!(plain_len(&bytes), expected, "{special:#x} at {at}");
                }
            }
        }
    }

    #[test]
    fn numbers_have_all_their_digits_and_fit() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(signed(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(
            (unsigned(b"+7"), signed(b"-7"), unsigned(b"007")),
            (Some(7), Some(-7), Some(7))
        );
        let none: [&[u8]; 8] = [b"", b"+", b"-", b"1x", b"x1", b"++1", b"\xb1", b"1 "];
        for word in none {
            assert_eq!((unsigned(word), signed(word)), (None, None), "{}", word.escape_ascii());
        }
        assert_eq!((unsigned(b"-1"), unsigned(b"18446744073709551616")), (None, None));
        assert_eq!((signed(b"-+1"), signed(b"9223372036854775808")), (None, None));
        assert_eq!(signed(b"-9223372036854775809"), None);
        assert_eq!(
            (unsigned_32(b"4294967295"), unsigned_32(b"4294967296")),
            (Some(u32::MAX), None)
        );
    }
}
