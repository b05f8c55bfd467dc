//! Where a setting's value is from.

use super::setting::Setting;
use std::fmt;

/// Where a value is from; what comes later here wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    /// The file, and the line.
    File(String, usize),
    Environment,
    Flag,
}

/// A setting with the origin of its value, for people.
pub(crate) struct Source<'a>(pub(crate) &'a Setting, pub(crate) &'a Origin);

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(setting, origin) = self;
        match origin {
            Origin::Default => f.write_str("default"),
            Origin::File(file, line) => write!(f, "{file}:{line}"),
            Origin::Environment => f.write_str(&setting.variable()),
            Origin::Flag => write!(f, "--{}", setting.name),
        }
    }
}

impl Source<'_> {
    /// The same, so that it also names the setting.
    pub(crate) fn named(&self) -> String {
        match self.1 {
            Origin::Default | Origin::File(..) => format!("{self}: {}", self.0.name),
            Origin::Environment | Origin::Flag => self.to_string(),
        }
    }
}
