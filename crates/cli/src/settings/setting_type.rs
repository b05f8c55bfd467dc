//! The kinds of settings: how each is read, and written.

use super::listen_address::Place;
use super::raw_value::Given;
use super::values::{Configuration, Secret};
use crate::arguments::{exact_duration, exact_size, parse_duration};
use nuthatch_units::parse_size;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A setting's place among all of them.
pub(crate) type Field<T> = fn(&mut Configuration) -> &mut T;

/// Words to choose from, and what each means.
pub(crate) type Words = &'static [(&'static str, &'static str)];

/// What a setting is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Addresses to listen at; none where it says `off`.
    Places(Field<Vec<Place>>),
    /// A number of bytes within bounds.
    Size { field: Field<u64>, min: u64, max: u64 },
    /// A duration in whole units, at most so many; none where it says `off`, for which Redis has a
    /// number.
    Duration { field: Field<Option<Duration>>, unit: Duration, max: u64, off: i64 },
    /// A number within bounds.
    Count { field: Field<u64>, least: u64, most: u64 },
    /// The same, or none where it says `auto`.
    CountOrAuto { field: Field<Option<u64>>, least: u64, most: u64 },
    /// One of some words.
    Choice { field: Field<&'static str>, words: Words },
    /// Whether something is so.
    Truth(Field<bool>),
    /// A file or folder.
    Path(Field<Option<PathBuf>>),
    /// A text that something is wrong with, or nothing.
    Text { field: Field<String>, check: fn(&str) -> Result<(), String> },
    /// A text that is shown to nobody and is no flag.
    Secret(Field<Option<Secret>>),
}

/// A setting's value, to be written in one notation or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Text(String),
    Number(u64),
    Truth(bool),
    List(Vec<String>),
    /// There is one, which nobody is to see.
    Hidden,
    /// There is none.
    Nothing,
}

impl Kind {
    /// Sets a value as it was given. Paths are from the folder `from` on.
    pub(crate) fn set(
        self,
        to: &mut Configuration,
        given: &Given,
        from: &Path,
    ) -> Result<(), String> {
        let wrong = || format!("expected {}, found {}", self.expected(), given.found());
        let text = || given.text().filter(|text| !text.is_empty());
        match self {
            Self::Places(field) => *field(to) = places(given, from)?,
            Self::Size { field, min, max } => {
                let size = match given {
                    Given::Integer(_) => given.number(),
                    _ => text().and_then(|text| parse_size(text).ok()),
                };
                let size = size.ok_or_else(wrong)?;
                if !(min..=max).contains(&size) {
                    let found = exact_size(size);
                    return Err(format!("expected {}, found {found}", sizes_within(min, max)));
                }
                *field(to) = size;
            }
            Self::Duration { field, unit, max, .. } => {
                let duration = match given {
                    Given::Integer(0) => Some(Duration::ZERO),
                    _ => text().filter(|text| *text != "off").and_then(parse_duration),
                };
                let whole = |one: &Duration| one.as_nanos().is_multiple_of(unit.as_nanos());
                if text() != Some("off") && !duration.as_ref().is_some_and(whole) {
                    return Err(wrong());
                }
                let units = duration.map_or(0, |one| one.as_nanos() / unit.as_nanos());
                if units > u128::from(max) {
                    let found = given.found();
                    let most = format!("{max} {}", named_unit(unit).0);
                    return Err(format!("expected at most {most}, or off, found {found}"));
                }
                *field(to) = duration;
            }
            Self::Count { field, least, most } => {
                let number = given.number().filter(|number| (least..=most).contains(number));
                *field(to) = number.ok_or_else(wrong)?;
            }
            Self::CountOrAuto { field, least, most } => {
                let number = given.number().filter(|number| (least..=most).contains(number));
                if number.is_none() && text() != Some("auto") {
                    return Err(wrong());
                }
                *field(to) = number;
            }
            Self::Choice { field, words } => {
                let word = words.iter().find(|(word, _)| text() == Some(*word));
                *field(to) = word.ok_or_else(wrong)?.0;
            }
            Self::Truth(field) => *field(to) = given.truth().ok_or_else(wrong)?,
            Self::Path(field) => *field(to) = Some(from.join(text().ok_or_else(wrong)?)),
            Self::Text { field, check } => {
                let text = text().ok_or_else(wrong)?;
                check(text)?;
                text.clone_into(field(to));
            }
            Self::Secret(field) => {
                // Told without the value, which may be a password that lacks its quotes.
                let found = given.text().map_or("something else", |_| "nothing");
                let wrong = || format!("expected {}, found {found}", self.expected());
                *field(to) = Some(Secret(text().ok_or_else(wrong)?.to_owned()));
            }
        }
        Ok(())
    }

