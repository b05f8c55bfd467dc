//! Command-line parsing that several programs share.

use crate::error::Error;
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Parses the options. If there are none to return, prints help or an error and returns the exit
/// status.
pub fn parsed<T: Parser>(arguments: impl Iterator<Item = OsString>) -> Result<T, ExitCode> {
    T::try_parse_from(arguments).map_err(|error| {
        // Help goes to standard output and is not a failure. An error while printing it is ignored.
        let _ = error.print();
        if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
    })
}

/// Prints the reason why a program failed, and returns its exit status.
pub fn failed(program: &str, error: &Error) -> ExitCode {
    eprintln!("{program}: {error}");
    ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 3 })
}

/// Parses a duration: a number of seconds, or a number with the unit `s` or `ms`.
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
        .filter(|time| *time <= MAX_DURATION)
        .ok_or_else(|| "expected a time such as 3, 1.5s or 500ms".into())
}

/// Maximum duration: a longer measurement is probably a mistake.
const MAX_DURATION: Duration = Duration::from_hours(24);

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
