//! What can go wrong, told with the place, what was expected and what was found.

use crate::value::ValueType;
use std::fmt;
use std::path::{Path, PathBuf};

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate. A missing key is not one: lookups return `None`.
///
/// Variants box what they hold, because an error is part of the result of every lookup.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused: the file is missing, the disk is full, and so on.
    Io(Box<IoError>),
    /// The file is not a snapshot at all: too short, or its first bytes are others.
    NotASnapshot(Box<Damage>),
    /// The file was written by a newer version, or uses a feature this build lacks.
    Unsupported(Box<Damage>),
    /// The file is a snapshot, and its bytes contradict the format.
    Corrupt(Box<Damage>),
    /// The key holds a value of another type than the one asked for.
    WrongType {
        /// The type the caller asked for.
        asked: ValueType,
        /// The type of the stored value.
        found: ValueType,
    },
    /// The file was truncated, or the device could not read it, while it was mapped. Reported by
    /// builds with the feature `sigbus` only.
    Unreadable(Box<PathBuf>),
    /// The file was published under its name, but its folder could not be synced: a power failure
    /// may bring the old file back.
    NotDurable(Box<IoError>),
    /// The same key was given twice and duplicates are errors.
    Duplicate(Box<Duplicate>),
    /// Something given to the writer is beyond a limit of the format.
    Limit(Box<Limit>),
}

/// An operating-system error with the file and the act it hit.
#[derive(Debug)]
pub struct IoError {
    /// The file.
    pub path: PathBuf,
    /// What was being done, such as `open` or `write`.
    pub act: &'static str,
    /// What the system said.
    pub source: std::io::Error,
}

/// A place in a file whose bytes are not what they must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, in bytes from its start.
    pub offset: u64,
    /// The value that the format requires; for a checksum or length, the value in the file.
    pub expected: String,
    /// The value that was found; for a checksum or length, the computed value.
    pub found: String,
}

/// A key that was given twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: Vec<u8>,
    /// The [`origin`](crate::Batch::push_from) of its first row.
    pub first: u64,
    /// The origin of the next row with the same key.
    pub second: u64,
}

/// Something beyond a limit of the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// What is limited, such as `key length`.
    pub what: &'static str,
    /// The greatest that is allowed.
    pub most: u64,
    /// What was given.
    pub found: u64,
}

impl Error {
    #[cold]
    pub(crate) fn io(path: &Path, act: &'static str, source: std::io::Error) -> Self {
        Self::Io(Box::new(IoError { path: path.to_owned(), act, source }))
    }

    #[cold]
    pub(crate) fn not_durable(path: &Path, source: std::io::Error) -> Self {
        Self::NotDurable(Box::new(IoError {
            path: path.to_owned(),
            act: "sync its folder",
            source,
        }))
    }

    #[cold]
    pub(crate) fn limit(what: &'static str, most: u64, found: u64) -> Self {
        Self::Limit(Box::new(Limit { what, most, found }))
    }

    /// A short name that stays the same between versions, for programs; `testdata/errors.csv`
    /// lists them for all languages.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "io",
            Self::NotASnapshot(_) => "not-a-snapshot",
            Self::Unsupported(_) => "unsupported",
            Self::Corrupt(_) => "corrupt",
            Self::WrongType { .. } => "wrong-type",
            Self::Unreadable(_) => "unreadable",
            Self::NotDurable(_) => "not-durable",
            Self::Duplicate(_) => "duplicate",
            Self::Limit(_) => "limit",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => write!(f, "{}: {}: {}", e.path.display(), e.act, e.source),
            Self::NotASnapshot(d) => write!(f, "not a snapshot: {d}"),
            Self::Unsupported(d) => write!(f, "not supported: {d}"),
            Self::Corrupt(d) => write!(f, "damaged file: {d}"),
            Self::WrongType { asked, found } => {
                write!(f, "wrong type: asked for {asked}, the value is {found}")
            }
            Self::Unreadable(path) => write!(
                f,
                "{}: the file was truncated or could not be read while it was mapped",
                path.display()
            ),
            Self::NotDurable(e) => write!(
                f,
                "{}: published, but may not survive a power failure: {}: {}",
                e.path.display(),
                e.act,
                e.source
            ),
            Self::Duplicate(d) => write!(
                f,
                "duplicate key \"{}\": rows {} and {}",
                d.key.escape_ascii(),
                d.first,
                d.second
            ),
            Self::Limit(l) => write!(f, "{}: at most {}, found {}", l.what, l.most, l.found),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, expected, found } = self;
        write!(f, "{}: at byte {offset}: expected {expected}, found {found}", path.display())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(e) | Self::NotDurable(e) => Some(&e.source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = include_str!("../../../testdata/errors.csv");

    /// One error of each kind. A new kind has no arm below until it is added here.
    fn one_of_each() -> Vec<Error> {
        let damage = || {
            let (expected, found) = (String::new(), String::new());
            Box::new(Damage { path: PathBuf::new(), offset: 0, expected, found })
        };
        let (asked, found) = (ValueType::I64, ValueType::String);
        let errors = vec![
            Error::io(Path::new("a.nut"), "open", std::io::ErrorKind::NotFound.into()),
            Error::NotASnapshot(damage()),
            Error::Unsupported(damage()),
            Error::Corrupt(damage()),
            Error::WrongType { asked, found },
            Error::Unreadable(Box::default()),
            Error::not_durable(Path::new("a.nut"), std::io::ErrorKind::Other.into()),
            Error::Duplicate(Box::new(Duplicate { key: Vec::new(), first: 0, second: 1 })),
            Error::limit("key length", 65_535, 65_536),
        ];
        for error in &errors {
            match error {
                Error::Io(_)
                | Error::NotASnapshot(_)
                | Error::Unsupported(_)
                | Error::Corrupt(_)
                | Error::WrongType { .. }
                | Error::Unreadable(_)
                | Error::NotDurable(_)
                | Error::Duplicate(_)
                | Error::Limit(_) => {}
            }
        }
        errors
    }

    #[test]
    fn the_table_for_all_languages_has_every_code() {
        let mut lines = TABLE.lines();
        assert_eq!(lines.next(), Some("code,meaning,what to do"));
        let rows: Vec<_> =
            lines.map(|line| line.split_once(",\"").expect("three columns")).collect();
        let listed: Vec<_> = rows.iter().map(|(code, _)| *code).collect();
        let codes: Vec<_> = one_of_each().iter().map(Error::code).collect();
        assert_eq!(listed, codes);
        for (code, rest) in rows {
            let (meaning, action) = rest.split_once("\",\"").expect("three columns");
            assert!(!meaning.is_empty() && action.len() > 1, "{code}");
        }
    }
}
