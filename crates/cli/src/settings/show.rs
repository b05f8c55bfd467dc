//! The output of `--show-config`: all settings with the source of each value.

use super::loaded::LoadedSettings;
use super::setting::Setting;
use super::setting_type::{SettingType, ShownValue};
use super::table::GROUPS;
use nuthatch_cli::output::json_string;
use std::fmt::Write;
use toml_edit::Value;

const HEAD: &str = "\
The settings of nuthatch serve. Each key is also an environment variable (NUTHATCH_MEMORY) and, \
except `password`, a flag (--memory). Flags override the environment, which overrides this file, \
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
            let _ = match shown_value(loaded, setting) {
                ShownValue::Hidden => writeln!(text, "# {name} = \"(hidden)\"  # {source}"),
                ShownValue::Unset => writeln!(text, "# {name} = \"{}\"", setting.value_name),
                value => writeln!(text, "{name} = {}  # {source}", toml_value(&value)),
            };
        }
    }
    text
}

/// Returns the settings as one JSON object, with value and source of each.
pub(crate) fn json(loaded: &LoadedSettings) -> String {
    let rows = GROUPS.iter().flat_map(|group| group.settings).map(|setting| {
        let value = json_value(&shown_value(loaded, setting));
        let source = json_text(&loaded.source(setting.name).to_string());
        format!("{}:{{\"value\":{value},\"from\":{source}}}", json_text(setting.name))
    });
    format!("{{{}}}\n", rows.collect::<Vec<_>>().join(","))
}

fn shown_value(loaded: &LoadedSettings, setting: &Setting) -> ShownValue {
    setting.value_type.shown_value(&mut loaded.settings.clone())
}

/// Appends a comment line for each choice of a setting.
fn choices(text: &mut String, setting: &Setting) {
    if let SettingType::Choice { choices, .. } = setting.value_type {
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

fn toml_value(value: &ShownValue) -> String {
    let text = |text: &str| Value::from(text).to_string();
    match value {
        ShownValue::Text(one) => text(one),
        ShownValue::Number(number) => number.to_string(),
        ShownValue::Bool(flag) => flag.to_string(),
        ShownValue::List(list) => {
            let list: Vec<_> = list.iter().map(|one| text(one)).collect();
            format!("[{}]", list.join(", "))
        }
        ShownValue::Hidden | ShownValue::Unset => String::new(),
    }
}

fn json_value(value: &ShownValue) -> String {
    match value {
        ShownValue::Text(text) => json_text(text),
        ShownValue::Number(number) => number.to_string(),
        ShownValue::Bool(flag) => flag.to_string(),
        ShownValue::List(list) => {
            let list: Vec<_> = list.iter().map(|one| json_text(one)).collect();
            format!("[{}]", list.join(","))
        }
        ShownValue::Hidden => json_text("(hidden)"),
        ShownValue::Unset => "null".to_owned(),
    }
}

fn json_text(text: &str) -> String {
    let mut json = Vec::new();
    json_string(text, &mut json);
    String::from_utf8_lossy(&json).into_owned()
}
