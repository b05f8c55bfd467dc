//! Natural numbers of any size, as far as conversion of decimal fractions needs them.

use std::cmp::Ordering;

/// A natural number: digits to the base 2^32, the lowest first, the highest not zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct Big(Vec<u32>);

impl Big {
    pub(crate) fn new(number: u64) -> Self {
        let mut digits = vec![number as u32, (number >> 32) as u32];
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Self(digits)
    }

    /// Returns the number of bits.
    pub(crate) fn bits(&self) -> u32 {
        self.0.last().map_or(0, |last| self.0.len() as u32 * 32 - last.leading_zeros())
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Computes `self * factor + more`.
    pub(crate) fn multiply_add(&mut self, factor: u32, more: u32) {
        let mut carry = u64::from(more);
        for digit in &mut self.0 {
            carry += u64::from(*digit) * u64::from(factor);
            *digit = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Computes `self * 10^exponent`.
    pub(crate) fn scale(&mut self, exponent: u32) {
        for _ in 0..exponent / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10u32.pow(exponent % 9), 0);
    }

    /// Computes `self * 2^count`.
    pub(crate) fn shift_left(&mut self, count: u32) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (count % 32), 0);
        self.0.splice(0..0, std::iter::repeat_n(0, count as usize / 32));
    }

    /// Computes `self / 2`.
    pub(crate) fn halve(&mut self) {
        let mut above = 0;
        for digit in self.0.iter_mut().rev() {
            (*digit, above) = (*digit >> 1 | above << 31, *digit & 1);
        }
        self.trim();
    }

    /// Subtracts a number unless it is greater. Returns whether it did.
    pub(crate) fn subtract(&mut self, other: &Self) -> bool {
        let order = self.0.len().cmp(&other.0.len());
        if order.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())) == Ordering::Less {
            return false;
        }
        let mut borrow = false;
        for (at, digit) in self.0.iter_mut().enumerate() {
            let (less, under) = digit.overflowing_sub(other.0.get(at).copied().unwrap_or(0));
            let (less, once_more) = less.overflowing_sub(u32::from(borrow));
            (*digit, borrow) = (less, under || once_more);
        }
        self.trim();
        true
    }

    /// Divides by a small number, and returns the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut rest = 0;
        for digit in self.0.iter_mut().rev() {
            let number = rest << 32 | u64::from(*digit);
            *digit = (number / u64::from(divisor)) as u32;
            rest = number % u64::from(divisor);
        }
        self.trim();
        rest as u32
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// Returns the decimal digits.
    pub(crate) fn text(mut self) -> String {
        let mut groups = Vec::new();
        while !self.is_zero() {
            groups.push(self.divide(1_000_000_000));
        }
        let first = groups.pop().unwrap_or(0).to_string();
        let rest = groups.iter().rev().map(|group| format!("{group:09}"));
        std::iter::once(first).chain(rest).collect()
    }
}
