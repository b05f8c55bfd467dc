//! The index as a file: made, opened, and believed only after a look.

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::layout::{INDEX_NAME, INDEX_NEW, index as at, slot};
use crate::map::Words;
use crate::segment::Segment;
use crate::sets::{Sets, Shape};
use crate::settings::Settings;
use crate::table::Table;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the header that never change.
const FIXED_LEN: usize = at::CHECK + 8;
/// Parts for which a set is made, of the 15 that it has room for.
const PARTS_OF_SET: u64 = 8;
/// The share of the limit that the sets may take when they grow: one in so many.
pub(crate) const GROWN_SHARE: u64 = 4;

/// How big an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) slots: u32,
    /// The sets that it was made with, as a power of two.
    pub(crate) base: u32,
    /// How often it was doubled since.
    pub(crate) grown: u32,
}

impl Geometry {
    /// What suits a limit, with room for so many parts; zero if the limit decides.
    pub(crate) fn suit(limit: u64, segment_len: u64, parts: u64) -> Self {
        let parts = if parts == 0 { limit >> 14 } else { parts }.max(1024);
        // Sets are about half full then, and grow when there are more.
        let sets = parts.div_ceil(PARTS_OF_SET).next_power_of_two().min(at::SETS_MOST);
        let segments = (limit / segment_len.max(1) * 4).clamp(256, u64::from(at::SLOTS_MOST));
        let slots = segments.next_multiple_of(64) as u32;
        Self { slots, base: sets.trailing_zeros(), grown: 0 }
    }

    /// Twice as many sets. `None` if that is more than there may be, under a limit.
    pub(crate) fn doubled(self, limit: u64) -> Option<Self> {
        let next = Self { grown: self.grown + 1, ..self };
        let fits = next.grown <= at::GROWN_MOST
            && next.sets() <= at::SETS_MOST
            && next.file_len() <= limit / GROWN_SHARE;
        fits.then_some(next)
    }

    /// For how many parts an index of this size is made.
    pub(crate) fn parts(self) -> u64 {
        self.sets() * PARTS_OF_SET
    }

    pub(crate) fn sets(self) -> u64 {
        1 << (self.base + self.grown)
    }

    /// How many words it has for parts.
    pub(crate) fn words(self) -> u64 {
        self.sets() * at::WAYS as u64
    }

    fn sets_from(self) -> usize {
        // Sets lie in pairs of cache lines.
        (at::HEADER_LEN + self.slots as usize * slot::LEN).next_multiple_of(at::SET_LEN)
    }

    pub(crate) fn file_len(self) -> u64 {
        self.sets_from() as u64 + self.sets() * at::SET_LEN as u64
    }

