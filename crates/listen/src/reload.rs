//! Protections that a reload may replace, but not switch on or off.

use std::fmt;
use std::io;

/// The error for a reload that would switch a protection on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReloadError(&'static str);

/// Checks that a protection, such as TLS, is on after a reload if and only if it was on before. The
/// check of the addresses at the start ([`exposure_problem`](crate::exposure_problem)) would not
/// hold otherwise. `protection` is its name for the error.
///
/// # Errors
///
/// Fails if the reload would switch it on or off.
pub fn check_switch(
    protection: &'static str,
    was_on: bool,
    is_on: bool,
) -> Result<(), ReloadError> {
    if was_on == is_on { Ok(()) } else { Err(ReloadError(protection)) }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be switched on or off while the server runs: restart it", self.0)
    }
}

impl std::error::Error for ReloadError {}

impl From<ReloadError> for io::Error {
    fn from(error: ReloadError) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}
