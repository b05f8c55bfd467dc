//! Shares, as in `10%`.

use std::fmt;

/// A share of a whole: 0.1 for `10%`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Ratio(pub f64);

impl Ratio {
    /// Parses a percentage, such as `10%` or `0.5%`.
    ///
    /// # Errors
    ///
    /// Returns what was expected and found.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .map(|number| Self(number / 100.0))
            .ok_or_else(|| format!("expected a percentage such as \"10%\", found \"{text}\""))
    }

    /// Returns the change from one number to another, as a share of the first.
    pub(crate) fn of_change(from: u64, to: u64) -> Self {
        match (from, to) {
            (0, 0) => Self(0.0),
            (0, _) => Self(f64::INFINITY),
            (from, to) => Self(from.abs_diff(to) as f64 / from as f64),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let digits = if percent >= 10.0 { 1 } else { 2 };
        write!(f, "{percent:.digits$}%")
    }
}
