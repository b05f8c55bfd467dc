//! Settings from environment variables.

use super::raw_value::RawValue;
use super::setting::VARIABLE_PREFIX;
use super::suggestion::closest_name;
use super::table::{Setting, SettingType, all_settings};
use std::ffi::OsString;

/// The variable with the path of the settings file.
pub(crate) const CONFIG_VARIABLE: &str = "NUTHATCH_CONFIG";

/// The variables of `nuthatch chunks`.
const CHUNK_VARIABLES: [&str; 2] = ["NUTHATCH_CACHE", "NUTHATCH_ORIGIN"];

/// The settings in the environment.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// The settings file.
    pub(crate) file: Option<String>,
    pub(crate) values: Vec<(&'static str, RawValue)>,
    /// Warnings about variables that look like settings.
    pub(crate) warnings: Vec<String>,
}

impl Environment {
    /// Reads the variables whose names begin with `NUTHATCH_`.
    pub(crate) fn read(
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, String> {
        let mut read = Self::default();
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(VARIABLE_PREFIX)) else {
                continue;
            };
            let value = value.into_string();
            let value = value.map_err(|_| format!("{name}: expected UTF-8, found other bytes"));
            if name == CONFIG_VARIABLE {
                read.file = Some(value?);
            } else if let Some(setting) = all_settings().find(|one| one.variable() == name) {
                read.values.push((setting.name, raw_value(setting, value?)));
            } else if !CHUNK_VARIABLES.contains(&name)
                && !is_from_kubernetes(name, value.as_deref().unwrap_or_default())
            {
                read.warnings.push(unknown(name));
            }
        }
        read.values.sort_by_key(|(name, _)| *name);
        read.warnings.sort();
        Ok(read)
    }
}

fn raw_value(setting: &Setting, value: String) -> RawValue {
    match setting.value_type {
        SettingType::Addresses(_) | SettingType::NamedPaths(_) | SettingType::Texts(_) => {
            RawValue::List(value.split(',').map(|one| one.trim().to_owned()).collect())
        }
        _ => RawValue::Untyped(value),
    }
}

fn unknown(name: &str) -> String {
    let variables: Vec<_> = all_settings().map(Setting::variable).collect();
    let names = variables.iter().map(String::as_str).chain([CONFIG_VARIABLE]);
    // With the common prefix, all names would be similar.
    let names = names.filter_map(|name| name.strip_prefix(VARIABLE_PREFIX));
    let wrong = name.strip_prefix(VARIABLE_PREFIX).unwrap_or(name);
    let hint = match closest_name(wrong, names) {
        Some(near) => format!("; did you mean {VARIABLE_PREFIX}{near}?"),
        None => String::new(),
    };
    format!("{name} is not a setting and is ignored{hint}")
}

/// Returns whether Kubernetes set a variable: for a service named `nuthatch`, its variables look
/// like settings.
fn is_from_kubernetes(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix(VARIABLE_PREFIX).unwrap_or(name);
    rest.starts_with("SERVICE_")
        || rest.starts_with("PORT_")
        || (rest == "PORT" && value.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Environment::read(variables).expect("UTF-8")
    }

    #[test]
    fn variables_are_settings_and_lists_have_commas() {
        let environment = read(&[
            ("NUTHATCH_MAX_CLIENTS", "5"),
            ("NUTHATCH_CONFIG", "a.toml"),
            ("HOME", "/"),
            ("NUTHATCH_RESP", "127.0.0.1:1, unix:x"),
        ]);
        assert_eq!(environment.file.as_deref(), Some("a.toml"));
        let list = RawValue::List(vec!["127.0.0.1:1".to_owned(), "unix:x".to_owned()]);
        let number = RawValue::Untyped("5".to_owned());
        assert_eq!(environment.values, [("max-clients", number), ("resp", list)]);
        assert_eq!(environment.warnings, [""; 0]);
    }

    #[test]
    fn unknown_variables_are_warnings() {
        let environment = read(&[("NUTHATCH_MEMROY", "1GiB"), ("NUTHATCH_XYZ", "")]);
        assert_eq!(
            environment.warnings,
            [
                "NUTHATCH_MEMROY is not a setting and is ignored; did you mean NUTHATCH_MEMORY?",
                "NUTHATCH_XYZ is not a setting and is ignored",
            ]
        );
    }

    #[test]
    fn variables_of_a_kubernetes_service_are_ignored() {
        let environment = read(&[
            ("NUTHATCH_SERVICE_HOST", "10.0.0.1"),
            ("NUTHATCH_PORT", "tcp://10.0.0.1:6379"),
            ("NUTHATCH_PORT_6379_TCP_ADDR", "10.0.0.1"),
        ]);
        assert_eq!(environment.warnings, [""; 0]);
        assert_eq!(read(&[("NUTHATCH_PORT", "7000")]).warnings.len(), 1);
    }
}
