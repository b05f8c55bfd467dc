//! The types of settings: how values are parsed.

use super::duration_unit::DurationUnit;
use super::listen_address::ListenAddress;
use super::named_path::NamedPath;
use super::path_or_word::PathOrWord;
use super::raw_value::RawValue;
use super::secret::Secret;
use nuthatch_units::{format_size, parse_duration, parse_size};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Access to a field of `S`.
pub(crate) struct Field<S, T> {
    pub(crate) get: fn(&S) -> &T,
    pub(crate) get_mut: fn(&mut S) -> &mut T,
}

impl<S, T> Field<S, T> {
    fn set(&self, to: &mut S, value: T) {
        *(self.get_mut)(to) = value;
    }
}

/// The choices of a setting, each with its meaning.
pub(crate) type Choices = &'static [(&'static str, &'static str)];

/// The type of a setting, with its field in `S`. Two numbers are the minimum and the maximum.
pub(crate) enum SettingType<S> {
    /// Addresses to listen at; `off` for none.
    Addresses(Field<S, Vec<ListenAddress>>),
    /// Paths with names: `NAME=PATH`.
    NamedPaths(Field<S, Vec<NamedPath>>),
    /// Texts, none of them empty.
    Texts(Field<S, Vec<String>>),
    /// A number of bytes.
    Size(Field<S, u64>, u64, u64),
    /// A duration of whole units, up to this number of them, or `off`.
    Duration(Field<S, Option<Duration>>, DurationUnit, u64),
    /// A number.
    Count(Field<S, u64>, u64, u64),
    /// A number, or `auto` for none.
    CountOrAuto(Field<S, Option<u64>>, u64, u64),
    /// One of several words.
    Choice(Field<S, &'static str>, Choices),
    /// True or false.
    Bool(Field<S, bool>),
    /// A file or folder.
    Path(Field<S, Option<PathBuf>>),
    /// A file, or one of these words.
    PathOrWord(Field<S, PathOrWord>, &'static [&'static str]),
    /// A text, with a function that checks it.
    Text(Field<S, String>, fn(&str) -> Result<(), String>),
    /// A text that is never shown and has no flag.
    Secret(Field<S, Option<Secret>>),
}

impl<S> SettingType<S> {
    /// Sets the field from a value. Relative paths are relative to `folder`.
    ///
    /// # Errors
    ///
    /// Returns what was expected and what was found.
    pub(crate) fn set(&self, to: &mut S, value: &RawValue, folder: &Path) -> Result<(), String> {
        let wrong = || format!("expected {}, found {}", self.expected(), value.describe());
        let text = || value.as_text().filter(|text| !text.is_empty());
        match self {
            Self::Addresses(field) => field.set(to, addresses(value, folder)?),
            Self::NamedPaths(field) => field.set(to, named_paths(value, folder)?),
            Self::Texts(field) => field.set(to, texts(value).ok_or_else(wrong)?),
            Self::Size(field, min, max) => {
                let size = match value {
                    RawValue::Integer(_) => value.as_number(),
                    _ => text().and_then(|text| parse_size(text).ok()),
                };
                let size = size.ok_or_else(wrong)?;
                if !(*min..=*max).contains(&size) {
                    let found = format_size(size);
                    return Err(format!("expected {}, found {found}", sizes_within(*min, *max)));
                }
                field.set(to, size);
            }
            Self::Duration(field, unit, max) => {
                let duration = match (value, text()) {
                    (_, Some("off")) => None,
                    (RawValue::Integer(0), _) => Some(Duration::ZERO),
                    (_, text) => {
                        let duration = text.and_then(parse_duration);
                        Some(duration.filter(|one| unit.divides(*one)).ok_or_else(wrong)?)
                    }
                };
                if duration.is_some_and(|one| unit.count(one) > u128::from(*max)) {
                    let (name, found) = (unit.name, value.describe());
                    return Err(format!("expected at most {max} {name}, or off, found {found}"));
                }
                field.set(to, duration);
            }
            Self::Count(field, min, max) => {
                field.set(to, number_within(value, *min, *max).ok_or_else(wrong)?);
            }
            Self::CountOrAuto(field, min, max) => {
                let number = number_within(value, *min, *max);
                if number.is_none() && text() != Some("auto") {
                    return Err(wrong());
                }
                field.set(to, number);
            }
            Self::Choice(field, choices) => {
                let word = choices.iter().find(|(word, _)| text() == Some(*word));
                field.set(to, word.ok_or_else(wrong)?.0);
            }
            Self::Bool(field) => field.set(to, value.as_bool().ok_or_else(wrong)?),
            Self::Path(field) => field.set(to, Some(folder.join(text().ok_or_else(wrong)?))),
            Self::PathOrWord(field, words) => {
                let text = text().ok_or_else(wrong)?;
                let word = words.iter().find(|word| **word == text);
                let path = || PathOrWord::Path(folder.join(text));
                field.set(to, word.map_or_else(path, |word| PathOrWord::Word(word)));
            }
            Self::Text(field, check) => {
                let text = text().ok_or_else(wrong)?;
                check(text)?;
                field.set(to, text.to_owned());
            }
            Self::Secret(field) => {
                // The message lacks the value, which may be a password without its quotes.
                let found = value.as_text().map_or("something else", |_| "nothing");
                let wrong = || format!("expected {}, found {found}", self.expected());
                field.set(to, Some(Secret(text().ok_or_else(wrong)?.to_owned())));
            }
        }
        Ok(())
    }

