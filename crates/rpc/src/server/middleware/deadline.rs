//! The deadline that a client sets for a call.

use http::HeaderMap;
use std::time::Duration;

/// Returns the value of the header `grpc-timeout`, or `None` if it is missing or not valid.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_hours(number)),
        "M" => Some(Duration::from_mins(number)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_up_to_eight_digits_and_a_unit() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().expect("a header"));
            super::of(&headers)
        };
        assert_eq!(of("99999999H"), Some(Duration::from_hours(99_999_999)));
        assert_eq!(of("2M"), Some(Duration::from_mins(2)));
        assert_eq!(of("0S"), Some(Duration::ZERO));
        assert_eq!(of("250m"), Some(Duration::from_millis(250)));
        assert_eq!(of("7u"), Some(Duration::from_micros(7)));
        assert_eq!(of("7n"), Some(Duration::from_nanos(7)));
        for wrong in ["", "5", "S", "123456789S", "-1S", "1s", "1 S"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(super::of(&HeaderMap::new()), None);
    }
}
