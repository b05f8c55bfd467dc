//! Conversion between stored bytes and slices of numbers or text, without copying.
//!
//! The format is little-endian and aligns every list to its elements, so a little-endian machine
//! reads a list in place. A slice that is misaligned or does not hold a whole number of elements
//! comes from a damaged file; its conversion returns `None`.

#[cfg(target_endian = "big")]
compile_error!("snapshots are read in place and need a little-endian machine");

mod sealed {
    pub(crate) trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for f64 {}
    impl Sealed for f32 {}
}

/// A plain-old-data number: every bit pattern is a valid value.
pub(crate) trait Pod: sealed::Sealed + Copy + 'static {}
impl Pod for i64 {}
impl Pod for f64 {}
impl Pod for f32 {}

/// Returns the bytes as numbers, or `None` if they are misaligned or not a whole number of
/// elements.
#[inline]
pub(crate) fn to_numbers<T: Pod>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: `Pod` is sealed and implemented for numbers only, whose bit patterns are all valid.
    let (before, numbers, after) = unsafe { bytes.align_to::<T>() };
    (before.is_empty() && after.is_empty()).then_some(numbers)
}

/// Returns the stored bytes of the numbers.
#[inline]
pub(crate) fn to_bytes<T: Pod>(numbers: &[T]) -> &[u8] {
    let len = size_of_val(numbers);
    // SAFETY: numbers have no padding, `u8` has alignment 1, and `len` is the size of the slice.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast::<u8>(), len) }
}

/// Returns the stored bytes of the numbers, to be overwritten.
#[cfg(feature = "zstd")]
pub(crate) fn to_bytes_mut<T: Pod>(numbers: &mut [T]) -> &mut [u8] {
    let len = size_of_val(numbers);
    // SAFETY: as in `to_bytes`; any bytes written are valid numbers, because `Pod` is sealed.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast::<u8>(), len) }
}

/// Returns the bytes as text, or `None` if they are not UTF-8.
///
/// The standard library checks single bytes up to an aligned address. That loop ends in a branch
/// that processors mispredict, which stalls the next lookup. Short ASCII is checked with a few
/// loads instead.
#[inline(always)]
pub(crate) fn to_text(bytes: &[u8]) -> Option<&str> {
    to_short_ascii(bytes).or_else(|| std::str::from_utf8(bytes).ok())
}

/// Returns the bytes as text if they are ASCII and few, otherwise `None`.
#[inline(always)]
pub(crate) fn to_short_ascii(bytes: &[u8]) -> Option<&str> {
    // SAFETY: ASCII is UTF-8.
    is_short_ascii(bytes).then(|| unsafe { std::str::from_utf8_unchecked(bytes) })
}

/// Returns whether there are at most 32 bytes, all of them ASCII.
#[inline(always)]
fn is_short_ascii(bytes: &[u8]) -> bool {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let ends = |bytes: &[u8]| match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) | u64::from_le_bytes(*last),
        _ => HIGH_BITS,
    };
    let all = match bytes.len() {
        8..=16 => ends(bytes),
        17..=32 => ends(&bytes[..16]) | ends(&bytes[bytes.len() - 16..]),
        0..=7 => u64::from(bytes.iter().fold(0, |all, byte| all | byte)),
        _ => return false,
    };
    all & HIGH_BITS == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_misaligned_bytes_are_rejected() {
        let numbers = [1_i64, -2, i64::MAX];
        let bytes = to_bytes(&numbers);
        assert_eq!(to_numbers::<i64>(bytes), Some(&numbers[..]));
        assert_eq!(to_numbers::<i64>(&bytes[8..23]), None, "not whole elements");
        assert_eq!(to_numbers::<i64>(&bytes[1..9]), None, "misaligned");
        assert_eq!(to_numbers::<f32>(&[]), Some(&[][..]));
    }

    #[test]
    fn text_is_checked_at_every_length_and_offset() {
        for len in 0..40 {
            let ascii = vec![b'n'; len];
            assert_eq!(to_text(&ascii), std::str::from_utf8(&ascii).ok(), "length {len}");
            for at in 0..len {
                let mut broken = ascii.clone();
                broken[at] = 0xff;
                assert_eq!(to_text(&broken), None, "length {len}, byte {at}");
            }
        }
        assert_eq!(to_text("größer".as_bytes()), Some("größer"));
    }
}
