//! The types of settings: how values are parsed and formatted.

use super::listen_address::ListenAddress;
use super::raw_value::RawValue;
use super::values::{Secret, Settings};
use crate::arguments::{format_duration, format_size, parse_duration};
use nuthatch_units::parse_size;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the field of a setting.
pub(crate) type Field<T> = fn(&mut Settings) -> &mut T;

/// The choices of a setting, each with its meaning.
pub(crate) type Choices = &'static [(&'static str, &'static str)];

/// The type of a setting, with its field.
#[derive(Clone, Copy)]
pub(crate) enum SettingType {
    /// Addresses to listen at; `off` for none.
    Addresses(Field<Vec<ListenAddress>>),
    /// A number of bytes from `min` to `max`.
    Size { field: Field<u64>, min: u64, max: u64 },
    /// A duration of at most `max` whole units, or `off`, for which `CONFIG` has the number `off`.
    Duration { field: Field<Option<Duration>>, unit: Duration, max: u64, off: i64 },
    /// A number from `min` to `max`.
    Count { field: Field<u64>, min: u64, max: u64 },
    /// As `Count`, or `auto` for none.
    CountOrAuto { field: Field<Option<u64>>, min: u64, max: u64 },
    /// One of several words.
    Choice { field: Field<&'static str>, choices: Choices },
    /// True or false.
    Bool(Field<bool>),
    /// A file or folder.
    Path(Field<Option<PathBuf>>),
    /// A text, with a function that checks it.
    Text { field: Field<String>, check: fn(&str) -> Result<(), String> },
    /// A text that is never shown and has no flag.
    Secret(Field<Option<Secret>>),
}

/// The value of a setting, for TOML or JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownValue {
    Text(String),
    Number(u64),
    Bool(bool),
    List(Vec<String>),
    /// A secret value.
    Hidden,
    /// The setting has no value.
    Unset,
}

impl SettingType {
    /// Sets the field from a value. Relative paths are relative to the folder `from`.
    pub(crate) fn set(
        self,
        to: &mut Settings,
        value: &RawValue,
        from: &Path,
    ) -> Result<(), String> {
        let wrong = || format!("expected {}, found {}", self.expected(), value.describe());
        let text = || value.as_text().filter(|text| !text.is_empty());
        match self {
            Self::Addresses(field) => *field(to) = addresses(value, from)?,
            Self::Size { field, min, max } => {
                let size = match value {
                    RawValue::Integer(_) => value.as_number(),
                    _ => text().and_then(|text| parse_size(text).ok()),
                };
                let size = size.ok_or_else(wrong)?;
                if !(min..=max).contains(&size) {
                    let found = format_size(size);
                    return Err(format!("expected {}, found {found}", sizes_within(min, max)));
                }
                *field(to) = size;
            }
            Self::Duration { field, unit, max, .. } => {
                let duration = match value {
                    RawValue::Integer(0) => Some(Duration::ZERO),
                    _ => text().filter(|text| *text != "off").and_then(parse_duration),
                };
                let whole = |one: &Duration| one.as_nanos().is_multiple_of(unit.as_nanos());
                if text() != Some("off") && !duration.as_ref().is_some_and(whole) {
                    return Err(wrong());
                }
                let units = duration.map_or(0, |one| one.as_nanos() / unit.as_nanos());
                if units > u128::from(max) {
                    let found = value.describe();
                    let max = format!("{max} {}", named_unit(unit).0);
                    return Err(format!("expected at most {max}, or off, found {found}"));
                }
                *field(to) = duration;
            }
            Self::Count { field, min, max } => {
                let number = value.as_number().filter(|number| (min..=max).contains(number));
                *field(to) = number.ok_or_else(wrong)?;
            }
            Self::CountOrAuto { field, min, max } => {
                let number = value.as_number().filter(|number| (min..=max).contains(number));
                if number.is_none() && text() != Some("auto") {
                    return Err(wrong());
                }
                *field(to) = number;
            }
            Self::Choice { field, choices } => {
                let word = choices.iter().find(|(word, _)| text() == Some(*word));
                *field(to) = word.ok_or_else(wrong)?.0;
            }
            Self::Bool(field) => *field(to) = value.as_bool().ok_or_else(wrong)?,
            Self::Path(field) => *field(to) = Some(from.join(text().ok_or_else(wrong)?)),
            Self::Text { field, check } => {
                let text = text().ok_or_else(wrong)?;
                check(text)?;
                text.clone_into(field(to));
            }
            Self::Secret(field) => {
                // The message lacks the value, which may be a password without its quotes.
                let found = value.as_text().map_or("something else", |_| "nothing");
                let wrong = || format!("expected {}, found {found}", self.expected());
                *field(to) = Some(Secret(text().ok_or_else(wrong)?.to_owned()));
            }
        }
        Ok(())
    }

