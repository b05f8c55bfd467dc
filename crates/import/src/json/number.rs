//! JSON numbers, and the floats that JSON cannot hold.

use super::Scanner;
use crate::error::{Fault, Scan};

/// A number, of the type its text has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

/// A number's text: its digits are looked at, its value is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NumberText<'t> {
    text: &'t [u8],
    start: usize,
    is_float: bool,
}

impl<'t> Scanner<'t> {
    #[inline]
    pub(crate) fn number(&mut self, expected: &'static str) -> Scan<Number> {
        self.number_text(expected)?.value()
    }

    /// Moves past a number as JSON has them: `-12`, `0.5`, `1e-9`.
    #[inline]
    pub(crate) fn number_text(&mut self, expected: &'static str) -> Scan<NumberText<'t>> {
        let start = self.at;
        self.take(b'-');
        if self.take(b'0') {
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(self.fault_at(start, "a number without leading zeros"));
            }
        } else if self.digits() == 0 {
            return Err(self.fault_at(start, expected));
        }
        let mut is_float = false;
        if self.take(b'.') {
            is_float = true;
            self.some_digits(start)?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_float = true;
            self.at += 1;
            let _signed = self.take(b'-') || self.take(b'+');
            self.some_digits(start)?;
        }
        Ok(NumberText { text: &self.bytes[start..self.at], start, is_float })
    }

    /// Moves past digits and answers how many there were.
    #[inline]
    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    #[inline]
    fn some_digits(&mut self, start: usize) -> Scan<()> {
        if self.digits() > 0 {
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
        if self.is_float { self.double().map(Number::Float) } else { self.int().map(Number::Int) }
    }

    #[inline]
    fn int(self) -> Scan<i64> {
        let (negative, digits) = match self.text {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        // 18 digits always fit.
        if digits.len() > 18 {
            return self.long_int();
        }
        let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        Ok(if negative { -value } else { value })
    }

    fn long_int(self) -> Scan<i64> {
        let value = std::str::from_utf8(self.text).ok().and_then(|text| text.parse().ok());
        value.ok_or_else(|| self.fault("an integer of at most 64 bits"))
    }

    #[inline]
    fn double(self) -> Scan<f64> {
        let value = fast_float2::parse(self.text).ok().filter(|value: &f64| value.is_finite());
        value.ok_or_else(|| self.fault("a number in the range of a 64-bit float"))
    }

    /// The nearest 32-bit float. An integer must be one of 64 bits, as everywhere.
    #[inline]
    pub(crate) fn single(self) -> Scan<f32> {
        if !self.is_float {
            self.int()?;
        }
        let value = fast_float2::parse(self.text).ok().filter(|value: &f32| value.is_finite());
        value.ok_or_else(|| self.fault("a number in the range of a 32-bit float"))
    }

    #[cold]
    fn fault(self, expected: &'static str) -> Fault {
        Fault::new(self.start, expected, String::from_utf8_lossy(self.text))
    }
}

/// An integer as a float, if that is exact.
#[inline]
pub(crate) fn exact(int: i64) -> Option<f64> {
    let magnitude = int.unsigned_abs();
    let significant = magnitude.checked_shr(magnitude.trailing_zeros()).unwrap_or(0);
    (significant < 1 << f64::MANTISSA_DIGITS).then_some(int as f64)
}

pub(crate) const SPECIAL_DOUBLE: &str =
    "a number, \"NaN\", \"Infinity\", \"-Infinity\" or the bits as \"0x\" and 16 digits";
pub(crate) const SPECIAL_SINGLE: &str =
    "a number, \"NaN\", \"Infinity\", \"-Infinity\" or the bits as \"0x\" and 8 digits";

/// A float that JSON cannot hold, by its name or its bits.
pub(crate) fn double(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        _ => bits(text, 16).map(f64::from_bits),
    }
}

/// As [`double`], for 32 bits.
pub(crate) fn single(text: &[u8]) -> Option<f32> {
    match text {
        b"NaN" => Some(f32::NAN),
        b"Infinity" => Some(f32::INFINITY),
        b"-Infinity" => Some(f32::NEG_INFINITY),
        _ => bits(text, 8).map(|bits| f32::from_bits(bits as u32)),
    }
}

/// `0x` and so many hexadecimal digits.
fn bits(text: &[u8], digits: usize) -> Option<u64> {
    let hex = text.strip_prefix(b"0x").filter(|hex| hex.len() == digits)?;
    hex.iter()
        .try_fold(0, |bits, digit| Some(bits << 4 | u64::from(char::from(*digit).to_digit(16)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_become_floats_only_where_exact() {
        let two_53 = 1_i64 << 53;
        for int in [0, 1, -1, two_53, -two_53, two_53 + 2, 1 << 62, i64::MIN, 3 << 61] {
            assert_eq!(exact(int), Some(int as f64), "{int}");
        }
        for int in [two_53 + 1, -two_53 - 1, i64::MAX, i64::MIN + 1, i64::MAX - 1] {
            assert_eq!(exact(int), None, "{int}");
        }
    }

    #[test]
    fn bits_need_all_their_digits() {
        assert_eq!(double(b"0x7ff8000000000001").map(f64::to_bits), Some(0x7ff8_0000_0000_0001));
        assert_eq!(single(b"0xffc00000").map(f32::to_bits), Some(0xffc0_0000));
        for text in [&b"nan"[..], b"0x7ff8", b"7ff8000000000001", b"0x7ff800000000000g", b""] {
            assert_eq!(double(text), None);
        }
    }
}