    /// What is expected as a value.
    fn expected(self) -> String {
        match self {
            Self::Places(_) => PLACES.to_owned(),
            Self::Size { .. } => "a size such as 512M, 2GiB or 64MB".to_owned(),
            Self::Duration { unit, .. } => {
                let (units, example) = named_unit(unit);
                format!("whole {units} such as {example}, or off")
            }
            Self::Count { least, most, .. } => format!("a number from {least} to {most}"),
            Self::CountOrAuto { least, most, .. } => {
                format!("auto, or a number from {least} to {most}")
            }
            Self::Choice { words, .. } => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                words.join(" or ")
            }
            Self::Truth(_) => "true or false".to_owned(),
            Self::Path(_) => "a path".to_owned(),
            Self::Text { .. } => "a text".to_owned(),
            Self::Secret(_) => "a text in quotes".to_owned(),
        }
    }

    /// The value there is.
    pub(crate) fn shown(self, of: &mut Configuration) -> Shown {
        match self {
            Self::Places(field) => match field(of).as_slice() {
                [] => Shown::List(vec!["off".to_owned()]),
                places => Shown::List(places.iter().map(Place::absolute).collect()),
            },
            Self::Size { field, .. } => Shown::Text(exact_size(*field(of))),
            Self::Duration { field, .. } => {
                Shown::Text(field(of).map_or_else(|| "off".to_owned(), exact_duration))
            }
            Self::Count { field, .. } => Shown::Number(*field(of)),
            Self::CountOrAuto { field, .. } => {
                field(of).map_or_else(|| Shown::Text("auto".to_owned()), Shown::Number)
            }
            Self::Choice { field, .. } => Shown::Text((*field(of)).to_owned()),
            Self::Text { field, .. } => Shown::Text(field(of).clone()),
            Self::Truth(field) => Shown::Truth(*field(of)),
            Self::Path(field) => field(of).as_ref().map_or(Shown::Nothing, |path| {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                Shown::Text(path.to_string_lossy().into_owned())
            }),
            Self::Secret(field) => {
                if field(of).is_some() {
                    Shown::Hidden
                } else {
                    Shown::Nothing
                }
            }
        }
    }

    /// The value that `CONFIG` has as this text, as it could have been given.
    pub(crate) fn given_by_redis(self, text: &str) -> Option<Given> {
        let number = text.parse::<i64>().ok();
        match self {
            Self::Size { .. } => Some(Given::Text(exact_size(text.parse().ok()?))),
            Self::Duration { off, .. } if number == Some(off) => {
                Some(Given::Text("off".to_owned()))
            }
            Self::Duration { unit, .. } => {
                let unit_ns = u64::try_from(unit.as_nanos()).ok()?;
                // More is longer than any server runs.
                let ns = u64::try_from(number?).ok()?.checked_mul(unit_ns);
                let text = ns.map_or_else(
                    || "off".to_owned(),
                    |ns| exact_duration(Duration::from_nanos(ns)),
                );
                Some(Given::Text(text))
            }
            Self::Count { .. } => number.map(Given::Integer),
            Self::Truth(_) => Some(Given::Truth(text == "yes")),
            _ => None,
        }
    }

    /// The value as `CONFIG` has it, of what it can have.
    pub(crate) fn redis(self, of: &mut Configuration) -> Option<String> {
        match self {
            Self::Duration { field, unit, off, .. } => {
                let units = |duration: Duration| duration.as_nanos() / unit.as_nanos();
                Some(field(of).map_or_else(|| off.to_string(), |one| units(one).to_string()))
            }
            Self::Size { field, .. } | Self::Count { field, .. } => Some(field(of).to_string()),
            Self::Truth(field) => Some(if *field(of) { "yes" } else { "no" }.to_owned()),
            Self::Path(field) => Some(field(of).as_ref()?.to_string_lossy().into_owned()),
            Self::Places(_)
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
        (0, max) => format!("at most {}", exact_size(max)),
        (min, MAX_SIZE) => format!("at least {}", exact_size(min)),
        (min, max) => format!("from {} to {}", exact_size(min), exact_size(max)),
    }
}

/// The maximum size of a setting without a limit of its own: the server keeps sizes as `i64`.
pub(crate) const MAX_SIZE: u64 = i64::MAX as u64;

const PLACES: &str = "addresses such as [\"127.0.0.1:6379\", \"unix:/run/nuthatch.sock\"], or off";

fn places(given: &Given, from: &Path) -> Result<Vec<Place>, String> {
    let one;
    let texts = match given {
        Given::List(texts) => texts,
        Given::Text(text) | Given::Word(text) => {
            one = [text.clone()];
            &one[..]
        }
        _ => return Err(format!("expected {PLACES}, found {}", given.found())),
    };
    match texts {
        [text] if text == "off" => Ok(Vec::new()),
        texts if texts.iter().any(|text| text == "off") => {
            Err("expected off alone, or addresses, found off with others".to_owned())
        }
        texts => texts.iter().map(|text| Place::parse(text, from)).collect(),
    }
}
