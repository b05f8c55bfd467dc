//! Tests that compare the help page, `docs/configuration.md` and `docs/nuthatch.toml` with the
//! table of settings.

use super::Serve;
use crate::settings::{
    ConfigName, GROUPS, LoadedSettings, RawValue, Setting, Settings, all_settings,
};
use clap::{Args, Command};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::read_to_string;
use std::path::Path;

/// Compares a page with its expected text. With `NUTHATCH_BLESS=1` in the environment, writes it.
#[track_caller]
fn check(page: &str, expected: impl FnOnce(&str) -> String) {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = read_to_string(&path).expect("a page of this repository");
    let expected = expected(&text);
    if std::env::var_os("NUTHATCH_BLESS").is_some() {
        std::fs::write(path, expected).expect("a page of this repository");
        return;
    }
    for (number, (line, expected)) in (1..).zip(text.lines().zip(expected.lines())) {
        assert_eq!(line, expected, "line {number} of docs/{page}; expected is on the right");
    }
    assert_eq!(text.len(), expected.len(), "lines are missing, or too many, in docs/{page}");
}

/// Returns the row of a setting in `docs/configuration.md`.
fn row(setting: &Setting) -> String {
    let name = if setting.is_flag() { "" } else { ", no flag" };
    let default = match setting.default {
        "" => String::new(),
        default => format!("`{default}`"),
    };
    let config_name = match setting.config_name {
        ConfigName::None => String::new(),
        ConfigName::ReadOnly(name) => format!("`{name}`"),
        ConfigName::Changeable(name) => format!("`{name}`, changes"),
    };
    format!("| `{}`{name} | {default} | {config_name} | {} |", setting.name, setting.help)
}

#[test]
fn the_page_has_a_row_for_each_setting_and_no_other() {
    const HEAD: &str = "| setting | default | `CONFIG` | what it is for |\n|---|---|---|---|\n";
    let mut tables = String::new();
    for group in GROUPS {
        let rows: String = group.settings.iter().map(|setting| row(setting) + "\n").collect();
        let _ = write!(tables, "### {}\n\n{HEAD}{rows}\n", group.heading);
    }
    check("configuration.md", |page| {
        let (before, rest) = page.split_once("### ").expect("the first table");
        let (_, after) = rest.split_once("\n## ").expect("what is behind the tables");
        format!("{before}{tables}## {after}")
    });
}

#[test]
fn the_example_file_is_the_output_of_show_config() {
    let expected_file = crate::settings::toml(&LoadedSettings::defaults());
    assert_eq!(expected_file.lines().find(|line| line.chars().count() > 100), None);
    check("nuthatch.toml", |_| expected_file);
}

#[test]
fn help_has_a_flag_for_each_setting_that_is_no_secret() {
    let command = Serve::augment_args(Command::new("serve"));
    let flags: BTreeSet<_> = command.get_arguments().filter_map(|one| one.get_long()).collect();
    let mut expected: BTreeSet<_> =
        all_settings().filter(|one| one.is_flag()).map(|one| one.name).collect();
    expected.extend(["config", "show-config", "json"]);
    assert_eq!(flags, expected);
    for argument in command.get_arguments() {
        let help = argument.get_help().expect("help").to_string();
        assert!(!help.is_empty() && !help.ends_with('.'), "{argument:?}");
    }
}

#[test]
fn every_default_is_a_value_of_its_setting() {
    for setting in all_settings().filter(|setting| !setting.default.is_empty()) {
        let value = RawValue::Untyped(setting.default.to_owned());
        let set = setting.value_type.set(&mut Settings::default(), &value, Path::new(""));
        assert_eq!(set, Ok(()), "{}", setting.name);
    }
}

#[test]
fn no_two_settings_share_a_field_or_a_name() {
    // Two fields of one name do not compile.
    let names: BTreeSet<_> = all_settings().map(|setting| setting.name).collect();
    assert_eq!(names.len(), all_settings().count());
    let config_names = all_settings().filter_map(|setting| match setting.config_name {
        ConfigName::None => None,
        ConfigName::ReadOnly(name) | ConfigName::Changeable(name) => Some(name),
    });
    let config_names: Vec<_> = config_names.collect();
    let unique: BTreeSet<_> = config_names.iter().collect();
    assert_eq!(unique.len(), config_names.len());
}
