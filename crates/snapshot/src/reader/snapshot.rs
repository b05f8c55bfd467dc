//! An open snapshot.

use super::decompress::Dictionary;
use super::map::{Map, Residency};
use crate::error::{Error, Result};
use crate::format::header::{Header, RawHeader};
use crate::format::layout::header as header_at;
use std::fmt;
use std::path::Path;

/// Options for opening a snapshot.
///
/// ```no_run
/// use nuthatch_snapshot::{OpenOptions, Residency};
/// let snapshot = OpenOptions::new().residency(Residency::HugePages).open("features.nut")?;
/// # Ok::<(), nuthatch_snapshot::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    residency: Residency,
    lock: bool,
}

impl OpenOptions {
    /// Returns the default options: mapped on demand, not locked in memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets where the bytes of the file are kept.
    #[must_use]
    pub fn residency(mut self, residency: Residency) -> Self {
        self.residency = residency;
        self
    }

    /// Sets whether the bytes are locked in memory, so that the system never pages them out.
    /// Locking needs the privilege `CAP_IPC_LOCK` or a sufficient limit `RLIMIT_MEMLOCK`.
    #[must_use]
    pub fn lock(mut self, lock: bool) -> Self {
        self.lock = lock;
        self
    }

    /// Opens a snapshot. Validates the header and the dictionary only, so the time does not depend
    /// on the size of the file, unless [`residency`](Self::residency) reads all of it.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the file cannot be opened, mapped or locked, or is not a regular
    /// file, [`Error::NotASnapshot`] or [`Error::Unsupported`] for another kind of file or version,
    /// and [`Error::Corrupt`] or [`Error::Unreadable`] for a damaged file.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Snapshot> {
        Snapshot::from_map(Map::open(path.as_ref(), self.residency, self.lock)?)
    }
}

/// An open snapshot: an immutable map from keys to typed values, read in place.
///
/// Lookups write nothing, so any number of threads share one snapshot by reference.
///
/// A published file must not be written to or truncated while it is open. To replace it, rename a
/// new file over it, as the writer does; a snapshot that is open keeps reading the old file.
pub struct Snapshot {
    pub(super) map: Map,
    pub(super) header: Header,
    pub(super) dictionary: Dictionary,
}

impl Snapshot {
    /// Opens a snapshot with the default [`OpenOptions`].
    ///
    /// # Errors
    /// Returns the same errors as [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens a snapshot from bytes in memory, such as a file that is included in the program.
    /// Copies the bytes, because lists of numbers are read in place and must be aligned.
    ///
    /// ```
    /// # use nuthatch_snapshot::Snapshot;
    /// # macro_rules! include_bytes { ($path:literal) => { b"not really" } }
    /// const CODES: &[u8] = include_bytes!("codes.nut");
    /// let codes = Snapshot::from_bytes(CODES);
    /// # assert_eq!(codes.map_err(|error| error.code()).err(), Some("not-a-snapshot"));
    /// ```
    ///
    /// # Errors
    /// Returns the same errors as [`OpenOptions::open`] for bytes that are not a valid snapshot.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_map(Map::of_bytes(bytes))
    }

    fn from_map(mut map: Map) -> Result<Self> {
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

    /// Returns the number of entries.
    pub fn len(&self) -> u64 {
        self.header.entries
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.header.entries == 0
    }

    /// Returns the path that the snapshot was opened with, or `(memory)` if it was opened from
    /// bytes.
    pub fn path(&self) -> &Path {
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

    /// Checks that every page read so far was readable. If this succeeds, everything read before
    /// the call came from the file.
    ///
    /// Only builds with the feature `sigbus` detect unreadable pages. In other builds this always
    /// succeeds, because an unreadable page ends the process. The call is one load from memory, so
    /// it can follow every lookup.
    ///
    /// # Errors
    /// Returns [`Error::Unreadable`] if the file was truncated or the device failed since the
    /// snapshot was opened.
    #[inline]
    pub fn check_readable(&self) -> Result<()> {
        self.map.check_readable()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("path", &self.path())
            .field("entries", &self.len())
            .finish_non_exhaustive()
    }
}
