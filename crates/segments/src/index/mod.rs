//! The index file: creating, opening and validating it.

pub(crate) mod geometry;
pub(crate) mod list;
pub(crate) mod sets;
mod shape;
pub(crate) mod table;
pub(crate) mod word;

use crate::checksum::checksum;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::folder::settings::Settings;
use crate::layout::{INDEX_NAME, INDEX_NEW, index as at};
use crate::map::Words;
use crate::segment::Segment;
use geometry::{FIXED_LEN, Geometry};
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use sets::Sets;
use shape::Shape;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use table::Table;

/// An open index, with the segments that were opened through it.
pub(crate) struct Index {
    words: Words,
    shape: Shape,
    pub(crate) geometry: Geometry,
    /// A random number that an index keeps when it grows. Slots mean the same in all indexes of a
    /// family.
    pub(crate) family: u64,
    /// The inode of the file.
    inode: u64,
    /// For each slot, the segment that was last opened.
    pub(crate) segments: Box<[RwLock<Option<Arc<Segment>>>]>,
}

impl Index {
    /// Opens the index of a folder. `None` if there is none, or it is damaged or of an older
    /// version.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if there is a file that cannot be opened or read, and
    /// [`Error::Version`] if a newer version wrote it. In both cases the caller must not create
    /// another index.
    pub(crate) fn open(folder: &Folder, guard: bool, is_writable: bool) -> Result<Option<Self>> {
        let flags = if is_writable { OFlags::RDWR } else { OFlags::RDONLY };
        let path = || folder.path().join(INDEX_NAME);
        let file = match folder.open_file(INDEX_NAME, flags) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Ok(None),
            Err(errno) => return Err(folder.error("open", INDEX_NAME, errno)),
        };
        let mut bytes = [0; FIXED_LEN];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if is_no_index(error.kind()) => return Ok(None),
            Err(error) => return Err(Error::io("read", path(), error)),
        }
        match Geometry::decode(&bytes) {
            None => Ok(None),
            Some(Err(found)) => {
                Err(Error::Version { path: path(), expected: at::VERSION_NOW, found })
            }
            Some(Ok((geometry, family))) => {
                let has_length =
                    file.metadata().is_ok_and(|found| found.len() == geometry.file_len());
                let map = || Self::map(folder, &file, geometry, family, (guard, is_writable));
                if has_length { map().map(Some) } else { Ok(None) }
            }
        }
    }

    /// Creates an index without entries, under the name `index.new`.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn create(
        folder: &Folder,
        geometry: Geometry,
        family: u64,
        settings: Settings,
        guard: bool,
    ) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC;
        let fail = |errno| folder.error("make", INDEX_NEW, errno);
        folder.remove(INDEX_NEW).map_err(fail)?;
        let file = folder.open_file(INDEX_NEW, flags).map_err(fail)?;
        // All bytes of the file are allocated: a write to a page for which the disk has no space
        // would end the process.
        let len = geometry.file_len();
        fallocate(file.as_fd(), FallocateFlags::empty(), 0, len).map_err(fail)?;
        let path = || folder.path().join(INDEX_NEW);
        let written = file.write_all_at(&geometry.encode(family), 0);
        written.map_err(|e| Error::io("write", path(), e))?;
        let index = Self::map(folder, &file, geometry, family, (guard, true))?;
        index.set_settings(settings);
        index.word(at::NEXT).store(1, Ordering::Relaxed);
        index.word(at::NEXT_EVICTION_ORDER).store(1, Ordering::Relaxed);
        Ok(index)
    }

    fn map(
        folder: &Folder,
        file: &File,
        geometry: Geometry,
        family: u64,
        (guard, is_writable): (bool, bool),
    ) -> Result<Self> {
        let fail = |e| Error::io("map", folder.path().join(INDEX_NAME), e);
        let words = Words::map(file, geometry.file_len() as usize, guard, is_writable);
        let words = words.map_err(fail)?;
        let segments = (0..geometry.slots).map(|_| RwLock::default()).collect();
        let inode = file.metadata().map_err(fail)?.ino();
        let shape = Shape::new(geometry.sets_offset(), geometry.base_bits, geometry.grown);
        Ok(Self { words, shape, geometry, family, inode, segments })
    }

    /// Renames `index.new` to `index`. From then on all processes open it.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn publish(folder: &Folder) -> Result<()> {
        let renamed = folder.rename(INDEX_NEW, INDEX_NAME);
        renamed.map_err(|errno| folder.error("rename", INDEX_NEW, errno))
    }

    /// Returns whether this is the file at the name `index`, and in use.
    pub(crate) fn is_current(&self, folder: &Folder) -> bool {
        let is_same = folder.stat(INDEX_NAME).is_ok_and(|stat| {
            stat.st_ino == self.inode && stat.st_size.cast_unsigned() == self.geometry.file_len()
        });
        is_same && self.is_in_use()
    }

    /// Returns whether words may be stored, because the file is mapped for writing.
    pub(crate) fn is_writable(&self) -> bool {
        self.words.is_writable()
    }

    /// Returns whether no other index has replaced this one and no page of it vanished.
    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        !self.words.is_lost() && self.word(at::RETIRED).load(Ordering::Acquire) < at::REPLACED
    }

    /// Returns whether the index is being copied, or was: a word that is entered now may be missing
    /// in the copy.
    pub(crate) fn is_copied(&self) -> bool {
        // Sequentially consistent with the words: see `FolderGuard::double`.
        self.word(at::RETIRED).load(Ordering::SeqCst) != at::IN_USE
    }

    /// Sets the field `retired`, which every process that has the index open reads.
    pub(crate) fn set_retired(&self, state: u64) {
        self.word(at::RETIRED).store(state, Ordering::SeqCst);
    }

    /// Closes the segments that are open for reading. Returns their number.
    pub(crate) fn close_segments(&self) -> usize {
        let entries = self.segments.iter();
        let closed = entries
            .filter_map(|entry| entry.write().unwrap_or_else(PoisonError::into_inner).take());
        closed.count()
    }

    /// Returns a word of the header.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        self.words.word(at)
    }

    pub(crate) fn table(&self) -> Table<'_> {
        Table::new(&self.words, self.geometry.slots)
    }

    #[inline]
    pub(crate) fn sets(&self) -> Sets<'_> {
        Sets::new(&self.words, &self.shape)
    }

    /// Returns the copy of the settings. `None` if it is damaged.
    pub(crate) fn settings(&self) -> Option<Settings> {
        let load = |at| self.word(at).load(Ordering::Relaxed);
        let settings = Settings {
            limit: load(at::LIMIT),
            min_free: load(at::MIN_FREE),
            parts: load(at::PARTS),
            shared: load(at::SHARED) != 0,
        };
        (check_of(&settings) == load(at::SETTINGS_CHECK)).then_some(settings)
    }

    /// Copies the settings into the index, where every process sees them at once.
    pub(crate) fn set_settings(&self, settings: Settings) {
        for (at, word) in
            [at::LIMIT, at::MIN_FREE, at::PARTS, at::SHARED].into_iter().zip(words_of(&settings))
        {
            self.word(at).store(word, Ordering::Relaxed);
        }
        self.word(at::SETTINGS_CHECK).store(check_of(&settings), Ordering::Relaxed);
    }

    /// Returns the number of the next segment. It also serves as the time at which uses are
    /// counted.
    #[inline]
    pub(crate) fn next_number(&self) -> u64 {
        self.word(at::NEXT).load(Ordering::Relaxed)
    }
}

fn words_of(settings: &Settings) -> [u64; 4] {
    [settings.limit, settings.min_free, settings.parts, u64::from(settings.shared)]
}

fn check_of(settings: &Settings) -> u64 {
    let mut bytes = [0x5A; 40];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words_of(settings)) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    checksum(&bytes)
}

/// Returns whether a read error means that the file is damaged or too short.
fn is_no_index(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::IsADirectory | ErrorKind::NotSeekable)
}
