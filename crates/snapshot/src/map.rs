//! A file as a slice of bytes: mapped, or copied into memory.
//!
//! This file and its neighbours `bucket.rs` and `cast.rs` hold all unsafe code of the crate.

use crate::error::{Error, Result};
use crate::header::Section;
use crate::layout::{line, record};
use memmap2::{Advice, Mmap, MmapMut, MmapOptions};
use std::fs::{File, Metadata};
use std::io::Read;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Where the bytes of an open snapshot live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Residency {
    /// Mapped from the page cache and read on demand. Opens in microseconds, takes no memory of
    /// its own, shared between processes.
    #[default]
    Mapped,
    /// As `Mapped`, with every page read and mapped before `open` returns.
    Populated,
    /// Copied into memory of this process, on huge pages where the system grants them. The fastest
    /// lookups for files far beyond the processor's caches, at the price of the file's size in
    /// memory for each process. The copy does not change when the file does.
    HugePages,
}

/// The bytes of a file, and the two sections of it that lookups read.
pub(crate) struct Map {
    /// Never without a line. Borrowed from `bytes`, which never moves while it lives, so lent for
    /// no longer than `self`.
    index: &'static [[u8; line::LEN]],
    /// As `index`.
    data: &'static [u8],
    /// Number of places in the data at which a whole short record can be read.
    windows: u64,
    /// Declared before the map, so that it is dropped first.
    #[cfg(feature = "sigbus")]
    guard: Option<nuthatch_sigbus::MapGuard>,
    bytes: Bytes,
    path: PathBuf,
}

/// All bytes of a file. They begin at a multiple of 64, as much as anything in a file asks for.
enum Bytes {
    Mapped(Mmap),
    /// Copied, and how many bytes of the last line are in use.
    Copied(Vec<CacheLine>, usize),
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

impl Bytes {
    fn copy_of(bytes: &[u8]) -> Self {
        let lines = bytes.chunks(64).map(|chunk| {
            let mut line = CacheLine([0; 64]);
            line.0[..chunk.len()].copy_from_slice(chunk);
            line
        });
        Self::Copied(lines.collect(), bytes.len())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            // SAFETY: the lines are arrays of bytes without padding, and hold at least so many.
            Self::Copied(lines, len) => unsafe {
                std::slice::from_raw_parts(lines.as_ptr().cast(), *len)
            },
        }
    }
}

