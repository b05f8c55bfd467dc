//! Errors, with the place, what was expected and what was found.

use crate::file_names::DATA;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate. A missing key is not an error: lookups return `None`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed: the folder is missing, the disk is full, and so on.
    Io(Box<IoError>),
    /// The file is not an LMDB file, or has a version that this build does not support.
    NotAStore(Box<Damage>),
    /// The file is an LMDB file, and its bytes contradict the format.
    Corrupt(Box<Damage>),
    /// This process has the store open already. Clone that handle.
    AlreadyOpen(PathBuf),
    /// Another process has the store open, and the operation needs exclusive access.
    InUse(PathBuf),
    /// Another process has the store open with an LMDB version whose lock file differs.
    OtherLocks(PathBuf),
    /// The store is full: the map cannot grow.
    Full {
        /// The current size of the map in bytes, which the file cannot exceed.
        max: u64,
        /// Why the store cannot grow.
        cause: FullCause,
    },
    /// All reader slots are in use by open read transactions, in this and other processes.
    ReadersFull {
        /// The number of reader slots.
        max: u32,
    },
    /// A transaction changed more pages than LMDB can track (about 128 Ki).
    TransactionFull,
    /// An option is out of range.
    Options {
        /// The option's name.
        option: &'static str,
        /// The values that the option accepts.
        expected: String,
        /// The value of the option.
        found: String,
    },
    /// A key, a name or a value is too long or too short.
    Length {
        /// `key`, `table name` or `value`.
        what: &'static str,
        /// The minimum length in bytes.
        min: u64,
        /// The maximum length in bytes.
        max: u64,
        /// The actual length in bytes.
        found: u64,
    },
    /// A table does not support the operation, or does not exist.
    Table {
        /// The table's name.
        name: String,
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// The store is open for reading only.
    ReadOnly,
    /// The store was closed.
    Closed,
    /// The handle or transaction belongs to the parent process. This process is a child made by
    /// `fork`, and must open the store itself.
    Forked,
    /// A write to the disk failed. The store must be closed and opened again.
    Broken,
    /// An appended key is not above all keys of its table.
    Unordered {
        /// The key.
        key: Vec<u8>,
    },
    /// A watch needs changes that were dropped.
    FellBehind {
        /// The number of the next change of the watch.
        wanted: u64,
        /// The number of the oldest kept change.
        oldest: u64,
    },
    /// A watch was started after a change that this store does not have yet.
    Ahead {
        /// The number of the change that the watch was to start after.
        after: u64,
        /// The number of the newest change.
        newest: u64,
    },
    /// The store keeps no changes: see [`Store::keep_changes`](crate::Store::keep_changes).
    NoChangesKept,
    /// A condition of a batch was not met, so none of its writes was done.
    ConditionUnmet {
        /// The index of the condition among the writes and conditions of the batch, from 0.
        write: usize,
    },
    /// The group of a batch was not committed, for this reason.
    Group(Arc<Error>),
    /// The queue of a batch writer is full.
    QueueFull,
    /// A codec cannot encode or decode a key or value, or a record of the store is malformed: a
    /// stamp, a setting, a kept change or a time of expiry.
    Decode {
        /// What the codec expects.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// Another error of LMDB.
    Lmdb {
        /// The operation that failed.
        operation: &'static str,
        /// LMDB's message.
        message: String,
    },
}

/// Why a store cannot grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullCause {
    /// It has reached [`Options::limit`](crate::Options::limit).
    Limit,
    /// A transaction of this process stayed open for longer than
    /// [`Options::growth_patience`](crate::Options::growth_patience), and the map cannot move while
    /// one is open.
    Transactions,
    /// The system provides no more address space.
    Addresses,
}

// `IoError` and `Damage` are also in nuthatch-snapshot. Engines import nothing from each other.

/// A failed system call, with the file and the operation.
#[derive(Debug)]
pub struct IoError {
    /// The file or folder.
    pub path: PathBuf,
    /// The operation, such as `open` or `commit`.
    pub operation: &'static str,
    /// The error of the system.
    pub source: std::io::Error,
}

/// A place in a file whose bytes contradict the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// What the format requires.
    pub expected: String,
    /// What the file has.
    pub found: String,
}