    /// Returns which values are expected, for messages.
    fn expected(&self) -> String {
        match self {
            Self::Addresses(_) => EXPECTED_ADDRESSES.to_owned(),
            Self::NamedPaths(_) => EXPECTED_NAMED_PATHS.to_owned(),
            Self::Texts(_) => "a text, or a list of texts".to_owned(),
            Self::Size(..) => "a size such as 512M, 2GiB or 64MB".to_owned(),
            Self::Duration(_, unit, _) => {
                format!("whole {} such as {}, or off", unit.name, unit.example)
            }
            Self::Count(_, min, max) => format!("a number from {min} to {max}"),
            Self::CountOrAuto(_, min, max) => format!("auto, or a number from {min} to {max}"),
            Self::Choice(_, choices) => {
                let choices: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                choices.join(" or ")
            }
            Self::Bool(_) => "true or false".to_owned(),
            Self::Path(_) => "a path".to_owned(),
            Self::PathOrWord(_, words) => format!("{} or a path", words.join(", ")),
            Self::Text(..) => "a text".to_owned(),
            Self::Secret(_) => "a text in quotes".to_owned(),
        }
    }
}

fn named_paths(value: &RawValue, folder: &Path) -> Result<Vec<NamedPath>, String> {
    let wrong = || format!("expected {EXPECTED_NAMED_PATHS}, found {}", value.describe());
    let texts = texts(value).ok_or_else(wrong)?;
    texts.iter().map(|text| NamedPath::parse(text, folder)).collect()
}

/// Returns the texts of a list, or the only text, if none is empty.
fn texts(value: &RawValue) -> Option<Vec<String>> {
    let texts = match value {
        RawValue::List(texts) => texts.clone(),
        RawValue::String(text) | RawValue::Untyped(text) => vec![text.clone()],
        _ => return None,
    };
    texts.iter().all(|text| !text.is_empty()).then_some(texts)
}

/// Returns the number of a value if it is within bounds.
fn number_within(value: &RawValue, min: u64, max: u64) -> Option<u64> {
    value.as_number().filter(|number| (min..=max).contains(number))
}

/// Returns which sizes are within bounds.
fn sizes_within(min: u64, max: u64) -> String {
    match (min, max) {
        (0, max) => format!("at most {}", format_size(max)),
        (min, MAX_SIZE) => format!("at least {}", format_size(min)),
        (min, max) => format!("from {} to {}", format_size(min), format_size(max)),
    }
}

/// The maximum size of a setting without a limit of its own: the server keeps sizes as `i64`.
pub(crate) const MAX_SIZE: u64 = i64::MAX as u64;

const EXPECTED_ADDRESSES: &str =
    "addresses such as [\"127.0.0.1:6379\", \"unix:/run/nuthatch.sock\"], or off";

const EXPECTED_NAMED_PATHS: &str = "NAME=PATH, or a list of such texts";

fn addresses(value: &RawValue, folder: &Path) -> Result<Vec<ListenAddress>, String> {
    let one;
    let texts = match value {
        RawValue::List(texts) => texts,
        RawValue::String(text) | RawValue::Untyped(text) => {
            one = [text.clone()];
            &one[..]
        }
        _ => return Err(format!("expected {EXPECTED_ADDRESSES}, found {}", value.describe())),
    };
    match texts {
        [text] if text == "off" => Ok(Vec::new()),
        texts if texts.iter().any(|text| text == "off") => {
            Err("expected off alone, or addresses, found off with others".to_owned())
        }
        texts => texts.iter().map(|text| ListenAddress::parse(text, folder)).collect(),
    }
}
