//! Errors of this crate, and damage in files.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate. Damage in an item file or a removal log is not an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    Io {
        /// The operation, such as `write`.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An option is out of range.
    Options {
        /// The name of the option.
        option: &'static str,
        /// The allowed values.
        expected: String,
        /// The value.
        found: u64,
    },
    /// The path is not a folder.
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// Another process, or another open tier of this process, uses the folder.
    InUse {
        /// The folder.
        path: PathBuf,
        /// The process, if its id is known.
        pid: Option<u32>,
    },
    /// Another version of this crate wrote the folder.
    Version {
        /// The file.
        path: PathBuf,
        /// The version that this crate reads and writes.
        expected: u32,
        /// The version of the file.
        found: u32,
    },
    /// The manifest is damaged or missing.
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What was found.
        found: &'static str,
    },
    /// This process may not write to the folder.
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// Why the system refuses writes.
        source: io::Error,
    },
    /// The byte budget has no room for another item file or removal log. The caller removes an item
    /// file, for example with [`Tier::remove_oldest`](crate::Tier::remove_oldest), and tries again.
    BudgetReached {
        /// Bytes that the next file, or the next part of a removal log, needs.
        needed: u64,
        /// Bytes that are available.
        available: u64,
    },
    /// The tier of this handle was closed or dropped.
    Closed {
        /// The folder.
        path: PathBuf,
    },
    /// A key, a value or a record is too long.
    TooLong {
        /// What is too long: `key`, `value` or `record`.
        what: &'static str,
        /// Its length in bytes.
        len: u64,
        /// The maximum.
        max: u64,
    },
}

impl Error {
    /// Returns an error of the system at a path.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { operation, path: path.into(), source }
    }

    /// Returns whether an item file must be removed before the operation can succeed.
    #[must_use]
    pub fn is_budget_reached(&self) -> bool {
        matches!(self, Self::BudgetReached { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, source } => {
                write!(f, "cannot {operation} {}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        f.write_str("; free space on the disk, or lower the disk budget")
                    }
                    _ => Ok(()),
                }
            }
            Self::Options { option, expected, found } => {
                write!(f, "{option}: expected {expected}, found {found}")
            }
            Self::NotAFolder { path } => {
                write!(f, "{}: expected a folder, found another kind of file", path.display())
            }
            Self::InUse { path, pid: Some(pid) } => write!(
                f,
                "{}: process {pid} uses this folder; stop it, or use another folder",
                path.display()
            ),
            Self::InUse { path, pid: None } => write!(
                f,
                "{}: another process uses this folder; stop it, or use another folder",
                path.display()
            ),
            Self::Version { path, expected, found } => write!(
                f,
                "{}: expected version {expected}, found {found}; use the nuthatch that wrote the \
                 folder, or remove the folder",
                path.display()
            ),
            Self::Manifest { path, found } => write!(
                f,
                "{}: expected the manifest of a folder of items, found {found}; name the folder \
                 `items` in the data folder of a server, or remove the folder if it is that one",
                path.display()
            ),
            Self::ReadOnly { path, source } => {
                write!(f, "{}: this process may not write to the folder: {source}", path.display())
            }
            Self::BudgetReached { needed, available } => write!(
                f,
                "the disk budget has {available} bytes available, and the next file needs {needed}"
            ),
            Self::Closed { path } => {
                write!(f, "{}: the tier was closed; open it again", path.display())
            }
            Self::TooLong { what, len, max } => {
                write!(f, "{what}: expected at most {max} bytes, found {len}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::ReadOnly { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Damage in an item file or a removal log, or a part of it that the system cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The name of the file in the folder.
    pub file: String,
    /// The offset in bytes of the damaged header, batch, record, directory, footer or entry.
    pub offset: u64,
    /// What was expected, and what was found.
    pub reason: String,
}

impl Damage {
    pub(crate) fn new(file: &str, offset: u64, reason: impl Into<String>) -> Self {
        Self { file: file.to_owned(), offset, reason: reason.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: offset {}: {}", self.file, self.offset, self.reason)
    }
}