impl Error {
    #[cold]
    pub(crate) fn io(path: &Path, operation: &'static str, source: std::io::Error) -> Self {
        Self::Io(Box::new(IoError { path: path.to_owned(), operation, source }))
    }

    #[cold]
    pub(crate) fn table(name: &str, expected: &'static str, found: impl Into<String>) -> Self {
        Self::Table { name: name.to_owned(), expected, found: found.into() }
    }

    #[cold]
    pub(crate) fn decode(expected: &'static str, found: impl Into<String>) -> Self {
        Self::Decode { expected, found: found.into() }
    }

    /// Converts an error of heed or LMDB.
    #[cold]
    pub(crate) fn of(path: &Path, operation: &'static str, error: heed::Error) -> Self {
        use heed::MdbError as Mdb;
        let corrupt = |expected: &str, found: &str| {
            let (expected, found) = (expected.to_owned(), found.to_owned());
            Self::Corrupt(Box::new(Damage { path: path.to_owned(), offset: 0, expected, found }))
        };
        match error {
            heed::Error::Io(source) => Self::io(path, operation, source),
            heed::Error::EnvAlreadyOpened => Self::AlreadyOpen(path.to_owned()),
            heed::Error::Mdb(Mdb::Panic) => Self::Broken,
            heed::Error::Mdb(Mdb::VersionMismatch) => Self::OtherLocks(path.to_owned()),
            heed::Error::Mdb(Mdb::TxnFull) => Self::TransactionFull,
            heed::Error::Mdb(Mdb::Corrupted) => corrupt("a page of the right kind", "another kind"),
            heed::Error::Mdb(Mdb::PageNotFound) => corrupt("a page within the file", "none"),
            error => Self::Lmdb { operation, message: error.to_string() },
        }
    }

    /// Returns whether a retry of the same read may succeed soon, because the system or other
    /// readers have what it needs at the moment. Other errors persist until the store is opened
    /// again or its files are repaired.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Io(_) | Self::Full { .. } | Self::ReadersFull { .. })
    }

    /// Returns a copy of the error, for another caller that receives it.
    pub(crate) fn copy(&self) -> Self {
        match self {
            Self::Io(e) => {
                let code = e.source.raw_os_error();
                let source = code.map_or_else(
                    || std::io::Error::new(e.source.kind(), e.source.to_string()),
                    std::io::Error::from_raw_os_error,
                );
                Self::io(&e.path, e.operation, source)
            }
            Self::NotAStore(damage) => Self::NotAStore(damage.clone()),
            Self::Corrupt(damage) => Self::Corrupt(damage.clone()),
            Self::Full { max, cause } => Self::Full { max: *max, cause: *cause },
            Self::TransactionFull => Self::TransactionFull,
            Self::Length { what, min, max, found } => {
                Self::Length { what, min: *min, max: *max, found: *found }
            }
            Self::Table { name, expected, found } => {
                Self::Table { name: name.clone(), expected, found: found.clone() }
            }
            Self::ReadOnly => Self::ReadOnly,
            Self::Closed => Self::Closed,
            Self::Forked => Self::Forked,
            Self::Broken => Self::Broken,
            Self::ConditionUnmet { write } => Self::ConditionUnmet { write: *write },
            Self::Group(cause) => Self::Group(Arc::clone(cause)),
            Self::Decode { expected, found } => Self::decode(expected, found.clone()),
            Self::Lmdb { operation, message } => Self::Lmdb { operation, message: message.clone() },
            // Writes of a batch do not fail with other errors.
            other => Self::Lmdb { operation: "write", message: other.to_string() },
        }
    }

    /// Returns a short name for programs, which is the same in all versions and languages: see
    /// `testdata/store/errors.csv`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "io",
            Self::NotAStore(_) => "not-a-store",
            Self::Corrupt(_) => "corrupt",
            Self::AlreadyOpen(_) => "already-open",
            Self::InUse(_) => "in-use",
            Self::OtherLocks(_) => "other-locks",
            Self::Full { .. } => "full",
            Self::ReadersFull { .. } => "readers-full",
            Self::TransactionFull => "transaction-full",
            Self::Options { .. } => "options",
            Self::Length { .. } => "length",
            Self::Table { .. } => "table",
            Self::ReadOnly => "read-only",
            Self::Closed | Self::Forked => "closed",
            Self::Broken => "broken",
            Self::Unordered { .. } => "unordered",
            Self::FellBehind { .. } => "fell-behind",
            Self::Ahead { .. } => "ahead",
            Self::NoChangesKept => "no-changes-kept",
            Self::ConditionUnmet { .. } => "condition-unmet",
            Self::Group(_) => "group",
            Self::QueueFull => "queue-full",
            Self::Decode { .. } => "decode",
            Self::Lmdb { .. } => "lmdb",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => e.fmt(f),
            Self::NotAStore(d) => write!(f, "not a store: {d}"),
            Self::Corrupt(d) => write!(f, "damaged store: {d}"),
            Self::AlreadyOpen(path) => {
                write!(
                    f,
                    "{}: this process has it open already: use that handle, or close it first",
                    path.display()
                )
            }
            Self::InUse(path) => {
                write!(f, "{}: another process has it open: close it there first", path.display())
            }
            Self::OtherLocks(path) => write!(
                f,
                "{}: another program has it open with a version of LMDB that uses different locks: \
                 close that program first",
                path.display()
            ),
            Self::Full { max, cause } => write!(f, "the store is full at {max} bytes: {cause}"),
            Self::ReadersFull { max } => {
                write!(
                    f,
                    "all {max} reader slots are in use: end read transactions, or open the store \
                     with more `readers`"
                )
            }
            Self::TransactionFull => {
                f.write_str("the transaction changed too many pages: split it into several")
            }
            Self::Options { option, expected, found } => {
                write!(f, "{option}: expected {expected}, found {found}")
            }
            Self::Length { what, min, max, found } => {
                write!(f, "{what}: expected {min} to {max} bytes, found {found}")
            }
            Self::Table { name, expected, found } => {
                write!(f, "table \"{}\": expected {expected}, found {found}", name.escape_debug())
            }
            Self::Group(cause) => write!(f, "the group was not committed: {cause}"),
            Self::Decode { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::Lmdb { operation, message } => write!(f, "{operation}: {message}"),
            other => other.fmt_state(f),
        }
    }
}

