//! Formats counts, sizes and durations for people, and parses sizes.

mod quantity;

pub use quantity::{format_duration, format_size, parse_duration, parse_time};

use std::time::Duration;

/// Formats a count with groups of three digits: `1534900` as `1,534,900`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number of bytes in units that are powers of 1024: `47316297` as `45.1 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Formats a duration: as `1.234 s` below 10 seconds, as `12.3 s` below 2 minutes, as `3 min 20 s`
/// below 2 hours, as `5 h 12 min` below 2 days, and as `3 d 4 h` from then on.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 {
        format!("{seconds:.3} s")
    } else if seconds < 120.0 {
        format!("{seconds:.1} s")
    } else if seconds < 7_200.0 {
        format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60)
    } else if seconds < 172_800.0 {
        format!("{} h {} min", time.as_secs() / 3_600, time.as_secs() / 60 % 60)
    } else {
        format!("{} d {} h", time.as_secs() / 86_400, time.as_secs() / 3_600 % 24)
    }
}

/// Parses a number of bytes, such as `4096`, `512M`, `2GiB` or `1.5TB`. The letters K, M, G, T and
/// P, in either case, stand for powers of 1024, alone or followed by `iB`; followed by `B` they
/// stand for powers of 1000. Sizes without a decimal point are exact; of those with one, a fraction
/// of a byte is dropped.
///
/// # Errors
///
/// Returns a message with examples if the text is not a size, or if the size is 2^63 bytes or more.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a size such as 512M, 2GiB or 64MB".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let power = |base: u64, letter: &str| {
        "kmgtp".find(&letter.to_ascii_lowercase()).map(|at| base.pow(at as u32 + 1))
    };
    let unit = match unit.trim() {
        "" | "B" => Some(1),
        unit => match (unit.strip_suffix("iB"), unit.strip_suffix('B')) {
            (Some(letter), _) if letter.len() == 1 => power(1024, letter),
            (None, Some(letter)) if letter.len() == 1 => power(1000, letter),
            (None, None) if unit.len() == 1 => power(1024, unit),
            _ => None,
        },
    };
    let unit = unit.ok_or_else(wrong)?;
    let size = if number.contains('.') {
        #[expect(clippy::cast_sign_loss, reason = "sizes have no sign, and the cast saturates")]
        number.parse::<f64>().ok().map(|number| (number * unit as f64) as u64)
    } else {
        number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit))
    };
    size.filter(|size| i64::try_from(*size).is_ok()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_sizes_and_durations_are_formatted() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_534_900), "1,534,900");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1 << 20), "1.0 MiB");
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(bytes(47_316_297), "45.1 MiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
        assert_eq!(duration(Duration::from_millis(1_234)), "1.234 s");
        assert_eq!(duration(Duration::from_millis(12_345)), "12.3 s");
        assert_eq!(duration(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(duration(Duration::from_secs(86_402)), "24 h 0 min");
        assert_eq!(duration(Duration::from_hours(76)), "3 d 4 h");
    }

    #[test]
    fn sizes_are_read() {
        for (text, size) in [
            ("0", 0),
            ("4096", 4096),
            ("512M", 512 << 20),
            ("2GiB", 2 << 30),
            ("1.5k", 1536),
            ("64MB", 64_000_000),
            ("1 TiB", 1 << 40),
            ("7B", 7),
            ("9007199254740993", (1 << 53) + 1),
            ("9223372036854775807", i64::MAX as u64),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in [
            "",
            "M",
            ".",
            "5X",
            "5MM",
            "5iB",
            "-1",
            "1e3",
            "1.2.3",
            "99999999T",
            "5é",
            "9223372036854775808",
            "8388608.0T",
            "18446744073709551616",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
