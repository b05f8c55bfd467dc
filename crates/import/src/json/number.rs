//! JSON numbers, and names for the floats that JSON cannot represent.

use super::scanner::Scanner;
use crate::fault::{Fault, Scan};

/// A number: an integer, or a float if its text has a point or an exponent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

/// The text of a number, whose syntax is checked and whose value is not parsed yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberText<'t> {
    text: &'t [u8],
    start: usize,
    is_float: bool,
}

impl<'t> Scanner<'t> {
    /// Parses a number.
    #[inline]
    pub(crate) fn number(&mut self, expected: &'static str) -> Scan<Number> {
        self.number_text(expected)?.value()
    }

    /// Scans a number as JSON defines it: `-12`, `0.5`, `1e-9`.
    #[inline]
    pub(crate) fn number_text(&mut self, expected: &'static str) -> Scan<NumberText<'t>> {
        let start = self.at;
        self.consume(b'-');
        if self.consume(b'0') {
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(self.fault_at(start, "a number without leading zeros"));
            }
        } else if self.skip_digits() == 0 {
            return Err(self.fault_at(start, expected));
        }
        let mut is_float = false;
        if self.consume(b'.') {
            is_float = true;
            self.expect_digits(start)?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_float = true;
            self.at += 1;
            let _has_sign = self.consume(b'-') || self.consume(b'+');
            self.expect_digits(start)?;
        }
        Ok(NumberText { text: &self.bytes[start..self.at], start, is_float })
    }

    /// Skips digits and returns their number.
    #[inline]
    fn skip_digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    /// Skips digits, of which there must be at least one. `start` is the offset of the number.
    #[inline]
    fn expect_digits(&mut self, start: usize) -> Scan<()> {
        if self.skip_digits() > 0 {
            return Ok(());
        }
        Err(self.fault_at(start, "a number with digits after the point and after the e"))
    }
}

impl NumberText<'_> {
    pub(crate) fn is_float(self) -> bool {
        self.is_float
    }

    #[inline]
    pub(crate) fn value(self) -> Scan<Number> {
        if self.is_float {
            self.to_f64().map(Number::Float)
        } else {
            self.to_i64().map(Number::Int)
        }
    }

    #[inline]
    fn to_i64(self) -> Scan<i64> {
        let (is_negative, digits) = match self.text {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        // 18 digits fit into 64 bits.
        if digits.len() > 18 {
            return self.long_to_i64();
        }
        let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        Ok(if is_negative { -value } else { value })
    }

    fn long_to_i64(self) -> Scan<i64> {
        let value = std::str::from_utf8(self.text).ok().and_then(|text| text.parse().ok());
        value.ok_or_else(|| self.fault("an integer of at most 64 bits"))
    }

    #[inline]
    fn to_f64(self) -> Scan<f64> {
        let value = fast_float2::parse(self.text).ok().filter(|value: &f64| value.is_finite());
        value.ok_or_else(|| self.fault("a number in the range of a 64-bit float"))
    }

    /// Returns the nearest 32-bit float. An integer must fit into 64 bits, as in other lists.
    #[inline]
    pub(crate) fn to_f32(self) -> Scan<f32> {
        if !self.is_float {
            self.to_i64()?;
        }
        let value = fast_float2::parse(self.text).ok().filter(|value: &f32| value.is_finite());
        value.ok_or_else(|| self.fault("a number in the range of a 32-bit float"))
    }

    #[cold]
    fn fault(self, expected: &'static str) -> Fault {
        Fault::new(self.start, expected, String::from_utf8_lossy(self.text))
    }
}

/// Converts an integer to a float if the result is exact.
#[inline]
pub(crate) fn exact_f64(int: i64) -> Option<f64> {
    let magnitude = int.unsigned_abs();
    let significant = magnitude.checked_shr(magnitude.trailing_zeros()).unwrap_or(0);
    (significant < 1 << f64::MANTISSA_DIGITS).then_some(int as f64)
}

pub(crate) const F64_OR_NAME: &str =
    "a number, \"NaN\", \"Infinity\", \"-Infinity\" or the bits as \"0x\" and 16 digits";
pub(crate) const F32_OR_NAME: &str =
    "a number, \"NaN\", \"Infinity\", \"-Infinity\" or the bits as \"0x\" and 8 digits";

/// Parses the name or the bits of a float that JSON cannot represent.
pub(crate) fn f64_by_name(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        _ => bits(text, 16).map(f64::from_bits),
    }
}

/// Returns the 32-bit float with this name, like [`f64_by_name`].
pub(crate) fn f32_by_name(text: &[u8]) -> Option<f32> {
    match text {
        b"NaN" => Some(f32::NAN),
        b"Infinity" => Some(f32::INFINITY),
        b"-Infinity" => Some(f32::NEG_INFINITY),
        _ => bits(text, 8).map(|bits| f32::from_bits(bits as u32)),
    }
}

/// Parses `0x` and this number of hexadecimal digits.
fn bits(text: &[u8], digits: usize) -> Option<u64> {
    let hex = text.strip_prefix(b"0x").filter(|hex| hex.len() == digits)?;
    hex.iter()
        .try_fold(0, |bits, digit| Some(bits << 4 | u64::from(char::from(*digit).to_digit(16)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_become_floats_only_if_that_is_exact() {
        let two_53 = 1_i64 << 53;
        for int in [0, 1, -1, two_53, -two_53, two_53 + 2, 1 << 62, i64::MIN, 3 << 61] {
            assert_eq!(exact_f64(int), Some(int as f64), "{int}");
        }
        for int in [two_53 + 1, -two_53 - 1, i64::MAX, i64::MIN + 1, i64::MAX - 1] {
            assert_eq!(exact_f64(int), None, "{int}");
        }
    }

    #[test]
    fn bits_need_all_their_digits() {
        assert_eq!(
            f64_by_name(b"0x7ff8000000000001").map(f64::to_bits),
            Some(0x7ff8_0000_0000_0001)
        );
        assert_eq!(f32_by_name(b"0xffc00000").map(f32::to_bits), Some(0xffc0_0000));
        for text in [&b"nan"[..], b"0x7ff8", b"7ff8000000000001", b"0x7ff800000000000g", b""] {
            assert_eq!(f64_by_name(text), None);
        }
    }
}
