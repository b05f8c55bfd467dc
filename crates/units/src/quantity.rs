//! Sizes and durations as text, without loss: parsing the text returns the same number.

use std::time::Duration;

/// The units of durations in nanoseconds, longest first.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Formats a size: `1073741824` as `1GiB`, `1000` as `1000`.
pub fn format_size(bytes: u64) -> String {
    let units = ["TiB", "GiB", "MiB", "KiB"];
    let unit = units
        .iter()
        .zip([40, 30, 20, 10])
        .find(|(_, bits)| bytes > 0 && bytes.is_multiple_of(1 << bits));
    unit.map_or_else(|| bytes.to_string(), |(unit, bits)| format!("{}{unit}", bytes >> bits))
}

/// Formats a duration: 90 seconds as `90s`, 120 as `2min`.
pub fn format_duration(duration: Duration) -> String {
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let unit = UNITS.iter().find(|(_, unit)| ns > 0 && ns.is_multiple_of(*unit));
    unit.map_or_else(|| "0s".to_owned(), |(name, unit)| format!("{}{name}", ns / unit))
}

/// Parses a whole number with a unit, such as `30s`. Returns `None` for other text.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        // Zero needs no unit.
        "" if number == "0" => 1,
        "m" => 60_000_000_000,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    let ns = number.parse::<u64>().ok()?.checked_mul(unit)?;
    Some(Duration::from_nanos(ns))
}

/// Parses a duration argument, such as `500ms`, `5s` or `1h`.
///
/// # Errors
///
/// Returns a message with examples if the text is not a duration.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a time such as 500ms, 5s or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_size;

    #[test]
    fn sizes_come_back() {
        for (bytes, text) in [
            (0, "0"),
            (1000, "1000"),
            (1 << 10, "1KiB"),
            (1536 << 20, "1536MiB"),
            (1 << 30, "1GiB"),
            (3 << 40, "3TiB"),
        ] {
            assert_eq!(format_size(bytes), text);
            assert_eq!(parse_size(text), Ok(bytes));
        }
    }

    #[test]
    fn durations_come_back() {
        for (ns, text) in [
            (0, "0s"),
            (1, "1ns"),
            (10_000_000, "10ms"),
            (90_000_000_000, "90s"),
            (120_000_000_000, "2min"),
            (7_200_000_000_000, "2h"),
            (86_400_000_000_000, "1d"),
        ] {
            assert_eq!(format_duration(Duration::from_nanos(ns)), text);
            assert_eq!(parse_duration(text), Some(Duration::from_nanos(ns)));
        }
        for (text, ms) in [("0", 0), ("5m", 300_000), ("30 s", 30_000)] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "s", "-1s", "1.5s", "1 year", "99999999999999d", "1é"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