    /// Returns which values are expected, for messages.
    fn expected(self) -> String {
        match self {
            Self::Addresses(_) => EXPECTED_ADDRESSES.to_owned(),
            Self::Size { .. } => "a size such as 512M, 2GiB or 64MB".to_owned(),
            Self::Duration { unit, .. } => {
                let (units, example) = named_unit(unit);
                format!("whole {units} such as {example}, or off")
            }
            Self::Count { min, max, .. } => format!("a number from {min} to {max}"),
            Self::CountOrAuto { min, max, .. } => {
                format!("auto, or a number from {min} to {max}")
            }
            Self::Choice { choices, .. } => {
                let choices: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                choices.join(" or ")
            }
            Self::Bool(_) => "true or false".to_owned(),
            Self::Path(_) => "a path".to_owned(),
            Self::Text { .. } => "a text".to_owned(),
            Self::Secret(_) => "a text in quotes".to_owned(),
        }
    }

    /// Returns the current value.
    pub(crate) fn shown_value(self, of: &mut Settings) -> ShownValue {
        match self {
            Self::Addresses(field) => match field(of).as_slice() {
                [] => ShownValue::List(vec!["off".to_owned()]),
                listen_addresses => {
                    ShownValue::List(listen_addresses.iter().map(ListenAddress::absolute).collect())
                }
            },
            Self::Size { field, .. } => ShownValue::Text(format_size(*field(of))),
            Self::Duration { field, .. } => {
                ShownValue::Text(field(of).map_or_else(|| "off".to_owned(), format_duration))
            }
            Self::Count { field, .. } => ShownValue::Number(*field(of)),
            Self::CountOrAuto { field, .. } => {
                field(of).map_or_else(|| ShownValue::Text("auto".to_owned()), ShownValue::Number)
            }
            Self::Choice { field, .. } => ShownValue::Text((*field(of)).to_owned()),
            Self::Text { field, .. } => ShownValue::Text(field(of).clone()),
            Self::Bool(field) => ShownValue::Bool(*field(of)),
            Self::Path(field) => field(of).as_ref().map_or(ShownValue::Unset, |path| {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                ShownValue::Text(path.to_string_lossy().into_owned())
            }),
            Self::Secret(field) => {
                if field(of).is_some() {
                    ShownValue::Hidden
                } else {
                    ShownValue::Unset
                }
            }
        }
    }

    /// Converts a value of `CONFIG` to the value of a settings file.
    pub(crate) fn parse_config_text(self, text: &str) -> Option<RawValue> {
        let number = text.parse::<i64>().ok();
        match self {
            Self::Size { .. } => Some(RawValue::String(format_size(text.parse().ok()?))),
            Self::Duration { off, .. } if number == Some(off) => {
                Some(RawValue::String("off".to_owned()))
            }
            Self::Duration { unit, .. } => {
                let unit_ns = u64::try_from(unit.as_nanos()).ok()?;
                // A longer duration exceeds the lifetime of any server.
                let ns = u64::try_from(number?).ok()?.checked_mul(unit_ns);
                let text = ns.map_or_else(
                    || "off".to_owned(),
                    |ns| format_duration(Duration::from_nanos(ns)),
                );
                Some(RawValue::String(text))
            }
            Self::Count { .. } => number.map(RawValue::Integer),
            Self::Bool(_) => Some(RawValue::Bool(text == "yes")),
            _ => None,
        }
    }

    /// Returns the value for `CONFIG`. `None` for types that `CONFIG` does not have.
    pub(crate) fn to_config_text(self, of: &mut Settings) -> Option<String> {
        match self {
            Self::Duration { field, unit, off, .. } => {
                let units = |duration: Duration| duration.as_nanos() / unit.as_nanos();
                Some(field(of).map_or_else(|| off.to_string(), |one| units(one).to_string()))
            }
            Self::Size { field, .. } | Self::Count { field, .. } => Some(field(of).to_string()),
            Self::Bool(field) => Some(if *field(of) { "yes" } else { "no" }.to_owned()),
            Self::Path(field) => Some(field(of).as_ref()?.to_string_lossy().into_owned()),
            Self::Addresses(_)
            | Self::CountOrAuto { .. }
            | Self::Choice { .. }
            | Self::Text { .. }
            | Self::Secret(_) => None,
        }
    }
}

/// Returns the name of a unit of durations, and an example.
fn named_unit(unit: Duration) -> (&'static str, &'static str) {
    if unit == Duration::from_secs(1) { ("seconds", "30s") } else { ("microseconds", "10ms") }
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

fn addresses(value: &RawValue, from: &Path) -> Result<Vec<ListenAddress>, String> {
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
        texts => texts.iter().map(|text| ListenAddress::parse(text, from)).collect(),
    }
}
