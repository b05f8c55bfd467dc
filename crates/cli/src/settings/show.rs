//! Shows what a configuration is, and where each value is from.

use super::loaded::Loaded;
use super::setting::Setting;
use super::setting_type::{Kind, Shown};
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

/// The configuration as a file that says the same, with comments.
pub(crate) fn toml(loaded: &Loaded) -> String {
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
            let _ = match shown(loaded, setting) {
                Shown::Hidden => writeln!(text, "# {name} = \"(hidden)\"  # {source}"),
                Shown::Nothing => writeln!(text, "# {name} = \"{}\"", setting.value_name),
                value => writeln!(text, "{name} = {}  # {source}", toml_value(&value)),
            };
        }
    }
    text
}

/// The same as one JSON object: for each setting its value and where that is from.
pub(crate) fn json(loaded: &Loaded) -> String {
    let rows = GROUPS.iter().flat_map(|group| group.settings).map(|setting| {
        let value = json_value(&shown(loaded, setting));
        let source = json_text(&loaded.source(setting.name).to_string());
        format!("{}:{{\"value\":{value},\"from\":{source}}}", json_text(setting.name))
    });
    format!("{{{}}}\n", rows.collect::<Vec<_>>().join(","))
}

fn shown(loaded: &Loaded, setting: &Setting) -> Shown {
    setting.kind.shown(&mut loaded.configuration.clone())
}

/// What there is to choose from, a line for each.
fn choices(text: &mut String, setting: &Setting) {
    if let Kind::Choice { words, .. } = setting.kind {
        for (word, meaning) in words {
            let _ = writeln!(text, "#   {word}: {meaning}");
        }
    }
}

/// Appends comment lines, none of them too wide.
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

fn toml_value(value: &Shown) -> String {
    let text = |text: &str| Value::from(text).to_string();
    match value {
        Shown::Text(one) => text(one),
        Shown::Number(number) => number.to_string(),
        Shown::Truth(truth) => truth.to_string(),
        Shown::List(list) => {
            let list: Vec<_> = list.iter().map(|one| text(one)).collect();
            format!("[{}]", list.join(", "))
        }
        Shown::Hidden | Shown::Nothing => String::new(),
    }
}

fn json_value(value: &Shown) -> String {
    match value {
        Shown::Text(text) => json_text(text),
        Shown::Number(number) => number.to_string(),
        Shown::Truth(truth) => truth.to_string(),
        Shown::List(list) => {
            let list: Vec<_> = list.iter().map(|one| json_text(one)).collect();
            format!("[{}]", list.join(","))
        }
        Shown::Hidden => json_text("(hidden)"),
        Shown::Nothing => "null".to_owned(),
    }
}

fn json_text(text: &str) -> String {
    let mut json = Vec::new();
    json_string(text, &mut json);
    String::from_utf8_lossy(&json).into_owned()
}