impl Error {
    /// Formats errors about the state of a store, a watch or a queue.
    fn fmt_state(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("the store is open for reading only"),
            Self::Closed => f.write_str("the store is closed"),
            Self::Forked => f.write_str(
                "the store was opened before this process was forked: open it again here",
            ),
            Self::Broken => {
                f.write_str("a write to the disk failed: close the store and open it again")
            }
            Self::Unordered { key } => write!(
                f,
                "append: expected a key above all others, found \"{}\"",
                key.escape_ascii()
            ),
            Self::FellBehind { wanted, oldest } => write!(
                f,
                "the watch fell behind: it needs change {wanted}, and {oldest} is the oldest kept; \
                 scan the table, then watch after the sequence number of the scan"
            ),
            Self::Ahead { after, newest } => write!(
                f,
                "the watch cannot start after change {after}: the newest change of this store is \
                 {newest}"
            ),
            Self::NoChangesKept => f.write_str(
                "the store keeps no changes to watch: set their number with `keep_changes`, with \
                 --keep N of \"nuthatch store watch\", or with --keep-changes N of \"nuthatch \
                 store serve\"",
            ),
            Self::ConditionUnmet { write } => {
                write!(
                    f,
                    "the condition at index {write} of the batch was not met; nothing was written"
                )
            }
            Self::QueueFull => {
                f.write_str("the queue of the batch writer is full: wait for acknowledgements")
            }
            // `fmt` formats all others.
            _ => f.write_str(self.code()),
        }
    }
}

