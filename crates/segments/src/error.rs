//! What can go wrong.

use nuthatch_filesystem::file_limit_advice;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// What a user can do whom the system denies access.
const ADVICE: &str =
    "; run as the owner of the folder, have it shared with your group, or use another folder";

/// Why something was not done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    Io {
        /// What was tried, such as `open`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// An option is out of its range.
    Options {
        /// The option's name.
        option: &'static str,
        /// What it may be.
        expected: String,
        /// What it was.
        found: String,
    },
    /// A file was written by a newer version of this crate.
    Version {
        /// The file.
        path: PathBuf,
        /// The version that is read here.
        expected: u32,
        /// The version of the file.
        found: u32,
    },
    /// The folder can only be read by this process.
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// Why nothing can be written.
        source: io::Error,
    },
    /// The settings file is damaged, and neither the index nor the options have the limit.
    Settings {
        /// The file.
        path: PathBuf,
    },
    /// Another process or thread changed the folder for longer than the patience of the options.
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// Something given is longer or shorter than it may be.
    Length {
        /// `part`, `label` or `parts`.
        what: &'static str,
        /// Its length in bytes, or how many there are.
        len: u64,
        /// The least and the greatest length.
        range: (u64, u64),
    },
}

impl Error {
    /// Returns whether the system refused because this user may not, or because nothing can be
    /// written.
    pub(crate) fn is_denial(source: &io::Error) -> bool {
        Errno::from_io_error(source).is_some_and(is_denied)
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
}

/// Returns whether the cause is missing permissions or a read-only filesystem.
pub(crate) fn is_denied(errno: Errno) -> bool {
    [Errno::ACCESS, Errno::PERM, Errno::ROFS].contains(&errno)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, path, source } => {
                write!(f, "cannot {action} {}: {source}", path.display())?;
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
                write!(f, "{} can only be read here: {source}", path.display())
            }
            Self::Settings { path } => write!(
                f,
                "{}: expected the settings of the folder, found a damaged file; open the folder \
                 with a limit to write them anew",
                path.display()
            ),
            Self::Busy { path } => {
                let holder = "another process or thread changes the folder for too long";
                write!(f, "{}: {holder}; try again later", path.display())
            }
            Self::Length { what, len, range: (least, most) } => {
                write!(f, "{what}: expected {least} to {most}, found {len}")
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
