//! The output of `--show-config`: all settings with the source of each value.

use super::loaded::LoadedSettings;
use super::table::{GROUPS, Setting, SettingType, all_settings};
use serde_json::Value;
use std::fmt::Write;

const HEAD: &str = "\
The settings of nuthatch serve. Each key is also an environment variable (NUTHATCH_MEMORY) and, \
except passwords, a flag (--memory). Flags override the environment, which overrides this file, \
which overrides the defaults. Keys without a value are commented out. Relative paths are relative \
to the folder of this file.";

const WIDTH: usize = 98;

/// Returns the settings as a settings file with comments.
pub(crate) fn toml(loaded: &LoadedSettings) -> String {
    let mut text = String::new();
    comment(&mut text, HEAD);
    for group in GROUPS {
        let _ = write!(text, "\n\n## {}\n", group.heading);
        for setting in group.settings {
            text.push('\n');
            match setting.more {
                "" => comment(&mut text, setting.help),
                more => comment(&mut text, &format!("{}. {more}", setting.help)),
            }
            choices(&mut text, setting);
            let (name, source) = (setting.name, loaded.source(setting.name));
            let _ = match setting.value_type.shown_value(&loaded.settings) {
                Value::Null => writeln!(text, "# {name} = \"{}\"", setting.value_name),
                value => {
                    let comment = if setting.is_secret() { "# " } else { "" };
                    writeln!(text, "{comment}{name} = {}  # {source}", toml_value(&value))
                }
            };
        }
    }
    text
}

/// Returns the settings as one JSON object, with value and source of each.
pub(crate) fn json(loaded: &LoadedSettings) -> String {
    let rows = all_settings().map(|setting| {
        let name = Value::from(setting.name);
        let value = setting.value_type.shown_value(&loaded.settings);
        let source = Value::from(loaded.source(setting.name).to_string());
        format!("{name}:{{\"value\":{value},\"from\":{source}}}")
    });
    format!("{{{}}}\n", rows.collect::<Vec<_>>().join(","))
}

/// Appends a comment line for each choice of a setting.
fn choices(text: &mut String, setting: &Setting) {
    if let SettingType::Choice(_, choices) = setting.value_type {
        for (word, meaning) in choices {
            let _ = writeln!(text, "#   {word}: {meaning}");
        }
    }
}

/// Appends comment lines of at most [`WIDTH`] columns.
fn comment(text: &mut String, content: &str) {
    text.push('#');
    let mut width = 1;
    for word in content.split(' ') {
        let len = word.chars().count() + 1;
        if width + len > WIDTH {
            text.push_str("\n#");
            width = 1;
        }
        text.push(' ');
        text.push_str(word);
        width += len;
    }
    text.push('\n');
}

/// Returns a value in TOML.
fn toml_value(value: &Value) -> String {
    match value {
        Value::String(text) => toml_edit::Value::from(text).to_string(),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(toml_value).collect::<Vec<_>>().join(", "))
        }
        // Numbers and truth values are the same as in JSON.
        value => value.to_string(),
    }
}
