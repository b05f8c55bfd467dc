//! Writes settings that changed while the server ran to the file they came from. What else is in
//! the file, comments among it, stays.

use crate::files::{WholeFile, read_text};
use crate::outcome::Failure;
use crate::settings::{Configuration, Given, Loaded, MAX_FILE_LEN, Setting, Told, settings};
use nuthatch_server::state::Rewrite;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// What `CONFIG REWRITE` does, if there is a file to write to.
pub(crate) fn rewrite(loaded: &Loaded) -> Option<Rewrite> {
    let name = loaded.file.clone().filter(|name| name != "-")?;
    // The working directory may change, and links may lead elsewhere.
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

/// The text of a file that says these settings, which have Redis's names and values.
fn edited(old: &str, wanted: &[(&'static str, String)]) -> Result<String, String> {
    let mut document: DocumentMut = old.parse().map_err(|_| "the file is no TOML now")?;
    let mut says = read(old)?;
    for (setting, text) in settings().filter_map(|setting| Some((setting, find(setting, wanted)?)))
    {
        if setting.kind.redis(&mut says).as_ref() == Some(text) {
            continue;
        }
        let given = setting.kind.given_by_redis(text);
        let value = given.and_then(value).ok_or_else(|| format!("{}: {text}", setting.name))?;
        let absent = match item(document.as_table_mut(), "", setting.name) {
            Some(item) => {
                exchange(item, value);
                None
            }
            None => Some(value),
        };
        if let Some(value) = absent {
            document.insert(setting.name, Item::Value(value));
        }
    }
    let new = document.to_string();
    // A value that changes while the server runs may be none that it starts with.
    read(&new)?;
    Ok(new)
}

/// What a file says, with defaults where it says nothing.
fn read(text: &str) -> Result<Configuration, String> {
    let mut loaded = Loaded::defaults();
    loaded.apply_text("the file", text, Path::new(""))?;
    Ok(loaded.configuration)
}

/// The value that is wanted of a setting.
fn find<'a>(setting: &Setting, wanted: &'a [(&'static str, String)]) -> Option<&'a String> {
    let Told::AndChanged(name) = setting.told else { return None };
    wanted.iter().find(|(wanted, _)| *wanted == name).map(|(_, text)| text)
}

/// Where a file has a setting, by any spelling of its name.
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

/// Exchanges a value and leaves what is around it, such as a comment.
fn exchange(item: &mut Item, mut value: Value) {
    if let Some(old) = item.as_value() {
        *value.decor_mut() = old.decor().clone();
    }
    *item = Item::Value(value);
}

fn value(given: Given) -> Option<Value> {
    match given {
        Given::Text(text) => Some(text.into()),
        Given::Integer(number) => Some(number.into()),
        Given::Truth(truth) => Some(truth.into()),
        Given::Word(_) | Given::List(_) | Given::Other(_) => None,
    }
}

/// Replaces a file as a whole: there is the old one or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut file = WholeFile::begin(path.to_owned())?;
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
    fn what_changed_is_written_and_all_else_stays() {
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
    fn what_the_file_says_already_is_left_as_it_is() {
        let wanted =
            wanted(&[("maxclients", "5"), ("timeout", "0"), ("slowlog-log-slower-than", "10000")]);
        assert_eq!(edited(FILE, &wanted).expect("the same file"), FILE);
    }

    #[test]
    fn a_value_that_no_server_starts_with_is_not_written() {
        let wanted = wanted(&[("slowlog-max-len", "9000000000")]);
        let problem = edited(FILE, &wanted).expect_err("too many");
        assert!(problem.contains("slow-log-length: expected a number from 0 to"), "{problem}");
        assert!(edited("memory = 'x'", &[]).is_err(), "the file was changed meanwhile");
        assert!(edited("memory", &[]).is_err());
    }

    #[test]
    fn every_setting_that_changes_comes_back_from_what_redis_calls_it() {
        for setting in settings().filter(|setting| setting.name != "password") {
            let Told::AndChanged(_) = setting.told else { continue };
            let mut defaults = Loaded::defaults().configuration;
            let text = setting.kind.redis(&mut defaults).expect("a text");
            let given = setting.kind.given_by_redis(&text).expect("a value");
            let mut again = Configuration::default();
            setting.kind.set(&mut again, &given, Path::new("")).expect("a value");
            assert_eq!(setting.kind.redis(&mut again), Some(text), "{}", setting.name);
        }
    }
}
