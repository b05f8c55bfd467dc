//! How the options of several programs are read.

use crate::error::Error;
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// The options, or else the status to exit with once help or a message is printed.
pub fn parsed<T: Parser>(arguments: impl Iterator<Item = OsString>) -> Result<T, ExitCode> {
    T::try_parse_from(arguments).map_err(|error| {
        // Help goes to stdout and is no failure; where nobody reads it, nothing is lost.
        let _ = error.print();
        if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
    })
}

/// Prints why a program failed; returns the status to exit with.
pub fn failed(program: &str, error: &Error) -> ExitCode {
    eprintln!("{program}: {error}");
    ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 3 })
}

/// A time: a number of seconds, or one with `s` or `ms` after it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (digits, unit_seconds) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => (digits, 1e-3),
        (None, Some(digits)) => (digits, 1.0),
        (None, None) => (text, 1.0),
    };
    let number: Result<f64, _> = digits.parse();
    number
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * unit_seconds).ok())
        .filter(|time| *time <= MOST)
        .ok_or_else(|| "expected a time such as 3, 1.5s or 500ms".into())
}

/// A day. Who measures for longer means something else.
const MOST: Duration = Duration::from_hours(24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        for text in ["", "s", "-1", "1m", "nan", "inf", "1e9"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
