//! Errors, with the file, the offset, what was expected and what was found.

use crate::values::ValueType;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

/// A result with [`Error`] as its error.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate. A missing key is not an error: lookups return `None`.
///
/// Variants box their contents to keep the error small: it is part of the result of every lookup.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed: the file is missing, the disk is full, and so on.
    Io(Box<IoError>),
    /// The file is not a snapshot: it does not begin with the magic bytes.
    NotASnapshot(Box<Damage>),
    /// The file was written by a newer version, or uses a feature that this build lacks, or the
    /// bytes of a manifest were opened without its path.
    Unsupported(Box<Damage>),
    /// The file is a snapshot, but its bytes contradict the format.
    Corrupt(Box<Damage>),
    /// The value of the key has another type than the requested one.
    WrongType {
        /// The type that the caller requested.
        requested: ValueType,
        /// The type of the stored value.
        found: ValueType,
    },
    /// The file at this path was truncated, or the device failed to read it, while it was mapped.
    /// Only builds with the feature `sigbus` return this.
    Unreadable(Box<PathBuf>),
    /// The new file replaced the old one at its path, but the sync of the folder failed: a power
    /// failure may restore the old file.
    NotDurable(Box<IoError>),
    /// Two rows have the same key, and duplicates are errors.
    Duplicate(Box<Duplicate>),
    /// Input or options of the writer exceed a limit of the format or of the memory budget.
    Limit(Box<Limit>),
}

/// A failed system call, with the file and the operation.
#[derive(Debug)]
pub struct IoError {
    /// The file.
    pub path: PathBuf,
    /// The operation, such as `open` or `write`.
    pub operation: &'static str,
    /// The error of the system.
    pub source: std::io::Error,
}

/// Bytes of a file that contradict the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The offset in bytes from the start of the file.
    pub offset: u64,
    /// The value that the format requires. For a checksum, or a length that follows from other
    /// bytes, the value that is stored in the file.
    pub expected: String,
    /// The value that was found. For a checksum, or a length that follows from other bytes, the
    /// computed value.
    pub found: String,
}

/// Two rows with the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: Vec<u8>,
    /// The [position](crate::Batch::push_with_position) of the first row with this key.
    pub first: u64,
    /// The position of the next row with the same key.
    pub second: u64,
}

/// A quantity of the input, or an option, that exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The limited quantity, such as `key length in bytes`.
    pub what: &'static str,
    /// The maximum value.
    pub max: u64,
    /// The value that exceeds it.
    pub found: u64,
}

impl Error {
    #[cold]
    pub(crate) fn io(path: &Path, operation: &'static str, source: std::io::Error) -> Self {
        Self::Io(Box::new(IoError { path: path.to_owned(), operation, source }))
    }

    #[cold]
    pub(crate) fn not_durable(path: &Path, source: std::io::Error) -> Self {
        Self::NotDurable(Box::new(IoError {
            path: path.to_owned(),
            operation: "sync its folder",
            source,
        }))
    }

    #[cold]
    pub(crate) fn limit(what: &'static str, max: u64, found: u64) -> Self {
        Self::Limit(Box::new(Limit { what, max, found }))
    }

    /// Returns the error for bytes that contradict the format.
    #[cold]
    pub(crate) fn corrupt(
        path: &Path,
        offset: u64,
        expected: impl Display,
        found: impl Display,
    ) -> Self {
        Self::Corrupt(Damage::boxed(path, offset, expected, found))
    }

    /// Returns the error for a checksum mismatch. `offset` is that of the stored checksum.
    #[cold]
    pub(crate) fn checksum(
        path: &Path,
        offset: u64,
        what: &str,
        (stored, found): (u64, u64),
    ) -> Self {
        let expected = format!("the stored checksum {stored:016x} of {what}");
        Self::corrupt(path, offset, expected, format!("{found:016x}"))
    }

    /// Returns the code of the error: a short name for programs, the same in all versions and
    /// languages. `testdata/errors.csv` lists all codes.
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
            Self::Io(e) => write!(f, "{}: {}: {}", e.path.display(), e.operation, e.source),
            Self::NotASnapshot(d) => write!(f, "not a snapshot: {d}"),
            Self::Unsupported(d) => write!(f, "not supported: {d}"),
            Self::Corrupt(d) => write!(f, "damaged file: {d}"),
            Self::WrongType { requested, found } => {
                write!(f, "wrong type: requested {requested}, found {found}")
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
                e.operation,
                e.source
            ),
            Self::Duplicate(d) => write!(
                f,
                "duplicate key \"{}\": rows {} and {}",
                d.key.escape_ascii(),
                d.first,
                d.second
            ),
            Self::Limit(l) => write!(f, "{}: at most {}, found {}", l.what, l.max, l.found),
        }
    }
}

impl Damage {
    /// Returns the damage, boxed for an [`Error`].
    pub(crate) fn boxed(
        path: &Path,
        offset: u64,
        expected: impl Display,
        found: impl Display,
    ) -> Box<Self> {
        let (expected, found) = (expected.to_string(), found.to_string());
        Box::new(Self { path: path.to_owned(), offset, expected, found })
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

    /// Returns one error of each variant. The `match` does not compile without a new variant.
    fn one_of_each() -> Vec<Error> {
        let damage = || Damage::boxed(Path::new("a.nut"), 0, "", "");
        let (requested, found) = (ValueType::I64, ValueType::String);
        let errors = vec![
            Error::io(Path::new("a.nut"), "open", std::io::ErrorKind::NotFound.into()),
            Error::NotASnapshot(damage()),
            Error::Unsupported(damage()),
            Error::Corrupt(damage()),
            Error::WrongType { requested, found },
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
