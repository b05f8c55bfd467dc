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

/// A group of settings on the help page.
pub(crate) struct Group<S: 'static> {
    pub(crate) heading: &'static str,
    pub(crate) settings: &'static [Setting<S>],
}

/// A setting, whose value is a field of `S`.
pub(crate) struct Setting<S> {
    /// The name in the settings file and, with `--`, of the flag.
    pub(crate) name: &'static str,
    pub(crate) value_type: SettingType<S>,
    /// Copies the value of the setting from one `S` to another one.
    pub(crate) copy: fn(&S, &mut S),
    /// The placeholder for the value on the help page.
    pub(crate) value_name: &'static str,
    /// The default value; empty for none.
    pub(crate) default: &'static str,
    /// The help text, one line.
    pub(crate) help: &'static str,
    /// The rest of the help text; can be empty.
    pub(crate) more: &'static str,
    pub(crate) config_name: ConfigName,
    /// Whether a reload applies it although `CONFIG SET` does not change it.
    pub(crate) reloads: bool,
}

impl<S> Setting<S> {
    /// Returns a setting without a default, texts and a name in `CONFIG`.
    pub(crate) const fn new(
        name: &'static str,
        value_type: SettingType<S>,
        copy: fn(&S, &mut S),
    ) -> Self {
        Self {
            name,
            value_type,
            copy,
            value_name: "",
            default: "",
            help: "",
            more: "",
            config_name: ConfigName::None,
            reloads: false,
        }
    }

    /// Returns the environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// Returns whether it is never shown.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.value_type, SettingType::Secret(_))
    }

    /// Returns whether it has a flag. All users of the machine can read command lines, so secrets
    /// have none.
    pub(crate) fn is_flag(&self) -> bool {
        !self.is_secret()
    }

    /// Returns whether a reload applies it; if not, a change needs a restart.
    pub(crate) fn is_reloaded(&self) -> bool {
        self.reloads || matches!(self.config_name, ConfigName::Changeable(_))
    }
}

/// Returns the name of a field with `-` for `_`, as bytes.
pub(crate) const fn hyphenated<const LEN: usize>(field: &str) -> [u8; LEN] {
    let mut name = [0; LEN];
    let mut at = 0;
    while at < LEN {
        let byte = field.as_bytes()[at];
        name[at] = if byte == b'_' { b'-' } else { byte };
        at += 1;
    }
    name
}
