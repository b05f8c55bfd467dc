//! A setting: its name, default, help and type.

use super::setting_type::SettingType;

/// The prefix of environment variables.
pub(crate) const VARIABLE_PREFIX: &str = "NUTHATCH_";

/// The name of a setting in the command `CONFIG` of Redis, and what `CONFIG` may do.
#[derive(Clone, Copy)]
pub(crate) enum ConfigName {
    /// `CONFIG` does not have it.
    None,
    /// `CONFIG GET` shows it under this name.
    ReadOnly(&'static str),
    /// `CONFIG SET` also changes it.
    Changeable(&'static str),
}

/// A setting.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// The name in the settings file and, with `--`, of the flag.
    pub(crate) name: &'static str,
    /// The placeholder for the value on the help page.
    pub(crate) value_name: &'static str,
    /// The default value; empty for none.
    pub(crate) default: &'static str,
    /// The help text, one line.
    pub(crate) help: &'static str,
    /// The rest of the help text; can be empty.
    pub(crate) more: &'static str,
    pub(crate) value_type: SettingType,
    pub(crate) config_name: ConfigName,
}

impl Setting {
    /// Returns the environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// Returns whether it has a flag. All users of the machine can read command lines, so secrets
    /// have none.
    pub(crate) fn is_flag(&self) -> bool {
        !matches!(self.value_type, SettingType::Secret(_))
    }
}
