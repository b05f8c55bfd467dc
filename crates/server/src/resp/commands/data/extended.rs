//! Floating-point numbers of 80 bits, for `INCRBYFLOAT`. Redis adds with them on most machines: its
//! `0.1 + 0.2` is `0.3`, while 64 bits give `0.30000000000000004`. Sums here have exactly the
//! digits of Redis.

use super::big_integer::Big;

/// A number, infinity, or not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    Finite(Finite),
    Infinite { negative: bool },
    NotANumber,
}

/// `mantissa * 2^exponent`. The highest bit of the mantissa is set, except for zero, whose exponent
/// is below all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finite {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

/// Greater exponents are infinity.
const MAX_EXPONENT: i32 = 16_384 - 64;
/// Numbers below this power of two are zero.
const MIN_POWER: i32 = -16_446;
/// Maximum bytes of a number in Redis.
const MAX_TEXT_LEN: usize = 5 * 1024 - 1;
/// Powers of ten outside of this range give infinity or zero.
const POWERS_OF_TEN: std::ops::Range<i64> = -4960..4940;
/// Decimal places of output.
const PLACES: u32 = 17;

impl Extended {
    const ZERO: Self = Self::Finite(Finite { negative: false, mantissa: 0, exponent: -100_000 });

    /// Parses what `strtold` of C accepts, except hexadecimal digits. Numbers that round to
    /// infinity, and nonzero ones that round to zero, are refused.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (negative, rest) = match text {
            _ if text.len() > MAX_TEXT_LEN => return None,
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] | rest => (false, rest),
        };
        if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::Infinite { negative });
        }
        let (digits, power) = decimal(rest)?;
        if digits.is_zero() {
            return Some(Self::ZERO);
        }
        let number = Self::ratio(negative, digits, power);
        match number {
            Self::Finite(finite) if finite.exponent + 63 >= MIN_POWER => Some(number),
            _ => None,
        }
    }

    /// Returns the number nearest to `digits * 10^power`.
    fn ratio(negative: bool, mut digits: Big, power: i32) -> Self {
        let mut divisor = Big::new(1);
        let scaled = if power < 0 { &mut divisor } else { &mut digits };
        scaled.scale(power.unsigned_abs());
        // The quotient gets 65 or 66 bits, at least one more than the mantissa.
        let shift = 65 + divisor.bits().cast_signed() - digits.bits().cast_signed();
        let shifted = if shift < 0 { &mut divisor } else { &mut digits };
        shifted.shift_left(shift.unsigned_abs());
        divisor.shift_left(66);
        let mut quotient = 0u128;
        for _ in 0..=66 {
            quotient = quotient << 1 | u128::from(digits.subtract(&divisor));
            divisor.halve();
        }
        Self::round(negative, quotient, -shift, !digits.is_zero())
    }

    /// Returns the number nearest to `wide * 2^exponent`, rounding half to even. `more` means that
    /// the exact number is slightly greater; `wide` then has more than 64 bits.
    fn round(negative: bool, wide: u128, exponent: i32, more: bool) -> Self {
        if wide == 0 {
            return Self::ZERO;
        }
        let zeros = wide.leading_zeros();
        // The upper half is the mantissa.
        let top = wide << zeros;
        let (mantissa, rest) = ((top >> 64) as u64, top as u64);
        let half = 1 << 63;
        let up = rest > half || rest == half && (more || mantissa & 1 == 1);
        let (mantissa, over) = mantissa.overflowing_add(u64::from(up));
        let mantissa = if over { half } else { mantissa };
        let exponent = exponent + 64 - zeros.cast_signed() + i32::from(over);
        if exponent > MAX_EXPONENT {
            return Self::Infinite { negative };
        }
        Self::Finite(Finite { negative, mantissa, exponent })
    }

    /// Returns the sum.
    pub(crate) fn add(self, other: Self) -> Self {
        match (self, other) {
            (Self::Finite(one), Self::Finite(two)) => one.add(two),
            (Self::Infinite { negative: one }, Self::Infinite { negative: two }) if one != two => {
                Self::NotANumber
            }
            (Self::Finite(_), other) => other,
            (infinite, _) => infinite,
        }
    }

    /// Returns decimal digits without an exponent and with at most 17 places; `None` for infinity.
    pub(crate) fn text(self) -> Option<String> {
        let Self::Finite(Finite { negative, mantissa, exponent }) = self else { return None };
        let mut text = match u32::try_from(exponent) {
            Ok(exponent) => {
                let mut whole = Big::new(mantissa);
                whole.shift_left(exponent);
                whole.text()
            }
            Err(_) => fraction(mantissa, exponent.unsigned_abs()),
        };
        if negative && text != "0" {
            text.insert(0, '-');
        }
        Some(text)
    }
}

