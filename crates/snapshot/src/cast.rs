//! Views of stored bytes as slices of numbers, without a copy.
//!
//! The format is little-endian and stores every list aligned to its element, so on a little-endian
//! machine a list is read where it lies. A misaligned or ragged slice, from a damaged file, gives
//! `None`.

#[cfg(target_endian = "big")]
compile_error!("snapshots are read in place and need a little-endian machine");

mod sealed {
    pub(crate) trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for f64 {}
    impl Sealed for f32 {}
}

/// A number that any bytes are a valid value of.
pub(crate) trait Plain: sealed::Sealed + Copy + 'static {}
impl Plain for i64 {}
impl Plain for f64 {}
impl Plain for f32 {}

/// The bytes as numbers; `None` unless they are aligned and a whole number of elements.
#[inline]
pub(crate) fn to_numbers<T: Plain>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: `Plain` is sealed and implemented for numbers alone, of which all bits are valid.
    let (before, numbers, after) = unsafe { bytes.align_to::<T>() };
    (before.is_empty() && after.is_empty()).then_some(numbers)
}

/// The numbers as the bytes a file holds.
#[inline]
pub(crate) fn to_bytes<T: Plain>(numbers: &[T]) -> &[u8] {
    let len = size_of_val(numbers);
    // SAFETY: numbers have no padding, `u8` needs no alignment, the length is that of the slice.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast::<u8>(), len) }
}

/// Numbers to be overwritten with the bytes a file holds.
#[cfg(feature = "zstd")]
pub(crate) fn to_bytes_mut<T: Plain>(numbers: &mut [T]) -> &mut [u8] {
    let len = size_of_val(numbers);
    // SAFETY: as above, and any bytes written are valid numbers since `Plain` is sealed.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast::<u8>(), len) }
}

/// The bytes as text; `None` unless they are UTF-8.
///
/// Checking byte by byte up to an alignment, as the library does, takes a branch that no processor
/// predicts, and the next lookup waits for it. Short ASCII is checked with few loads instead.
#[inline(always)]
pub(crate) fn to_text(bytes: &[u8]) -> Option<&str> {
    if is_short_ascii(bytes) {
        // SAFETY: ASCII is UTF-8.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).ok()
}

/// Whether these are at most 32 bytes, all of them ASCII.
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
    fn numbers_round_trip_and_misaligned_bytes_are_refused() {
        let numbers = [1_i64, -2, i64::MAX];
        let bytes = to_bytes(&numbers);
        assert_eq!(to_numbers::<i64>(bytes), Some(&numbers[..]));
        assert_eq!(to_numbers::<i64>(&bytes[8..23]), None, "ragged");
        assert_eq!(to_numbers::<i64>(&bytes[1..9]), None, "misaligned");
        assert_eq!(to_numbers::<f32>(&[]), Some(&[][..]));
    }

    #[test]
    fn text_is_checked_at_every_length_and_place() {
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
