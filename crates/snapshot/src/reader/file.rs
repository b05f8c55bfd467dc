//! One open file: a snapshot, or a shard of one.

use super::decompress::Dictionary;
use super::map::Map;
use crate::error::{Error, Result};
use crate::format::header::Header;
use crate::format::layout::header as header_at;
use crate::format::raw_header::RawHeader;
use std::fmt;
use std::path::Path;

/// One open file. A [`Snapshot`](super::Snapshot) has one or several.
pub struct SnapshotFile {
    pub(super) map: Map,
    pub(super) header: Header,
    pub(super) dictionary: Dictionary,
}

impl SnapshotFile {
    /// Validates the header and the dictionary of a file.
    ///
    /// # Errors
    /// Returns the errors of [`OpenOptions::open`](super::OpenOptions::open) about the bytes.
    pub(super) fn new(mut map: Map) -> Result<Self> {
        let bytes = map.bytes();
        let read = RawHeader::new(&bytes[..bytes.len().min(header_at::LEN)], map.path())
            .and_then(|raw| raw.validate(bytes.len() as u64))
            .and_then(|header| Ok((Dictionary::new(&map, &header)?, header)));
        // Zeros that replace an unreadable page are not damage of the file.
        map.check_readable()?;
        let (dictionary, header) = read?;
        map.set_sections(header.index, header.data);
        Ok(Self { map, header, dictionary })
    }

    /// Returns the path of the file, or `(memory)`.
    pub(super) fn path(&self) -> &Path {
        self.map.path()
    }

    /// Returns the error for bytes that contradict the format, or [`Error::Unreadable`] if a page
    /// could not be read: then the bytes may be zeros in its place.
    #[cold]
    pub(super) fn corrupt(
        &self,
        offset: u64,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        match self.check_readable() {
            Ok(()) => Error::corrupt(self.path(), offset, expected, found),
            Err(unreadable) => unreadable,
        }
    }

    /// Does the same as [`Snapshot::check_readable`](super::Snapshot::check_readable).
    #[inline]
    pub(super) fn check_readable(&self) -> Result<()> {
        self.map.check_readable()
    }
}

impl fmt::Debug for SnapshotFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotFile").field("path", &self.path()).finish_non_exhaustive()
    }
}