impl Finite {
    fn add(self, other: Self) -> Extended {
        let size = |number: Self| (number.exponent, number.mantissa);
        let (great, small) = if size(self) < size(other) { (other, self) } else { (self, other) };
        // Two bits more than both need, so that sum and rounding fit.
        let (greater, lesser) =
            (u128::from(great.mantissa) << 62, u128::from(small.mantissa) << 62);
        let apart = great.exponent.abs_diff(small.exponent).min(127);
        let (shifted, lost) = (lesser >> apart, lesser & ((1 << apart) - 1) != 0);
        let sum = if great.negative == small.negative {
            greater + shifted
        } else {
            // The lost bits make the difference slightly smaller.
            greater - shifted - u128::from(lost)
        };
        Extended::round(great.negative, sum, great.exponent - 62, lost)
    }
}

/// Returns the digits of `mantissa / 2^halvings`.
fn fraction(mantissa: u64, halvings: u32) -> String {
    let scaled = u128::from(mantissa) * 10u128.pow(PLACES);
    let down = scaled.checked_shr(halvings).unwrap_or(0);
    // Rounds half to even. From 128 halvings on, everything is below one half.
    let rest = if halvings < 128 { scaled & ((1 << halvings) - 1) } else { 0 };
    let half = 1u128.checked_shl(halvings - 1).unwrap_or(u128::MAX);
    let up = rest > half || rest == half && down & 1 == 1;
    let places = down + u128::from(up);
    let (whole, behind) = (places / 10u128.pow(PLACES), places % 10u128.pow(PLACES));
    let text = format!("{whole}.{behind:017}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parses `digits[.digits][e[sign]digits]` with at least one digit before the exponent. Returns all
/// digits as one number, and the power of ten to multiply it with.
fn decimal(text: &[u8]) -> Option<(Big, i32)> {
    let (mut number, mut digits, mut power) = (Big::default(), 0i64, 0i64);
    let (mut any, mut point) = (false, false);
    let mut rest = text;
    while let [byte, next @ ..] = rest {
        match byte {
            b'.' if !point => point = true,
            b'0'..=b'9' => {
                number.multiply_add(10, u32::from(byte - b'0'));
                digits += i64::from(!number.is_zero());
                power -= i64::from(point);
                any = true;
            }
            b'e' | b'E' if any => {
                power += exponent(next)?;
                rest = &[];
                break;
            }
            _ => return None,
        }
        rest = next;
    }
    if !any || !rest.is_empty() {
        return None;
    }
    if number.is_zero() {
        return Some((number, 0));
    }
    // Checked before the number is expanded, since its memory depends on it.
    POWERS_OF_TEN.contains(&(digits + power)).then_some((number, power as i32))
}

/// Parses an exponent, limited to a range beyond all valid ones.
fn exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] | digits => (1, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0i64, |number, byte| match byte {
        b'0'..=b'9' => Some((number * 10 + i64::from(byte - b'0')).min(1 << 40)),
        _ => None,
    })?;
    Some(sign * number)
}