impl Map {
    /// Memory with a copy of these bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self::new(Bytes::copy_of(bytes), Path::new("(memory)"))
    }

    fn new(bytes: Bytes, path: &Path) -> Self {
        Self {
            index: &[[0; line::LEN]],
            data: &[],
            windows: 0,
            #[cfg(feature = "sigbus")]
            guard: None,
            bytes,
            path: path.to_owned(),
        }
    }

    pub(crate) fn open(path: &Path, residency: Residency, lock: bool) -> Result<Self> {
        let io = |act| move |source| Error::io(path, act, source);
        let refuse = |metadata: &Metadata| {
            let kind = std::io::Error::from(std::io::ErrorKind::InvalidInput);
            let error = || Error::io(path, "open (not a regular file)", kind);
            if metadata.is_file() { Ok(()) } else { Err(error()) }
        };
        // Before it is opened, too: opening a pipe waits for its writer.
        refuse(&std::fs::metadata(path).map_err(io("open"))?)?;
        let file = File::open(path).map_err(io("open"))?;
        let metadata = file.metadata().map_err(io("stat"))?;
        refuse(&metadata)?;
        let map = match residency {
            // Nothing cannot be mapped.
            _ if metadata.len() == 0 => return Ok(Self::new(Bytes::copy_of(&[]), path)),
            Residency::HugePages => copy(file, metadata.len()).map_err(io("read"))?,
            mapped => map(&file, mapped == Residency::Populated).map_err(io("map"))?,
        };
        if lock {
            map.lock().map_err(io("lock in memory"))?;
        }
        #[cfg(feature = "sigbus")]
        let guard = (residency != Residency::HugePages).then(|| register(&map)).flatten();
        let map = Self::new(Bytes::Mapped(map), path);
        #[cfg(feature = "sigbus")]
        let map = Self { guard, ..map };
        Ok(map)
    }

    /// Returns whether a page of the file could not be read since it was mapped.
    #[cfg(feature = "sigbus")]
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.guard.as_ref().is_some_and(nuthatch_sigbus::MapGuard::is_lost)
    }

    /// Returns `false`: without the guard such a page ends the process.
    #[cfg(not(feature = "sigbus"))]
    #[inline]
    #[expect(clippy::unused_self, reason = "the same shape as with the feature")]
    pub(crate) fn is_lost(&self) -> bool {
        false
    }

    /// Returns the error for a file that could not be read, if it could not.
    #[inline]
    pub(crate) fn check_readable(&self) -> Result<()> {
        if self.is_lost() { Err(Error::Unreadable(Box::new(self.path.clone()))) } else { Ok(()) }
    }

    /// Tells where the sections are that lookups read.
    ///
    /// # Panics
    /// When a section is not within the file, or the index is empty.
    pub(crate) fn set_sections(&mut self, index: Section, data: Section) {
        let section = |section: Section| {
            let bytes = &self.bytes[section.offset as usize..section.end() as usize];
            // SAFETY: the bytes live as long as `self.bytes`, which is never replaced, and the
            // accessors lend them for no longer than `self`.
            unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
        };
        self.data = section(data);
        let lines = section(index).as_chunks().0;
        assert!(!lines.is_empty(), "an index has at least one line");
        self.index = lines;
        self.windows = (self.data.len() as u64 + 1).saturating_sub(record::SHORT_MOST as u64);
    }

    /// The line of the index that lies at a fraction, in 64 bits, of all lines.
    #[inline(always)]
    pub(crate) fn line_at(&self, fraction: u64) -> &[u8; line::LEN] {
        let lines = self.index.len() as u64;
        let line = ((u128::from(fraction) * u128::from(lines)) >> 64) as usize;
        // SAFETY: a fraction, below one, of the number of lines is below it, and it is not zero.
        unsafe { self.index.get_unchecked(line) }
    }

    /// As many bytes from this place of the data as a short record can have; `None` close to its
    /// end.
    #[inline(always)]
    pub(crate) fn window(&self, at: u64) -> Option<&[u8; record::SHORT_MOST]> {
        if at >= self.windows {
            return None;
        }
        let at = at as usize;
        // SAFETY: the check leaves `SHORT_MOST` bytes between `at` and the end of the data.
        unsafe { self.data.get_unchecked(at..at + record::SHORT_MOST) }.first_chunk()
    }

    /// The lines of the index.
    #[inline]
    pub(crate) fn index(&self) -> &[[u8; line::LEN]] {
        self.index
    }

    /// The data section.
    #[inline]
    pub(crate) fn data(&self) -> &[u8] {
        self.data
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn map(file: &File, populate: bool) -> std::io::Result<Mmap> {
    let mut options = MmapOptions::new();
    if populate {
        options.populate();
    }
    // SAFETY: the bytes stay as they are while mapped as long as nobody writes into a published
    // snapshot, which the format forbids: new contents come as a new file renamed over the old.
    // What a damaged file can hold is checked at every use, so it is wrong answers' worth at most.
    unsafe { options.map(file) }
}

/// Registers a map with the signal handler. `None` if there is no room for another.
#[cfg(feature = "sigbus")]
fn register(map: &Mmap) -> Option<nuthatch_sigbus::MapGuard> {
    // Bytes that turn to zeros are those of a damaged file: what is read is checked before it is
    // used as an offset or length, and where an offset was in bounds, so is 0.
    // SAFETY: so reading tolerates zeros, and the guard is dropped before the map (see `Map`).
    unsafe { nuthatch_sigbus::MapGuard::register(map.as_ptr(), map.len()) }
}

fn copy(file: File, len: u64) -> std::io::Result<Mmap> {
    let len = usize::try_from(len).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    let mut map = MmapMut::map_anon(len)?;
    #[cfg(target_os = "linux")]
    {
        // Advice only: without huge pages the copy still serves.
        let _ = map.advise(Advice::HugePage);
    }
    let mut file = file;
    file.read_exact(&mut map)?;
    map.make_read_only()
}
