//! The index as a file: made, opened, and believed only after a look.

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::layout::{INDEX_NAME, INDEX_NEW, index as at, slot};
use crate::map::Words;
use crate::segment::Segment;
use crate::sets::Sets;
use crate::table::Table;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use xxhash_rust::xxh3::xxh3_64;

/// How big an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) slots: u32,
    pub(crate) sets: u64,
}

impl Geometry {
    /// What suits a limit, with room for so many parts.
    pub(crate) fn suit(limit: u64, segment_len: u64, parts: Option<u64>) -> Self {
        let parts = parts.unwrap_or(limit >> 14).max(1024);
        // Sets are best half full.
        let sets = (parts * 2).div_ceil(at::WAYS as u64).next_power_of_two().min(at::SETS_MOST);
        let segments = (limit / segment_len.max(1) * 4).clamp(256, u64::from(at::SLOTS_MOST));
        Self { slots: segments.next_multiple_of(64) as u32, sets }
    }

    fn sets_from(self) -> usize {
        // Sets lie in pairs of cache lines.
        (at::HEADER_LEN + self.slots as usize * slot::LEN).next_multiple_of(at::SET_LEN)
    }

    pub(crate) fn file_len(self) -> u64 {
        self.sets_from() as u64 + self.sets * at::SET_LEN as u64
    }

