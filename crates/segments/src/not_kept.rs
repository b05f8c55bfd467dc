//! Reasons for which records are not kept.

use crate::error::Error;
use nuthatch_filesystem::file_limit_advice;
use std::fmt;
use std::io::{self, ErrorKind};

/// The reason for which a record was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotKeptReason {
    /// Pinned records and segments that are being written leave no space within the limit, or the
    /// disk would have less free space than [`Options::min_free`](crate::Options::min_free).
    NoRoom,
    /// The disk is full, or a write failed.
    Disk,
    /// Another process or thread had exclusive access to the folder for longer than
    /// [`Options::patience`](crate::Options::patience).
    Busy,
    /// This process, or the machine, has too many open files.
    Files,
    /// The index or the folder cannot be used.
    Folder,
    /// This process can only read the folder.
    ReadOnly,
}

impl NotKeptReason {
    /// Returns the name of the reason for metrics and programs. It never changes.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NoRoom => "no-room",
            Self::Disk => "disk",
            Self::Busy => "busy",
            Self::Files => "files",
            Self::Folder => "folder",
            Self::ReadOnly => "read-only",
        }
    }

    /// Returns the reason that an error stands for.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Busy { .. } => Self::Busy,
            Error::ReadOnly { .. } => Self::ReadOnly,
            Error::Io { source, .. } => Self::of_system(source),
            _ => Self::Folder,
        }
    }

    /// Returns the reason that an error of the system stands for.
    pub(crate) fn of_system(error: &io::Error) -> Self {
        if is_disk_full(error) {
            Self::Disk
        } else if file_limit_advice(error).is_some() {
            Self::Files
        } else {
            Self::Folder
        }
    }
}

impl fmt::Display for NotKeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom => f.write_str(
                "pinned chunks and segments that are being written leave no space within the limit \
                 or on the disk; raise the limit or unpin objects",
            ),
            Self::Disk => f.write_str("the disk is full, or a write failed"),
            Self::Busy => f.write_str(
                "another process or thread has had the lock of the folder for too long; resume or \
                 end the process if it was stopped",
            ),
            Self::Files => {
                let error = io::Error::from_raw_os_error(libc::EMFILE);
                write!(f, "{error}{}", file_limit_advice(&error).unwrap_or_default())
            }
            Self::Folder => f.write_str("the folder or its index cannot be used"),
            Self::ReadOnly => f.write_str("this process can only read the folder"),
        }
    }
}

/// Returns whether the disk or the quota of the user is full, or the file would be too large.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
