//! Errors of values in etcd that cannot be read.

use std::fmt;

/// A value in etcd, a name or an address that is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidText(String);

impl InvalidText {
    /// Creates an error from what was expected and what was found.
    pub(crate) fn new(expected: &str, found: &str) -> Self {
        let found: String = found.chars().take(100).collect();
        Self(format!("expected {expected}, found {found:?}"))
    }

    /// Adds the place of the error before it.
    pub(crate) fn at(self, place: impl fmt::Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for InvalidText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidText {}
