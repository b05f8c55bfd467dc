//! The bytes of a file: mapped, or copied into memory.

use crate::error::{Error, Result};
use crate::format::header::Section;
use crate::format::layout::{line, record};
use memmap2::{Advice, Mmap, MmapMut, MmapOptions};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Where the bytes of an open snapshot are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Residency {
    /// Mapped from the page cache and read on demand. Opens in microseconds. Uses no memory besides
    /// the page cache, which all processes share.
    #[default]
    Mapped,
    /// Mapped as with `Mapped`, but `open` reads and maps every page before it returns.
    Populated,
    /// Copied into memory of this process, on huge pages if the system provides them. Lookups are
    /// fastest in files much larger than the processor's caches, but each process uses memory of
    /// the size of the file. The copy does not depend on later changes of the file.
    HugePages,
}

/// The bytes of a file, and the two sections that lookups read.
pub(crate) struct Map {
    /// The lines of the index, at least one. The slice borrows from `bytes`, which neither moves
    /// nor changes while `self` lives, so accessors return it with the lifetime of `self`.
    index: &'static [[u8; line::LEN]],
    /// The data section. Borrows from `bytes`, as `index` does.
    data: &'static [u8],
    /// Number of offsets in the data section that are followed by at least `MAX_SHORT_LEN` bytes.
    windows: u64,
    /// Whether the system was advised that index and data are accessed at random.
    is_random: bool,
    /// Declared before the map, so that it is dropped first.
    #[cfg(feature = "sigbus")]
    guard: Option<nuthatch_sigbus::MapGuard>,
    bytes: Bytes,
    path: PathBuf,
}

/// All bytes of a file. Aligned to 64 bytes, the largest alignment in the format.
enum Bytes {
    Mapped(Mmap),
    /// A copy in cache lines, and its length in bytes.
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
            // SAFETY: the lines are arrays of bytes without padding, and hold at least `len` bytes.
            Self::Copied(lines, len) => unsafe {
                std::slice::from_raw_parts(lines.as_ptr().cast(), *len)
            },
        }
    }
}

