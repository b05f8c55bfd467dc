//! An open snapshot: one file, or a set of shards.

use super::file::SnapshotFile;
use super::map::{Map, Residency};
use super::metadata::Metadata;
use super::readahead::Readahead;
use super::set::{self, Opened};
use crate::error::{Damage, Error, Result};
use crate::format::hash::KeyHash;
use crate::format::header::Header;
use crate::format::manifest::Manifest;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Maximum number of lookups of a path at which no file is found.
const MAX_LOOKUPS: usize = 8;

/// Options for opening a snapshot.
///
/// ```no_run
/// use nuthatch_snapshot::{OpenOptions, Residency};
/// let snapshot = OpenOptions::new().residency(Residency::HugePages).open("features.nut")?;
/// # Ok::<(), nuthatch_snapshot::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    residency: Residency,
    lock: bool,
    readahead: Readahead,
    guard: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            residency: Residency::default(),
            lock: false,
            readahead: Readahead::default(),
            guard: true,
        }
    }
}

impl OpenOptions {
    /// Returns the default options: mapped on demand, not locked in memory, [`Readahead::Auto`],
    /// and guarded in builds with the feature `sigbus`.
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

    /// Sets whether the system reads ahead; [`Readahead::Auto`] by default. Without effect for
    /// [`Residency::HugePages`].
    #[must_use]
    pub fn readahead(mut self, readahead: Readahead) -> Self {
        self.readahead = readahead;
        self
    }

    /// Sets whether a signal handler guards the map, as the feature `sigbus` describes; true by
    /// default. Without it, an unreadable page ends the process.
    #[cfg(feature = "sigbus")]
    #[must_use]
    pub fn guard(mut self, guard: bool) -> Self {
        self.guard = guard;
        self
    }

    /// Opens a snapshot: a file, or a set of shards by the path of its manifest. Validates the
    /// manifest, headers and dictionaries only, so the time does not depend on the size of the
    /// files, unless [`residency`](Self::residency) or [`lock`](Self::lock) requires all pages. It
    /// grows with the number of shards.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if a file cannot be opened, mapped or locked, or is not a regular
    /// file, [`Error::NotASnapshot`] or [`Error::Unsupported`] for another kind of file or version,
    /// and [`Error::Corrupt`] or [`Error::Unreadable`] for a damaged file. Returns `Corrupt`, too,
    /// if a shard is not the one that the manifest lists.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Snapshot> {
        let mut snapshot = self.open_files(path.as_ref())?;
        let len = snapshot.each_file().map(|file| file.header.file_len).sum();
        if self.residency != Residency::HugePages && self.readahead.is_off(len) {
            snapshot.first.turn_readahead_off();
            snapshot.others.iter_mut().for_each(SnapshotFile::turn_readahead_off);
        }
        Ok(snapshot)
    }

    /// Opens the file, or the manifest and the files of a set.
    fn open_files(&self, path: &Path) -> Result<Snapshot> {
        let mut map = self.map_linked(path)?;
        while Manifest::is_manifest(map.bytes()) {
            match set::open(&map, |path| self.map(path), || self.map_linked(path))? {
                Opened::Set(manifest, mut files) => {
                    // A valid manifest has at least one shard.
                    let first = files.remove(0);
                    let path = path.to_owned();
                    return Ok(Snapshot {
                        first,
                        others: files,
                        set: Some(Set { path, manifest }),
                    });
                }
                Opened::Replaced(now) => map = now,
            }
        }
        Snapshot::from_file(map)
    }

    /// Maps the file at the path of the caller. Looks a missing file up again: while the system
    /// resolves the path, a symbolic link in it may be switched to another file and the old one
    /// removed.
    fn map_linked(&self, path: &Path) -> Result<Map> {
        for _ in 1..MAX_LOOKUPS {
            match self.map(path) {
                Err(Error::Io(error)) if error.source.kind() == ErrorKind::NotFound => {}
                mapped => return mapped,
            }
        }
        self.map(path)
    }

    /// Maps a file, or copies it into memory.
    fn map(&self, path: &Path) -> Result<Map> {
        Map::open(path, self.residency, self.lock, self.guard)
    }
}

/// An open snapshot: an immutable map from keys to typed values, read in place.
///
/// Lookups write nothing, so any number of threads share one snapshot by reference.
///
/// A published file must not be written to or truncated while it is open. To replace it, rename a
/// new file over it, as the writer does; a snapshot that is open keeps reading the old file.
pub struct Snapshot {
    /// The file, or the first shard of a set.
    first: SnapshotFile,
    /// The other shards of a set.
    others: Vec<SnapshotFile>,
    set: Option<Set>,
}