    fn encode(self, family: u64) -> [u8; FIXED_LEN] {
        let mut bytes = [0; FIXED_LEN];
        let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
        put(at::MAGIC_AT, at::MAGIC);
        put(at::VERSION, &at::VERSION_NOW.to_le_bytes());
        put(at::SLOTS, &self.slots.to_le_bytes());
        put(at::SETS, &(1_u64 << self.base).to_le_bytes());
        put(at::GROWN, &u64::from(self.grown).to_le_bytes());
        put(at::FAMILY, &family.to_le_bytes());
        let check = xxh3_64(&bytes[..at::CHECK]);
        bytes[at::CHECK..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes the header of a file: the geometry and the family. `None` if it is no index, or
    /// damaged, or of an older version; `Err` has the number of a newer version.
    fn decode(bytes: &[u8; FIXED_LEN]) -> Option<std::result::Result<(Self, u64), u32>> {
        let four = |at: usize| bytes[at..at + 4].try_into().ok().map(u32::from_le_bytes);
        let eight = |at: usize| bytes[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        if bytes[..at::VERSION] != *at::MAGIC || eight(at::CHECK)? != xxh3_64(&bytes[..at::CHECK]) {
            return None;
        }
        let version = four(at::VERSION)?;
        if version != at::VERSION_NOW {
            return (version > at::VERSION_NOW).then_some(Err(version));
        }
        let (slots, sets) = (four(at::SLOTS)?, eight(at::SETS)?);
        let grown = four(at::GROWN)?;
        let sound = (1..=at::SLOTS_MOST).contains(&slots)
            && sets.is_power_of_two()
            && (2..=at::SETS_MOST).contains(&sets)
            && grown <= at::GROWN_MOST
            && sets << grown <= at::SETS_MOST;
        let geometry = Self { slots, base: sets.trailing_zeros(), grown };
        sound.then_some(Ok((geometry, eight(at::FAMILY)?)))
    }
}

/// An index that is open, with the segments that it led to.
pub(crate) struct Index {
    words: Words,
    shape: Shape,
    pub(crate) geometry: Geometry,
    /// A number that an index keeps when it grows. Slots of the same family mean the same.
    pub(crate) family: u64,
    /// The number of the file in its file system.
    inode: u64,
    /// For each slot, the segment that was last read there.
    pub(crate) segments: Box<[RwLock<Option<Arc<Segment>>>]>,
}

impl Index {
    /// Opens the index of a folder. `None` if there is none, or it is damaged or of an older
    /// version.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if there is a file that cannot be opened or read, and
    /// `Error::Version` if a newer version wrote it. Neither is a reason to make another one.
    pub(crate) fn open(folder: &Folder, guard: bool, writable: bool) -> Result<Option<Self>> {
        let flags = if writable { OFlags::RDWR } else { OFlags::RDONLY };
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
                let whole = file.metadata().is_ok_and(|found| found.len() == geometry.file_len());
                let map = || Self::map(folder, &file, geometry, family, (guard, writable));
                if whole { map().map(Some) } else { Ok(None) }
            }
        }
    }

    /// Makes an index without entries, under a name that nobody opens.
    pub(crate) fn make(
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
        // All of its bytes are there from the beginning: a page for which there is no room would
        // end the process that writes to it.
        let len = geometry.file_len();
        fallocate(file.as_fd(), FallocateFlags::empty(), 0, len).map_err(fail)?;
        let path = || folder.path().join(INDEX_NEW);
        let written = file.write_all_at(&geometry.encode(family), 0);
        written.map_err(|e| Error::io("write", path(), e))?;
        let index = Self::map(folder, &file, geometry, family, (guard, true))?;
        index.set_settings(settings);
        index.word(at::NEXT).store(1, Ordering::Relaxed);
        index.word(at::TURN).store(1, Ordering::Relaxed);
        Ok(index)
    }

    fn map(
        folder: &Folder,
        file: &File,
        geometry: Geometry,
        family: u64,
        (guard, writable): (bool, bool),
    ) -> Result<Self> {
        let fail = |e| Error::io("map", folder.path().join(INDEX_NAME), e);
        let words = Words::map(file, geometry.file_len() as usize, guard, writable);
        let words = words.map_err(fail)?;
        let segments = (0..geometry.slots).map(|_| RwLock::default()).collect();
        let inode = file.metadata().map_err(fail)?.ino();
        let shape = Shape::new(geometry.sets_from(), geometry.base, geometry.grown);
        Ok(Self { words, shape, geometry, family, inode, segments })
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
        same && self.in_use()
    }

    /// Returns whether words may be stored: whether the file is mapped for writing.
    pub(crate) fn writable(&self) -> bool {
        self.words.writable()
    }

    /// Whether no other index replaces it, and no page of it vanished.
    #[inline]
    pub(crate) fn in_use(&self) -> bool {
        !self.words.lost() && self.word(at::RETIRED).load(Ordering::Acquire) < at::REPLACED
    }

    /// Returns whether the index is being or was copied: a word that is entered now may be missing
    /// in the copy.
    pub(crate) fn is_copied(&self) -> bool {
        // In one order with the words: see `Turn::grow`.
        self.word(at::RETIRED).load(Ordering::SeqCst) != at::IN_USE
    }

    /// Sets the field `retired`, which every process that has the index open reads.
    pub(crate) fn retire(&self, how_far: u64) {
        self.word(at::RETIRED).store(how_far, Ordering::SeqCst);
    }

    /// Closes the segments that are open for reading. Returns how many there were.
    pub(crate) fn close_segments(&self) -> usize {
        let places = self.segments.iter();
        let taken =
            places.filter_map(|place| place.write().unwrap_or_else(PoisonError::into_inner).take());
        taken.count()
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
        Sets::new(&self.words, &self.shape)
    }

    /// Returns the copy of the settings. `None` if it is damaged.
    pub(crate) fn settings(&self) -> Option<Settings> {
        let load = |at| self.word(at).load(Ordering::Relaxed);
        let settings = Settings {
            limit: load(at::LIMIT),
            least_free: load(at::LEAST_FREE),
            parts: load(at::PARTS),
            shared: load(at::SHARED) != 0,
        };
        (check_of(&settings) == load(at::SETTINGS_CHECK)).then_some(settings)
    }

    /// Copies the settings into the index, where every process sees them at once.
    pub(crate) fn set_settings(&self, settings: Settings) {
        for (at, word) in
            [at::LIMIT, at::LEAST_FREE, at::PARTS, at::SHARED].into_iter().zip(words_of(&settings))
        {
            self.word(at).store(word, Ordering::Relaxed);
        }
        self.word(at::SETTINGS_CHECK).store(check_of(&settings), Ordering::Relaxed);
    }

    /// The number that the next segment gets; what a use is dated by.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.word(at::NEXT).load(Ordering::Relaxed)
    }
}

fn words_of(settings: &Settings) -> [u64; 4] {
    [settings.limit, settings.least_free, settings.parts, u64::from(settings.shared)]
}

fn check_of(settings: &Settings) -> u64 {
    let mut bytes = [0x5A; 40];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words_of(settings)) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    xxh3_64(&bytes)
}

/// Returns whether a read error means that the file is damaged or too short.
fn is_no_index(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::IsADirectory | ErrorKind::NotSeekable)
}
