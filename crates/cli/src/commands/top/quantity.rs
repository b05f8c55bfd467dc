//! Formats of quantities for `nuthatch top`.

/// Formats a number: `1234.4` as `1,234`; below ten with a decimal place, unless it is zero.
pub(super) fn number(value: f64) -> String {
    match value {
        value if !value.is_finite() || value <= 0.0 => "0".to_owned(),
        value if value < 9.95 => format!("{value:.1}"),
        value => nuthatch_units::grouped(whole(value)),
    }
}

/// Formats a count: `1234.0` as `1,234`.
pub(super) fn count(value: f64) -> String {
    nuthatch_units::grouped(whole(value))
}

/// Formats a rate per second.
pub(super) fn rate(value: f64) -> String {
    number(value) + "/s"
}

/// Formats a size: `47316297.0` as `45.1 MiB`.
pub(super) fn bytes(value: f64) -> String {
    nuthatch_units::bytes(whole(value))
}

/// Formats a percentage: `0.5` as `50.0 %`.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Formats a duration: `0.0000123` as `12.3 µs`; `None` as a dash.
pub(super) fn time(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return "-".to_owned() };
    let (value, unit) = match seconds {
        seconds if seconds < 0.999_5e-6 => (seconds * 1e9, "ns"),
        seconds if seconds < 0.999_5e-3 => (seconds * 1e6, "µs"),
        seconds if seconds < 0.999_5 => (seconds * 1e3, "ms"),
        seconds => (seconds, "s"),
    };
    let places = usize::from(value < 9.95 && unit != "ns");
    format!("{value:.places$} {unit}")
}

/// Formats a long time: `200061.0` as `2 d 7 h`.
pub(super) fn span(seconds: f64) -> String {
    let seconds = whole(seconds);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[expect(clippy::cast_sign_loss, reason = "what is below zero becomes zero")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_formatted() {
        let numbers = [0.0, 0.25, 9.94, 9.96, 1234.4, -1.0, f64::NAN].map(number);
        assert_eq!(numbers, ["0", "0.2", "9.9", "10", "1,234", "0", "0"]);
        let times = [150e-9, 999.6e-9, 1.26e-6, 12.3e-6, 0.0456, 1.0, 75.0].map(|s| time(Some(s)));
        assert_eq!(times, ["150 ns", "1.0 µs", "1.3 µs", "12 µs", "46 ms", "1.0 s", "75 s"]);
        assert_eq!(time(None), "-");
        let spans = [0.4, 59.0, 61.0, 3700.0, 200_061.0].map(span);
        assert_eq!(spans, ["0 s", "59 s", "1 min 1 s", "1 h 1 min", "2 d 7 h"]);
        assert_eq!(percent(0.98765), "98.8 %");
        assert_eq!((bytes(-3.0), bytes(47_316_297.0)), ("0 B".to_owned(), "45.1 MiB".to_owned()));
        assert_eq!((rate(12.0), count(1234.0)), ("12/s".to_owned(), "1,234".to_owned()));
    }
}