impl IoError {
    /// Returns the folder if the error is that it has no store.
    fn folder_without_store(&self) -> Option<&Path> {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        let is_data = self.path.file_name().is_some_and(|name| name == DATA);
        let is_absent = matches!(self.source.kind(), NotFound | NotADirectory);
        self.path.parent().filter(|_| is_data && is_absent && self.operation == "open")
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(folder) = self.folder_without_store() else {
            return write!(f, "{}: {}: {}", self.path.display(), self.operation, self.source);
        };
        if folder.exists() && !folder.is_dir() {
            return write!(
                f,
                "{}: expected the folder of a store, found a file; give another path: \"nuthatch \
                 store put\" and \"nuthatch store load\" create a store in a new folder",
                folder.display()
            );
        }
        let found = if folder.is_dir() { "a folder without it" } else { "nothing" };
        write!(
            f,
            "{}: expected the folder of a store, with the file {DATA}, found {found}; \"nuthatch \
             store put\" and \"nuthatch store load\" create one, as opening it with `create` does",
            folder.display()
        )
    }
}

impl fmt::Display for FullCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit => "it has reached its limit",
            Self::Transactions => "it cannot grow while transactions stay open",
            Self::Addresses => "the system provides no more address space",
        })
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
            Self::Io(e) => Some(&e.source),
            Self::Group(cause) => Some(cause),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = include_str!("../../../testdata/store/errors.csv");

    fn one_of_each() -> Vec<Error> {
        let damage = || {
            let (expected, found) = (String::new(), String::new());
            Box::new(Damage { path: PathBuf::new(), offset: 0, expected, found })
        };
        vec![
            Error::io(Path::new("a"), "open", std::io::ErrorKind::NotFound.into()),
            Error::NotAStore(damage()),
            Error::Corrupt(damage()),
            Error::AlreadyOpen(PathBuf::new()),
            Error::InUse(PathBuf::new()),
            Error::OtherLocks(PathBuf::new()),
            Error::Full { max: 1, cause: FullCause::Limit },
            Error::ReadersFull { max: 1 },
            Error::TransactionFull,
            Error::Options { option: "limit", expected: String::new(), found: String::new() },
            Error::Length { what: "key", min: 1, max: 511, found: 0 },
            Error::table("a", "a table", "none"),
            Error::ReadOnly,
            Error::Closed,
            Error::Forked,
            Error::Broken,
            Error::Unordered { key: Vec::new() },
            Error::FellBehind { wanted: 1, oldest: 2 },
            Error::Ahead { after: 2, newest: 1 },
            Error::NoChangesKept,
            Error::ConditionUnmet { write: 0 },
            Error::Group(Arc::new(Error::TransactionFull)),
            Error::QueueFull,
            Error::decode("an integer", "nothing"),
            Error::Lmdb { operation: "get", message: "no reason".to_owned() },
        ]
    }

    #[test]
    fn the_table_for_all_languages_has_every_code() {
        let mut lines = TABLE.lines();
        assert_eq!(lines.next(), Some("code,meaning,what to do"));
        let rows: Vec<_> =
            lines.map(|line| line.split_once(",\"").expect("three columns")).collect();
        let listed: Vec<_> = rows.iter().map(|(code, _)| *code).collect();
        let mut codes: Vec<_> = one_of_each().iter().map(Error::code).collect();
        // `Closed` and `Forked` share a code.
        codes.dedup();
        assert_eq!(listed, codes);
        for (code, rest) in rows {
            let (meaning, action) = rest.split_once("\",\"").expect("three columns");
            assert!(!meaning.is_empty() && action.len() > 1, "{code}");
        }
    }

    #[test]
    fn the_error_for_a_path_without_a_store_says_how_to_create_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "no store").expect("a file");
        for (path, found) in [
            (folder.path().join("none"), "found nothing;"),
            (folder.path().to_owned(), "found a folder without it;"),
            (file, "found a file;"),
        ] {
            for read_only in [false, true] {
                let options = crate::Options::new().create(false).read_only(read_only);
                let error = crate::Store::open(&path, &options).expect_err("no store");
                let text = error.to_string();
                assert_eq!(error.code(), "io");
                assert!(text.starts_with(&format!("{}: expected", path.display())), "{text}");
                for part in [found, "\"nuthatch store put\"", "\"nuthatch store load\""] {
                    assert!(text.contains(part), "{text}");
                }
            }
        }
    }

    #[test]
    fn every_error_has_a_text_of_its_own() {
        for error in one_of_each() {
            assert_ne!(error.to_string(), error.code());
            assert!(error.to_string().len() > 5, "{error}");
        }
    }
}