impl Map {
    /// Copies bytes into memory.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self::new(Bytes::copy_of(bytes), Path::new("(memory)"))
    }

    fn new(bytes: Bytes, path: &Path) -> Self {
        Self {
            index: &[[0; line::LEN]],
            data: &[],
            windows: 0,
            is_random: false,
            #[cfg(feature = "sigbus")]
            guard: None,
            bytes,
            path: path.to_owned(),
        }
    }

    /// Returns the map with another path of the same file.
    pub(crate) fn with_path(self, path: &Path) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Opens a file. `is_guarded` requests the signal handler of the feature `sigbus`.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the path does not name a regular file or a system call fails.
    pub(crate) fn open(
        path: &Path,
        residency: Residency,
        lock: bool,
        #[cfg_attr(
            not(feature = "sigbus"),
            expect(unused_variables, reason = "needs the handler")
        )]
        is_guarded: bool,
    ) -> Result<Self> {
        let io = |operation| move |source| Error::io(path, operation, source);
        let file = open_regular(path).map_err(io("open"))?;
        let metadata = file.metadata().map_err(io("stat"))?;
        require_regular(&metadata).map_err(io("open"))?;
        let map = match residency {
            // An empty file cannot be mapped.
            _ if metadata.len() == 0 => return Ok(Self::new(Bytes::copy_of(&[]), path)),
            Residency::HugePages => copy(file, metadata.len()).map_err(io("read"))?,
            mapped => map(&file, mapped == Residency::Populated).map_err(io("map"))?,
        };
        if lock {
            map.lock().map_err(io("lock in memory"))?;
        }
        #[cfg(feature = "sigbus")]
        let guard =
            (is_guarded && residency != Residency::HugePages).then(|| register(&map)).flatten();
        let map = Self::new(Bytes::Mapped(map), path);
        #[cfg(feature = "sigbus")]
        let map = Self { guard, ..map };
        Ok(map)
    }

    /// Returns whether an access to the map met an unreadable page.
    #[cfg(feature = "sigbus")]
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.guard.as_ref().is_some_and(nuthatch_sigbus::MapGuard::is_lost)
    }

    /// Returns `false`: without the guard, an unreadable page ends the process.
    #[cfg(not(feature = "sigbus"))]
    #[inline]
    #[expect(clippy::unused_self, reason = "the same shape as with the feature")]
    pub(crate) fn is_lost(&self) -> bool {
        false
    }

    /// Returns [`Error::Unreadable`] if an access to the map met an unreadable page.
    #[inline]
    pub(crate) fn check_readable(&self) -> Result<()> {
        if self.is_lost() { Err(Error::Unreadable(Box::new(self.path.clone()))) } else { Ok(()) }
    }

    /// Sets the sections that lookups read.
    ///
    /// # Panics
    /// Panics if a section is not within the file, or if the index has no line.
    pub(crate) fn set_sections(&mut self, index: Section, data: Section) {
        let section = |section: Section| {
            let bytes = &self.bytes[section.offset as usize..section.end() as usize];
            // SAFETY: the bytes live as long as `self.bytes`, which is never replaced, and
            // accessors return them with the lifetime of `self`.
            unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
        };
        self.data = section(data);
        let lines = section(index).as_chunks().0;
        assert!(!lines.is_empty(), "an index has at least one line");
        self.index = lines;
        self.windows = (self.data.len() as u64 + 1).saturating_sub(record::MAX_SHORT_LEN as u64);
    }

    /// Sets random access for these sections, so that the system does not read ahead. The system
    /// may ignore it.
    pub(crate) fn advise_random(&mut self, index: Section, data: Section) {
        for section in [index, data] {
            self.is_random |= self.advise(Advice::Random, section);
        }
    }

    /// Returns whether index and data are accessed at random.
    #[inline(always)]
    pub(crate) fn is_random(&self) -> bool {
        self.is_random
    }

    /// Requests the pages of a section, so that the system begins to read them.
    pub(crate) fn request(&self, section: Section) {
        self.advise(Advice::WillNeed, section);
    }

    /// Passes advice about a section, which must be within the file, to the system. Returns whether
    /// it took the advice.
    fn advise(&self, advice: Advice, section: Section) -> bool {
        let Bytes::Mapped(map) = &self.bytes else { return false };
        map.advise_range(advice, section.offset as usize, section.len as usize).is_ok()
    }

    /// Returns line number `fraction * lines / 2^64` of the index: the home line for a key hash.
    #[inline(always)]
    pub(crate) fn line_at(&self, fraction: u64) -> &[u8; line::LEN] {
        let lines = self.index.len() as u64;
        let line = ((u128::from(fraction) * u128::from(lines)) >> 64) as usize;
        // SAFETY: `fraction / 2^64` is below one, so the product is below the number of lines,
        // which is not zero.
        unsafe { self.index.get_unchecked(line) }
    }

    /// Returns the `MAX_SHORT_LEN` bytes from this offset of the data section, or `None` if fewer
    /// bytes remain. Any short record at this offset is within the window.
    #[inline(always)]
    pub(crate) fn window(&self, at: u64) -> Option<&[u8; record::MAX_SHORT_LEN]> {
        if at >= self.windows {
            return None;
        }
        let at = at as usize;
        // SAFETY: by the check above, at least `MAX_SHORT_LEN` bytes of the data follow `at`.
        unsafe { self.data.get_unchecked(at..at + record::MAX_SHORT_LEN) }.first_chunk()
    }

    /// Returns the lines of the index.
    #[inline]
    pub(crate) fn index(&self) -> &[[u8; line::LEN]] {
        self.index
    }

    /// Returns the data section.
    #[inline]
    pub(crate) fn data(&self) -> &[u8] {
        self.data
    }

    /// Returns all bytes of the file.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the path of the file, or `(memory)`.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens a regular file.
fn open_regular(path: &Path) -> std::io::Result<File> {
    // Checked before opening, too: opening a named pipe would block until it has a writer.
    std::fs::metadata(path).and_then(|it| require_regular(&it)).and_then(|()| File::open(path))
}

fn require_regular(metadata: &Metadata) -> std::io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(std::io::Error::new(ErrorKind::InvalidInput, "not a regular file"))
}

/// Maps a file. If `populate` is set, reads and maps all of its pages.
fn map(file: &File, populate: bool) -> std::io::Result<Mmap> {
    let mut options = MmapOptions::new();
    if populate {
        options.populate();
    }
    // SAFETY: the mapped bytes do not change, because the format forbids writing to a published
    // file: a new file is renamed over it instead. If a process does it nevertheless, all bytes are
    // checked at every use, so that lookups return wrong values or errors at most.
    unsafe { options.map(file) }
}

/// Registers a map with the signal handler. Returns `None` if the handler guards its maximum number
/// of maps.
#[cfg(feature = "sigbus")]
fn register(map: &Mmap) -> Option<nuthatch_sigbus::MapGuard> {
    // The handler replaces unreadable pages by zeros. Offsets and lengths that are read are checked
    // before use, and 0 is in bounds wherever another offset was.
    // SAFETY: so reading tolerates zeros, and the guard is dropped before the map (see `Map`).
    unsafe { nuthatch_sigbus::MapGuard::register(map.as_ptr(), map.len()) }
}

/// Copies a file into anonymous memory, on huge pages if the system provides them.
fn copy(file: File, len: u64) -> std::io::Result<Mmap> {
    let len = usize::try_from(len).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    let mut map = MmapMut::map_anon(len)?;
    #[cfg(target_os = "linux")]
    {
        // Only advice: without huge pages lookups are slower.
        let _ = map.advise(Advice::HugePage);
    }
    let mut file = file;
    file.read_exact(&mut map)?;
    map.make_read_only()
}
