//! Errors of this crate.

use nuthatch_filesystem::file_limit_advice;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// What to do if the system denies access. Appended to the message.
const ADVICE: &str =
    "; run as the owner of the folder, have it shared with your group, or use another folder";

/// An error of this crate. A part that is missing, damaged or could not be kept is not an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    Io {
        /// The operation, such as `open`.
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
        found: String,
    },
    /// A newer version of this crate wrote a file.
    Version {
        /// The file.
        path: PathBuf,
        /// The newest version that this crate reads.
        expected: u32,
        /// The version of the file.
        found: u32,
    },
    /// This process can only read the folder.
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// Why the system refuses writes.
        source: io::Error,
    },
    /// The settings file is damaged, and neither the index nor the options contain the limit.
    Settings {
        /// The file.
        path: PathBuf,
    },
    /// Another process or thread had exclusive access to the folder for longer than
    /// [`Options::patience`](crate::Options::patience).
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The length of an argument is out of range.
    Length {
        /// The argument: `part`, `label`, `parts`, `data` or `pins`.
        what: &'static str,
        /// Its length in bytes, or the number of parts or pins.
        len: u64,
        /// The minimum and the maximum.
        range: (u64, u64),
    },
}

impl Error {
    /// Returns whether a system call failed because of permissions or a read-only filesystem.
    pub(crate) fn is_denial(source: &io::Error) -> bool {
        Errno::from_io_error(source).is_some_and(is_denied)
    }

    /// Returns an error of the system at a path.
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { operation, path: path.into(), source }
    }
}

/// Returns whether an error number means missing permissions or a read-only filesystem.
pub(crate) fn is_denied(errno: Errno) -> bool {
    [Errno::ACCESS, Errno::PERM, Errno::ROFS].contains(&errno)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, source } => {
                write!(f, "cannot {operation} {}: {source}", path.display())?;
                if source.kind() == io::ErrorKind::PermissionDenied {
                    return f.write_str(ADVICE);
                }
                f.write_str(&file_limit_advice(source).unwrap_or_default())
            }
            Self::Options { option, expected, found } => {
                write!(f, "{option}: expected {expected}, found {found}")
            }
            Self::Version { path, expected, found } => write!(
                f,
                "{}: expected version {expected}, found {found}: written by a newer nuthatch",
                path.display()
            ),
            Self::ReadOnly { path, source } => {
                write!(f, "{}: this process can only read the folder: {source}", path.display())
            }
            Self::Settings { path } => write!(
                f,
                "{}: expected the settings of the folder, found a damaged file; open the folder \
                 with a limit to replace the file",
                path.display()
            ),
            Self::Busy { path } => {
                let cause = "another process or thread has held its lock for too long";
                write!(f, "{}: {cause}; try again later", path.display())
            }
            Self::Length { what, len, range: (min, max) } => {
                write!(f, "{what}: expected {min} to {max}, found {len}")
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
