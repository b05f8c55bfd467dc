//! The settings as environment variables.

use super::raw_value::Given;
use super::setting::{PREFIX, Setting};
use super::setting_type::Kind;
use super::suggestion::nearest;
use super::table::settings;
use std::ffi::OsString;

/// The variable that names the configuration file.
pub(crate) const FILE: &str = "NUTHATCH_CONFIG";

/// Variables that are meant for `nuthatch chunks`.
const CHUNKS: [&str; 2] = ["NUTHATCH_CACHE", "NUTHATCH_ORIGIN"];

/// What the environment says.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// The configuration file.
    pub(crate) file: Option<String>,
    pub(crate) given: Vec<(&'static str, Given)>,
    /// About variables that look as if they were settings.
    pub(crate) warnings: Vec<String>,
}

impl Environment {
    /// Reads the variables that are meant for us.
    pub(crate) fn read(
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, String> {
        let mut read = Self::default();
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            let value = value.into_string();
            let value = value.map_err(|_| format!("{name}: expected UTF-8, found other bytes"));
            if name == FILE {
                read.file = Some(value?);
            } else if let Some(setting) = settings().find(|one| one.variable() == name) {
                read.given.push((setting.name, given(setting, value?)));
            } else if !CHUNKS.contains(&name)
                && !is_of_kubernetes(name, value.as_deref().unwrap_or_default())
            {
                read.warnings.push(unknown(name));
            }
        }
        read.given.sort_by_key(|(name, _)| *name);
        read.warnings.sort();
        Ok(read)
    }
}

fn given(setting: &Setting, value: String) -> Given {
    match setting.kind {
        Kind::Places(_) => Given::List(value.split(',').map(|one| one.trim().to_owned()).collect()),
        _ => Given::Word(value),
    }
}

fn unknown(name: &str) -> String {
    let variables: Vec<_> = settings().map(Setting::variable).collect();
    let names = variables.iter().map(String::as_str).chain([FILE]);
    // What all of them begin with would make any two alike.
    let names = names.filter_map(|name| name.strip_prefix(PREFIX));
    let wrong = name.strip_prefix(PREFIX).unwrap_or(name);
    let hint = match nearest(wrong, names) {
        Some(near) => format!("; did you mean {PREFIX}{near}?"),
        None => String::new(),
    };
    format!("{name} is not a setting and is ignored{hint}")
}

/// Kubernetes tells pods of every service; for one named `nuthatch` that looks like settings.
fn is_of_kubernetes(name: &str, value: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or(name);
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
        let list = Given::List(vec!["127.0.0.1:1".to_owned(), "unix:x".to_owned()]);
        let number = Given::Word("5".to_owned());
        assert_eq!(environment.given, [("max-clients", number), ("resp", list)]);
        assert_eq!(environment.warnings, [""; 0]);
    }

    #[test]
    fn variables_that_are_no_settings_are_told_of() {
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
    fn what_kubernetes_says_of_a_service_is_no_setting() {
        let environment = read(&[
            ("NUTHATCH_SERVICE_HOST", "10.0.0.1"),
            ("NUTHATCH_PORT", "tcp://10.0.0.1:6379"),
            ("NUTHATCH_PORT_6379_TCP_ADDR", "10.0.0.1"),
        ]);
        assert_eq!(environment.warnings, [""; 0]);
        assert_eq!(read(&[("NUTHATCH_PORT", "7000")]).warnings.len(), 1);
    }
}
