//! `.netrc`: users and passwords by host. The syntax is that of the manual of GNU inetutils, with
//! quoted words as in curl.

use crate::error::{Error, Result};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

const KEYWORDS: &str = "machine, default, login, password, account or macdef";

/// Where `.netrc` is read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Source {
    /// The file that `NETRC` names, or `.netrc` in the home of the user, if there is one.
    #[default]
    Usual,
    /// A file that must exist.
    File(PathBuf),
    Nowhere,
}

/// Users and passwords by host.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Netrc(Vec<Entry>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Entry {
    /// The host; `None` for all hosts without an entry of their own.
    machine: Option<String>,
    user: String,
    password: Option<String>,
}

/// The error for a file that cannot be used.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    line: usize,
    expected: &'static str,
}

impl Netrc {
    pub(crate) fn load(source: &Source) -> Result<Self> {
        let path = match source {
            Source::Nowhere => return Ok(Self::default()),
            Source::File(path) => path.clone(),
            Source::Usual => match usual() {
                Some(path) => path,
                None => return Ok(Self::default()),
            },
        };
        let setup = |reason| Error::Setup { what: "users and passwords", reason };
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map_err(|fault| setup(fault.describe(&path))),
            // A file that cannot be read is ignored: the process may not need it.
            Err(_) if *source == Source::Usual => Ok(Self::default()),
            Err(error) => Err(setup(format!("{}: {error}", path.display()))),
        }
    }

    /// Returns the user and the password for a host.
    pub(crate) fn of(&self, host: &str) -> Option<(String, Option<String>)> {
        let is = |machine: &String| machine.eq_ignore_ascii_case(host);
        let own = self.0.iter().find(|entry| entry.machine.as_ref().is_some_and(is));
        let found = own.or_else(|| self.0.iter().find(|entry| entry.machine.is_none()))?;
        Some((found.user.clone(), found.password.clone()))
    }

    fn parse(text: &str) -> Result<Self, Fault> {
        let mut words = Words { rest: text.chars().peekable(), line: 1 };
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(keyword) = words.keyword() {
            let line = words.line;
            let wrong = |expected| Fault { line, expected };
            let mut value = || words.next().ok_or(wrong("a value after the last word"));
            match keyword.as_str() {
                "machine" => entries.push(Entry { machine: Some(value()?), ..Entry::default() }),
                "default" => entries.push(Entry::default()),
                "macdef" => words.skip_macro(),
                "login" | "password" | "account" => {
                    let value = value()?;
                    let entry = entries.last_mut().ok_or(wrong("machine or default first"))?;
                    match keyword.as_str() {
                        "login" => entry.user = value,
                        "password" => entry.password = Some(value),
                        // HTTP has no accounts.
                        _ => {}
                    }
                }
                _ => return Err(wrong(KEYWORDS)),
            }
        }
        Ok(Self(entries))
    }
}

impl Fault {
    /// Describes the error without the text that was found, which may be a password.
    fn describe(&self, path: &Path) -> String {
        format!("{}, line {}: expected {}", path.display(), self.line, self.expected)
    }
}

fn usual() -> Option<PathBuf> {
    let named = std::env::var_os("NETRC").filter(|named| !named.is_empty());
    named.map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".netrc")))
}

/// The words of a file, and the line that the last one began in.
struct Words<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Words<'_> {
    fn step(&mut self) -> Option<char> {
        self.rest.next().inspect(|char| self.line += usize::from(*char == '\n'))
    }

    /// Returns the next word that is no comment.
    fn keyword(&mut self) -> Option<String> {
        loop {
            let word = self.next()?;
            if !word.starts_with('#') {
                return Some(word);
            }
            while self.rest.peek().is_some_and(|char| *char != '\n') {
                self.step();
            }
        }
    }

    /// Skips a macro, which ends with an empty line.
    fn skip_macro(&mut self) {
        let mut last = ' ';
        while let Some(char) = self.step() {
            if char == '\n' && last == '\n' {
                return;
            }
            last = char;
        }
    }
}

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        while self.rest.peek()?.is_whitespace() {
            self.step();
        }
        let mut word = String::new();
        let quoted = self.rest.next_if_eq(&'"').is_some();
        while let Some(&char) = self.rest.peek() {
            if if quoted { char == '"' } else { char.is_whitespace() } {
                break;
            }
            self.step();
            let escaped = if quoted && char == '\\' { self.step() } else { None };
            word.push(match escaped {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                other => other.unwrap_or(char),
            });
        }
        self.rest.next_if_eq(&'"').filter(|_| quoted);
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str, host: &str) -> Option<(String, String)> {
        let found = Netrc::parse(text).expect("a file").of(host);
        found.map(|(user, password)| (user, password.unwrap_or_default()))
    }

    fn pair(user: &str, password: &str) -> (String, String) {
        (user.to_owned(), password.to_owned())
    }

    #[test]
    fn the_first_entry_of_a_host_counts_and_then_the_one_for_all() {
        let text = "# hosts\nmachine one.org login a password b\nmachine two.org\n\tlogin c\n\
                    \tpassword #d # a comment\naccount none\nmachine one.org login x password y\n\
                    macdef init\ncd /\nmachine no.org login no\n\ndefault login e\n";
        assert_eq!(of(text, "one.org"), Some(pair("a", "b")));
        assert_eq!(of(text, "TWO.org"), Some(pair("c", "#d")));
        assert_eq!(of(text, "no.org"), Some(pair("e", "")));
        assert_eq!(of("", "one.org"), None);
        let quoted = r#"machine one login "a b" password "c\"d\\e\tf""#;
        assert_eq!(of(quoted, "one"), Some(pair("a b", "c\"d\\e\tf")));
    }

    #[test]
    fn what_is_wrong_is_told_by_its_line_and_never_shown() {
        let expected = [
            ("machine one\nlogin a\npassword b c\n", 3, KEYWORDS),
            ("\nlogin a\n", 2, "machine or default first"),
            ("machine", 1, "a value after the last word"),
        ];
        for (text, line, expected) in expected {
            let fault = Netrc::parse(text).err().expect("a fault");
            assert_eq!(fault, Fault { line, expected }, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn entries_come_back_as_they_were_quoted(
            entries in prop::collection::vec(("[a-z]{1,9}", "\\PC{0,9}", "\\PC{0,9}"), 0..9),
        ) {
            let quote = |word: &str| word.replace('\\', "\\\\").replace('"', "\\\"");
            let lines = entries.iter().map(|(host, user, key)| {
                format!("machine {host} login \"{}\" password \"{}\"\n", quote(user), quote(key))
            });
            let netrc = Netrc::parse(&lines.collect::<String>()).expect("a file");
            for (host, ..) in &entries {
                let first = entries.iter().find(|(other, ..)| other == host);
                let expected = first.map(|(_, user, key)| (user.clone(), Some(key.clone())));
                prop_assert_eq!(netrc.of(host), expected);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "([a-z\"\\\\# \n]|machine |login |macdef ){0,60}") {
            let _ = Netrc::parse(&text);
        }
    }
}