    fn encode(self) -> [u8; at::CHECK + 8] {
        let mut bytes = [0; at::CHECK + 8];
        bytes[at::MAGIC_AT..at::VERSION].copy_from_slice(at::MAGIC);
        bytes[at::VERSION..at::SLOTS].copy_from_slice(&at::VERSION_NOW.to_le_bytes());
        bytes[at::SLOTS..at::SETS].copy_from_slice(&self.slots.to_le_bytes());
        bytes[at::SETS..at::CHECK].copy_from_slice(&self.sets.to_le_bytes());
        let check = xxh3_64(&bytes[..at::CHECK]);
        bytes[at::CHECK..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// The geometry of a file that begins with these bytes. `None` if it is no index, or damaged.
    fn decode(bytes: &[u8; at::CHECK + 8]) -> Option<std::result::Result<Self, u32>> {
        let four = |at: usize| bytes[at..at + 4].try_into().ok().map(u32::from_le_bytes);
        let eight = |at: usize| bytes[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        if bytes[..at::VERSION] != *at::MAGIC || eight(at::CHECK)? != xxh3_64(&bytes[..at::CHECK]) {
            return None;
        }
        let version = four(at::VERSION)?;
        if version != at::VERSION_NOW {
            return Some(Err(version));
        }
        let geometry = Self { slots: four(at::SLOTS)?, sets: eight(at::SETS)? };
        let sound = (1..=at::SLOTS_MOST).contains(&geometry.slots)
            && geometry.sets.is_power_of_two()
            && geometry.sets <= at::SETS_MOST;
        sound.then_some(Ok(geometry))
    }
}

/// What holds for everybody who uses the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) limit: u64,
    pub(crate) least_free: u64,
}

impl Settings {
    fn check(self) -> u64 {
        let mut bytes = [0x5A; 24];
        bytes[..8].copy_from_slice(&self.limit.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.least_free.to_le_bytes());
        xxh3_64(&bytes)
    }
}

/// An index that is open, with the segments that it led to.
pub(crate) struct Index {
    words: Words,
    pub(crate) geometry: Geometry,
    /// The number of the file in its file system.
    inode: u64,
    /// For each slot, the segment that was last read there.
    pub(crate) segments: Box<[RwLock<Option<Arc<Segment>>>]>,
}

impl Index {
    /// The index of a folder. `None` if there is none, or it is damaged.
    pub(crate) fn open(folder: &Folder, guard: bool) -> Result<Option<Self>> {
        let Ok(file) = folder.open_file(INDEX_NAME, OFlags::RDWR) else { return Ok(None) };
        let mut bytes = [0; at::CHECK + 8];
        if file.read_exact_at(&mut bytes, 0).is_err() {
            return Ok(None);
        }
        match Geometry::decode(&bytes) {
            None => Ok(None),
            Some(Err(found)) => {
                let path = folder.path().join(INDEX_NAME);
                Err(Error::Version { path, expected: at::VERSION_NOW, found })
            }
            Some(Ok(geometry)) => {
                let whole = file.metadata().is_ok_and(|found| found.len() == geometry.file_len());
                if whole { Self::map(folder, &file, geometry, guard).map(Some) } else { Ok(None) }
            }
        }
    }

    /// Makes an index without entries, under a name that nobody opens.
    pub(crate) fn make(
        folder: &Folder,
        geometry: Geometry,
        settings: Settings,
        guard: bool,
    ) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC;
        let fail = |errno| folder.error("make", INDEX_NEW, errno);
        folder.remove(INDEX_NEW).map_err(fail)?;
        let file = folder.open_file(INDEX_NEW, flags).map_err(fail)?;
        // All of its bytes are there from the beginning: a page for which there is no room would
        // end the process that writes to it.
        let len = geometry.file_len();
        fallocate(file.as_fd(), FallocateFlags::empty(), 0, len).map_err(fail)?;
        let path = || folder.path().join(INDEX_NEW);
        let written = file.write_all_at(&geometry.encode(), 0);
        written.map_err(|e| Error::io("write", path(), e))?;
        let index = Self::map(folder, &file, geometry, guard)?;
        index.set_settings(settings);
        index.word(at::NEXT).store(1, Ordering::Relaxed);
        index.word(at::TURN).store(1, Ordering::Relaxed);
        Ok(index)
    }

    fn map(folder: &Folder, file: &File, geometry: Geometry, guard: bool) -> Result<Self> {
        let fail = |e| Error::io("map", folder.path().join(INDEX_NAME), e);
        let words = Words::map(file, geometry.file_len() as usize, guard).map_err(fail)?;
        let segments = (0..geometry.slots).map(|_| RwLock::default()).collect();
        let inode = file.metadata().map_err(fail)?.ino();
        Ok(Self { words, geometry, inode, segments })
    }

    /// Gives a new index its name; from then on it is the one that everybody opens.
    pub(crate) fn publish(folder: &Folder) -> Result<()> {
        let renamed = folder.rename(INDEX_NEW, INDEX_NAME);
        renamed.map_err(|errno| folder.error("rename", INDEX_NEW, errno))
    }

    /// Whether this is the file that others find under the name.
    pub(crate) fn is_current(&self, folder: &Folder) -> bool {
        let same = folder.stat(INDEX_NAME).is_ok_and(|stat| {
            stat.st_ino == self.inode && stat.st_size.cast_unsigned() == self.geometry.file_len()
        });
        same && self.in_use() && self.settings().is_some()
    }

    /// Whether nobody said that another index is to be used, and no page of it vanished.
    #[inline]
    pub(crate) fn in_use(&self) -> bool {
        !self.words.lost() && self.word(at::RETIRED).load(Ordering::Acquire) == 0
    }

    /// Tells everybody who has it open that there is another one.
    pub(crate) fn retire(&self) {
        self.word(at::RETIRED).store(1, Ordering::Release);
    }

    /// A word of the header.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        self.words.word(at)
    }

    pub(crate) fn table(&self) -> Table<'_> {
        Table::new(&self.words, self.geometry.slots)
    }

    #[inline]
    pub(crate) fn sets(&self) -> Sets<'_> {
        Sets::new(&self.words, self.geometry.sets_from(), self.geometry.sets)
    }

    /// `None` if somebody changed them who should not.
    pub(crate) fn settings(&self) -> Option<Settings> {
        let load = |at| self.word(at).load(Ordering::Relaxed);
        let settings = Settings { limit: load(at::LIMIT), least_free: load(at::LEAST_FREE) };
        (settings.check() == load(at::SETTINGS_CHECK)).then_some(settings)
    }

    pub(crate) fn set_settings(&self, settings: Settings) {
        self.word(at::LIMIT).store(settings.limit, Ordering::Relaxed);
        self.word(at::LEAST_FREE).store(settings.least_free, Ordering::Relaxed);
        self.word(at::SETTINGS_CHECK).store(settings.check(), Ordering::Relaxed);
    }

    /// The number that the next segment gets; what a use is dated by.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.word(at::NEXT).load(Ordering::Relaxed)
    }
}
