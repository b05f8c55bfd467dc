//! The source of the value of a setting.

use super::table::Setting;
use std::fmt;

/// The source of a value. Later variants override earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    /// The file, and the line.
    File(String, usize),
    Environment,
    Flag,
}

/// A setting with the source of its value, for messages.
pub(crate) struct SettingSource<'a>(pub(crate) &'a Setting, pub(crate) &'a Source);

impl fmt::Display for SettingSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(setting, source) = self;
        match source {
            Source::Default => f.write_str("default"),
            Source::File(file, line) => write!(f, "{file}:{line}"),
            Source::Environment => f.write_str(&setting.variable()),
            Source::Flag => write!(f, "--{}", setting.name),
        }
    }
}

impl SettingSource<'_> {
    /// Returns the source together with the name of the setting.
    pub(crate) fn named(&self) -> String {
        match self.1 {
            Source::Default | Source::File(..) => format!("{self}: {}", self.0.name),
            Source::Environment | Source::Flag => self.to_string(),
        }
    }
}
