//! `CONFIG REWRITE`: writes settings that changed while the server ran to the settings file.
//! Comments and everything else in the file stay.

use crate::files::{AtomicFile, read_text};
use crate::outcome::Failure;
use crate::settings::{ConfigName, LoadedSettings, MAX_FILE_LEN, Setting, Settings, all_settings};
use nuthatch_server::state::Rewrite;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// Returns the function of `CONFIG REWRITE`. `None` without a settings file.
pub(crate) fn rewrite(loaded: &LoadedSettings) -> Option<Rewrite> {
    let name = loaded.file.clone().filter(|name| name != "-")?;
    // The working directory and symbolic links can change later.
    let path = fs::canonicalize(&name).ok().filter(|path| path.is_file())?;
    Some(Rewrite::new(move |settings| {
        let old = read_text(&path.display().to_string(), MAX_FILE_LEN).map_err(text)?;
        let new = edited(&old, settings)?;
        if new != old {
            replace(&path, &new).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }))
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Usage(text) | Failure::Error(text) => text,
        Failure::ClosedPipe => "closed".to_owned(),
    }
}

/// Returns the text of a settings file with new values, which have the names and notation of
/// `CONFIG`.
fn edited(old: &str, wanted: &[(&'static str, String)]) -> Result<String, String> {
    let mut document: DocumentMut = old.parse().map_err(|_| "the file is not valid TOML")?;
    let current = read(old)?;
    for (setting, text) in
        all_settings().filter_map(|setting| Some((setting, find(setting, wanted)?)))
    {
        if setting.value_type.to_config_text(&current).as_ref() == Some(text) {
            continue;
        }
        let value = setting.value_type.parse_config_text(text);
        let value = value.ok_or_else(|| format!("{}: {text}", setting.name))?;
        match item(document.as_table_mut(), "", setting.name) {
            Some(item) => exchange(item, value),
            None => {
                document.insert(setting.name, Item::Value(value));
            }
        }
    }
    let new = document.to_string();
    // A value that `CONFIG SET` accepts may be invalid at the start of a server.
    read(&new)?;
    Ok(new)
}

/// Returns the settings of a file, with defaults for the others.
fn read(text: &str) -> Result<Settings, String> {
    let mut loaded = LoadedSettings::defaults();
    loaded.apply_text("the file", text, Path::new(""))?;
    Ok(loaded.settings)
}

/// Returns the new value of a setting, if there is one.
fn find<'a>(setting: &Setting, wanted: &'a [(&'static str, String)]) -> Option<&'a String> {
    let ConfigName::Changeable(name) = setting.config_name else { return None };
    wanted.iter().find(|(wanted, _)| *wanted == name).map(|(_, text)| text)
}

/// Finds a setting in a file, in any notation of its name.
fn item<'a>(table: &'a mut dyn TableLike, prefix: &str, name: &str) -> Option<&'a mut Item> {
    table.iter_mut().find_map(|(key, found)| {
        let path = format!("{prefix}{}", key.get().replace('_', "-"));
        if path == name {
            return Some(found);
        }
        let prefix = format!("{path}-");
        let table = found.as_table_like_mut().filter(|_| name.starts_with(&prefix))?;
        item(table, &prefix, name)
    })
}

/// Replaces a value and keeps the text around it, such as a comment.
fn exchange(item: &mut Item, mut value: Value) {
    if let Some(old) = item.as_value() {
        *value.decor_mut() = old.decor().clone();
    }
    *item = Item::Value(value);
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut file = AtomicFile::create(path.to_owned())?;
    file.write_all(text.as_bytes())?;
    file.publish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# Ours.
memory = '32MiB'  # enough

max_clients = 5   # few
[slow-log]
# Slow is this.
threshold = '10ms'
";

    fn wanted(wanted: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        wanted.iter().map(|(name, text)| (*name, (*text).to_owned())).collect()
    }

    #[test]
    fn changed_settings_are_written_and_all_else_stays() {
        let wanted = wanted(&[
            ("timeout", "90"),
            ("maxclients", "7"),
            ("slowlog-log-slower-than", "-1"),
            ("slowlog-max-len", "128"),
            ("latency-tracking", "no"),
            ("proto-max-bulk-len", "2097152"),
        ]);
        let expected = "\
# Ours.
memory = '32MiB'  # enough

max_clients = 7   # few
timeout = \"90s\"
max-value = \"2MiB\"
latency-tracking = false
[slow-log]
# Slow is this.
threshold = \"off\"
";
        let new = edited(FILE, &wanted).expect("an edited file");
        assert_eq!(new, expected);
        assert_eq!(edited(&new, &wanted).expect("the same file"), new);
    }

    #[test]
    fn equal_values_in_the_file_are_not_changed() {
        let wanted =
            wanted(&[("maxclients", "5"), ("timeout", "0"), ("slowlog-log-slower-than", "10000")]);
        assert_eq!(edited(FILE, &wanted).expect("the same file"), FILE);
    }

    #[test]
    fn a_value_that_is_invalid_at_the_start_is_not_written() {
        let wanted = wanted(&[("maxclients", "9000000000")]);
        let problem = edited(FILE, &wanted).expect_err("too many");
        assert!(problem.contains("max-clients: expected a number from 1 to"), "{problem}");
        assert!(edited("memory = 'x'", &[]).is_err(), "the file was changed meanwhile");
        assert!(edited("memory", &[]).is_err());
    }

    #[test]
    fn every_changeable_setting_survives_the_notation_of_config() {
        for setting in all_settings().filter(|setting| setting.name != "password") {
            let ConfigName::Changeable(_) = setting.config_name else { continue };
            let defaults = LoadedSettings::defaults().settings;
            let text = setting.value_type.to_config_text(&defaults).expect("a text");
            let value = setting.value_type.parse_config_text(&text).expect("a value");
            let again = read(&format!("{} = {value}", setting.name)).expect("a settings file");
            let text_again = setting.value_type.to_config_text(&again);
            assert_eq!(text_again, Some(text), "{}", setting.name);
        }
    }
}
