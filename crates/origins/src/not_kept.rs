//! Why blocks are not kept in the cache.

use nuthatch_chunks::NotKeptReason;
use std::fmt;

/// Why a block that was read from its origin was not kept in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotKept {
    /// The origin names no version of the object that is certain: no strong `ETag`, and no
    /// `Last-Modified` that is at least two seconds old.
    NoVersion,
    /// The origin does not report the length of the object.
    NoLength,
    /// The address is too long for a key of the cache.
    Address,
    /// The cache has other bytes for the same version of the object.
    Conflict,
    /// Pinned chunks and segments that are being written leave no space within the limit or on
    /// the disk.
    NoRoom,
    /// The disk is full, or a write failed.
    Disk,
    /// Another process or thread had the lock of the folder for too long.
    Busy,
    /// This process, or the machine, has too many open files.
    Files,
    /// The folder or its index cannot be opened or used.
    Folder,
    /// This process can only read the folder.
    ReadOnly,
}

impl NotKept {
    /// All causes.
    pub const ALL: [Self; 10] = [
        Self::NoVersion,
        Self::NoLength,
        Self::Address,
        Self::Conflict,
        Self::NoRoom,
        Self::Disk,
        Self::Busy,
        Self::Files,
        Self::Folder,
        Self::ReadOnly,
    ];

    /// Returns the reason of the folder, if the cause is the folder.
    fn reason(self) -> Option<NotKeptReason> {
        match self {
            Self::NoVersion | Self::NoLength | Self::Address | Self::Conflict => None,
            Self::NoRoom => Some(NotKeptReason::NoRoom),
            Self::Disk => Some(NotKeptReason::Disk),
            Self::Busy => Some(NotKeptReason::Busy),
            Self::Files => Some(NotKeptReason::Files),
            Self::Folder => Some(NotKeptReason::Folder),
            Self::ReadOnly => Some(NotKeptReason::ReadOnly),
        }
    }

    /// Returns a short name of the cause that never changes, for metrics and programs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NoVersion => "no-version",
            Self::NoLength => "no-length",
            Self::Address => "address",
            Self::Conflict => "conflict",
            _ => self.reason().unwrap_or(NotKeptReason::Folder).code(),
        }
    }
}

impl From<NotKeptReason> for NotKept {
    fn from(reason: NotKeptReason) -> Self {
        let of = |cause: &Self| cause.reason() == Some(reason);
        Self::ALL.into_iter().find(of).unwrap_or(Self::Folder)
    }
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion => f.write_str(
                "the origin names no version of the object (no strong ETag, and no Last-Modified \
                 at least 2 s old)",
            ),
            Self::NoLength => f.write_str("the origin does not report the length of the object"),
            Self::Address => f.write_str("the address is too long for a key of the cache"),
            Self::Conflict => f.write_str("the cache has other bytes for this version"),
            _ => self.reason().unwrap_or(NotKeptReason::Folder).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_code_and_a_text_of_its_own() {
        for (at, cause) in NotKept::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, at, "counts are in the order of ALL");
            for other in &NotKept::ALL[..at] {
                assert_ne!((cause.code(), cause.to_string()), (other.code(), other.to_string()));
            }
            if let Some(reason) = cause.reason() {
                assert_eq!(NotKept::from(reason), cause);
            }
        }
    }
}