/// What a set has besides its shards.
struct Set {
    /// The path of the manifest.
    path: PathBuf,
    manifest: Manifest,
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
    /// Returns the same errors as [`OpenOptions::open`] for bytes that are not a valid snapshot,
    /// and [`Error::Unsupported`] for those of a manifest.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let map = Map::of_bytes(bytes);
        if Manifest::is_manifest(bytes) {
            let found = "a manifest, which names the files of its shards: open it by its path";
            let damage = Damage::boxed(map.path(), 0, "the bytes of one file", found);
            return Err(Error::Unsupported(damage));
        }
        Self::from_file(map)
    }

    fn from_file(map: Map) -> Result<Self> {
        Ok(Self { first: SnapshotFile::new(map)?, others: Vec::new(), set: None })
    }

    /// Returns the files: one, or the shards of the set in their order.
    pub(super) fn files(&self) -> (&SnapshotFile, &[SnapshotFile]) {
        (&self.first, &self.others)
    }

    /// Returns all files.
    pub(super) fn each_file(&self) -> impl Iterator<Item = &SnapshotFile> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the seed of the key hash, which is the same in all files.
    #[inline(always)]
    pub(super) fn seed(&self) -> u64 {
        self.first.header.seed
    }

    /// Returns the file of a snapshot that is not a set.
    #[inline(always)]
    pub(super) fn one_file(&self) -> Option<&SnapshotFile> {
        self.others.is_empty().then_some(&self.first)
    }

    /// Returns the header of a snapshot that is not a set.
    pub(crate) fn header_of_file(&self) -> Option<&Header> {
        self.set_stats().is_none().then_some(&self.first.header)
    }

    /// Returns the dictionary section of the first file.
    #[cfg(feature = "zstd")]
    pub(crate) fn dictionary_bytes(&self) -> &[u8] {
        let section = self.first.header.dictionary;
        &self.first.map.bytes()[section.offset as usize..section.end() as usize]
    }

    /// Returns the shard that has the key if the snapshot has it, and the hash of the key.
    #[inline]
    pub(super) fn shard_of(&self, key: &[u8]) -> (&SnapshotFile, KeyHash) {
        let hash = KeyHash::of(key, self.seed());
        (self.shard_at(hash), hash)
    }

    /// Returns the shard for keys with this hash.
    #[inline]
    pub(super) fn shard_at(&self, hash: KeyHash) -> &SnapshotFile {
        let shard = hash.shard(self.others.len() as u32 + 1) as usize;
        shard.checked_sub(1).map_or(&self.first, |other| &self.others[other])
    }

    /// Returns the number of entries.
    pub fn len(&self) -> u64 {
        self.each_file().map(|file| file.header.entries).sum()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the path that the snapshot was opened with, or `(memory)` if it was opened from
    /// bytes.
    pub fn path(&self) -> &Path {
        self.set.as_ref().map_or_else(|| self.first.path(), |set| &set.path)
    }

    /// Returns the paths of the shards of a set, in their order; none if the snapshot is one file.
    /// They are in the folder of the manifest's real path.
    pub fn shard_paths(&self) -> impl Iterator<Item = &Path> {
        self.set.iter().flat_map(|_| self.each_file().map(SnapshotFile::path))
    }

    /// Returns the number of shards and the length of the metadata of a set.
    pub(super) fn set_stats(&self) -> Option<(u32, u64)> {
        let manifest = &self.set.as_ref()?.manifest;
        Some((manifest.shards.len() as u32, manifest.metadata.len() as u64))
    }

    /// Returns the metadata that the writer was given.
    ///
    /// # Errors
    /// Returns [`Error::Corrupt`] or [`Error::Unreadable`] if the metadata is damaged.
    pub fn metadata(&self) -> Result<Metadata<'_>> {
        match &self.set {
            Some(set) => Metadata::of_set(&set.path, &set.manifest),
            None => Metadata::of_file(&self.first),
        }
    }

    /// Checks that every page read so far was readable. If this succeeds, everything read before
    /// the call came from the file.
    ///
    /// Only builds with the feature `sigbus` detect unreadable pages. In other builds this always
    /// succeeds, because an unreadable page ends the process. The call is one load from memory for
    /// each file, so it can follow every lookup.
    ///
    /// # Errors
    /// Returns [`Error::Unreadable`] if a file was truncated or the device failed since the
    /// snapshot was opened.
    #[inline]
    pub fn check_readable(&self) -> Result<()> {
        self.first.check_readable()?;
        self.others.iter().try_for_each(SnapshotFile::check_readable)
    }

    /// Does the same as [`check_readable`](Self::check_readable) for the one file that lookups of
    /// this key read.
    ///
    /// # Errors
    /// Returns the same error as [`check_readable`](Self::check_readable).
    #[inline]
    pub fn check_readable_for(&self, key: &[u8]) -> Result<()> {
        match self.one_file() {
            Some(file) => file.check_readable(),
            None => self.shard_of(key).0.check_readable(),
        }
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
