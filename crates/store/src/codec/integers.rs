//! Integers as big-endian keys, so that byte order is numeric order. Negative numbers come first:
//! their sign bit is flipped.

#![expect(clippy::big_endian_bytes, reason = "keys are compared byte by byte, the first one first")]

use super::{Key, Value, wrong_len};
use crate::error::Result;
use std::borrow::Cow;

/// Encodes a number as a key of a system table.
pub(crate) fn key_of(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Decodes a number from such a key; `None` if it does not have 8 bytes.
pub(crate) fn number_of(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

macro_rules! integer {
    ($($integer:ident, $name:ident, $flip:expr, $text:literal;)*) => {$(
        #[doc = concat!("Keys or values that are ", $text, ", in the order of the numbers.")]
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Key for $name {
            type Item<'t> = $integer;

            fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>> {
                Ok(Cow::Owned((*item ^ $flip).to_be_bytes().to_vec()))
            }

            fn decode(bytes: &[u8]) -> Result<Self::Item<'_>> {
                let bytes = bytes.try_into().map_err(|_| wrong_len($text, bytes))?;
                Ok($integer::from_be_bytes(bytes) ^ $flip)
            }
        }

        impl Value for $name {
            type Item<'t> = $integer;

            fn encode<'t>(item: &'t Self::Item<'_>) -> Result<Cow<'t, [u8]>> {
                <Self as Key>::encode(item)
            }

            fn decode(bytes: &[u8]) -> Result<Self::Item<'_>> {
                <Self as Key>::decode(bytes)
            }
        }
    )*};
}

integer! {
    u16, U16, 0, "an integer of 16 bits without a sign";
    u32, U32, 0, "an integer of 32 bits without a sign";
    u64, U64, 0, "an integer of 64 bits without a sign";
    u128, U128, 0, "an integer of 128 bits without a sign";
    i32, I32, i32::MIN, "an integer of 32 bits";
    i64, I64, i64::MIN, "an integer of 64 bits";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_order_of_numbers() {
        let numbers = [i64::MIN, -70_000, -256, -255, -1, 0, 1, 255, 256, i64::MAX];
        let keys: Vec<_> =
            numbers.iter().map(|n| <I64 as Key>::encode(n).expect("a key").into_owned()).collect();
        assert!(keys.is_sorted());
        for (number, key) in numbers.iter().zip(&keys) {
            assert_eq!(<I64 as Key>::decode(key).expect("a number"), *number);
        }
        let error = <U32 as Key>::decode(b"abc").expect_err("three bytes");
        assert_eq!(
            error.to_string(),
            "expected an integer of 32 bits without a sign, found 3 bytes: \"abc\""
        );
    }
}
