//! Settings from a file in TOML.
//!
//! A key is the name of a setting, with `-` or `_` between its words. A table's name is the
//! beginning of its keys' names: `[tls]` with `cert` is `tls-cert`.

use super::raw_value::{RawValue, quote};
use super::suggestion::suggestion;
use super::table::all_settings;
use std::ops::Range;
use toml_edit::{Array, Document, Item, TableLike, Value};

/// Maximum length of a settings file, in bytes.
pub(crate) const MAX_FILE_LEN: u64 = 1 << 20;

/// A setting in a file.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    /// The name of the setting in the table.
    pub(crate) name: &'static str,
    pub(crate) value: RawValue,
    /// The position of the value.
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// The state of parsing a file.
struct Parser<'a> {
    /// The name of the file in messages.
    name: &'a str,
    text: &'a str,
    entries: Vec<Entry>,
}

/// Parses the settings of a file. Messages name it `name`.
pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<Entry>, String> {
    let mut parser = Parser { name, text, entries: Vec::new() };
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        parser.error(at, error.message().trim_end())
    })?;
    parser.table(document.as_table(), "")?;
    Ok(parser.entries)
}

impl Parser<'_> {
    /// Reads a table whose keys' names begin with `prefix`.
    fn table(&mut self, table: &dyn TableLike, prefix: &str) -> Result<(), String> {
        for (key, item) in table.iter() {
            let span = table.get_key_value(key).and_then(|(key, _)| key.span());
            let at = span.map_or(0, |span| span.start);
            let name = format!("{prefix}{}", key.replace('_', "-"));
            let inner = format!("{name}-");
            if let Some(setting) = all_settings().find(|setting| setting.name == name) {
                self.entry(setting.name, item, at)?;
            } else if all_settings().any(|setting| setting.name.starts_with(&inner)) {
                // The depth is at most the number of words in a name.
                match item.as_table_like() {
                    Some(table) => self.table(table, &inner)?,
                    None => return Err(self.not_a_table(at, &name, item)),
                }
            } else {
                return Err(self.unknown(at, &name));
            }
        }
        Ok(())
    }

    fn entry(&mut self, name: &'static str, item: &Item, key_at: usize) -> Result<(), String> {
        if self.entries.iter().any(|entry| entry.name == name) {
            return Err(self.error(key_at, &format!("expected {name} once, found it again")));
        }
        let at = item.span().map_or(key_at, |span: Range<usize>| span.start);
        let value = match item {
            Item::Value(Value::String(text)) => RawValue::String(text.value().clone()),
            Item::Value(Value::Integer(number)) => RawValue::Integer(*number.value()),
            Item::Value(Value::Boolean(flag)) => RawValue::Bool(*flag.value()),
            Item::Value(Value::Array(array)) => self.list(array)?,
            item => RawValue::Unsupported(type_name(item)),
        };
        let (line, column) = self.position(at);
        self.entries.push(Entry { name, value, line, column });
        Ok(())
    }

    fn list(&self, array: &Array) -> Result<RawValue, String> {
        let text = |value: &Value| {
            value.as_str().map(str::to_owned).ok_or_else(|| {
                let at = value.span().map_or(0, |span| span.start);
                let found = type_name(&Item::Value(value.clone()));
                self.error(at, &format!("expected a string in this list, found {found}"))
            })
        };
        Ok(RawValue::List(array.iter().map(text).collect::<Result<_, _>>()?))
    }

    fn unknown(&self, at: usize, name: &str) -> String {
        let hint = suggestion(name, all_settings().map(|setting| setting.name));
        self.error(at, &format!("expected the name of a setting, found {}{hint}", quote(name)))
    }

    fn not_a_table(&self, at: usize, name: &str, item: &Item) -> String {
        let found = type_name(item);
        let hint = suggestion(name, all_settings().map(|setting| setting.name));
        self.error(at, &format!("{name}: expected a table, found {found}{hint}"))
    }

    /// Returns a message with the position of this offset.
    fn error(&self, at: usize, problem: &str) -> String {
        let (line, column) = self.position(at);
        format!("{}:{line}:{column}: {problem}", self.name)
    }

    /// Returns the line and the character in it, both counted from one.
    fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        (line, column)
    }
}

/// Returns the name of the type of a value, for messages.
fn type_name(item: &Item) -> &'static str {
    match item {
        Item::Value(Value::String(_)) => "a string",
        Item::Value(Value::Integer(_)) => "an integer",
        Item::Value(Value::Float(_)) => "a float",
        Item::Value(Value::Boolean(_)) => "a truth value",
        Item::Value(Value::Datetime(_)) => "a date or time",
        Item::Value(Value::Array(_)) => "a list",
        Item::Value(Value::InlineTable(_)) | Item::Table(_) => "a table",
        Item::ArrayOfTables(_) => "a list of tables",
        Item::None => "nothing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, proptest};
    use proptest::sample::select;

    fn names(text: &str) -> Vec<(&'static str, usize, usize)> {
        let entries = parse("a.toml", text).expect("settings");
        entries.iter().map(|entry| (entry.name, entry.line, entry.column)).collect()
    }

    #[test]
    fn keys_have_hyphens_underscores_or_tables() {
        let text = "memory = \"1GiB\"\nmax_clients = 5\n[tls]\ncert = \"c\"\nclient-ca = 'd'\n";
        let expected = [
            ("memory", 1, 10),
            ("max-clients", 2, 15),
            ("tls-cert", 4, 8),
            ("tls-client-ca", 5, 13),
        ];
        assert_eq!(names(text), expected);
        let other = "tls.cert = 'c'\ntls = 1";
        assert!(parse("a.toml", other).is_err(), "a key and a table of the same name");
        assert_eq!(names("max = { clients = 1, value = 2 }").len(), 2);
        assert_eq!(names("[slow.log]\nlength = 3"), [("slow-log-length", 2, 10)]);
        assert_eq!(names("[tls]\n"), []);
    }

    proptest! {
        #[test]
        fn any_file_is_parsed_or_rejected_with_a_position(
            parts in vec(select(PARTS), 0..12),
            other in ".{0,4}",
            at in 0..12_usize,
        ) {
            let mut parts = parts;
            parts.insert(at.min(parts.len()), &other);
            if let Err(problem) = parse("a.toml", &parts.concat()) {
                let mut numbers = problem.strip_prefix("a.toml:").expect("a name").split(':');
                let position = [numbers.next(), numbers.next()];
                let is_number = |text: Option<&str>| text.is_some_and(|t| t.parse::<u32>().is_ok());
                prop_assert!(position.into_iter().all(is_number), "{problem}");
            }
        }
    }

    const PARTS: &[&str] = &[
        "memory",
        "tls",
        "tls-cert",
        "max_clients",
        "resp",
        ".",
        "=",
        "=",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        ",",
        "\n",
        "\n",
        "'1'",
        "\"é\"",
        "1",
        "-1",
        "1.5",
        "true",
        "1979-05-27",
        "#",
    ];

    #[test]
    fn values_keep_their_types() {
        let text = "resp = ['a', \"b\"]\ninsecure = true\nmemory = 5\nusers = 'x'\ntimeout = 1.5";
        let entries = parse("a.toml", text).expect("settings");
        let value: Vec<_> = entries.into_iter().map(|entry| entry.value).collect();
        let expected = [
            RawValue::List(vec!["a".to_owned(), "b".to_owned()]),
            RawValue::Bool(true),
            RawValue::Integer(5),
            RawValue::String("x".to_owned()),
            RawValue::Unsupported("a float"),
        ];
        assert_eq!(value, expected);
    }
}
