//! A segment that is open for reading.

use crate::folder::{Folder, segment_name};
use crate::layout::{GRAIN, record, segment as at};
use crate::lock::{Byte, Mode, on_byte};
use crate::map::Bytes;
use crate::record::{Head, decode, length_of_head};
use nuthatch_filesystem::file_limit_advice;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::UNIX_EPOCH;
use xxhash_rust::xxh3::xxh3_64;

/// Heads that are remembered for each segment; all are forgotten when there are more.
const MAX_HEADS: usize = 4096;
/// Bytes that are read for a head at first: few heads are longer.
const HEAD_READ_LEN: usize = 1024;
/// Bytes that are looked through at a time for a head.
const WINDOW: usize = 64 << 10;

/// Why a segment could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no such file.
    Missing,
    /// It is no segment, or not the one that its name says.
    Damaged,
    /// A newer version of this crate wrote it.
    Newer,
    /// The system refused: nothing is known of it.
    System(Errno),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such file"),
            Self::Damaged => f.write_str("damaged"),
            Self::Newer => f.write_str("a newer version wrote it"),
            Self::System(errno) => {
                let error = std::io::Error::from(*errno);
                write!(f, "{error}{}", file_limit_advice(&error).unwrap_or_default())
            }
        }
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// What lies in a segment beside its records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// There are bytes that are no record. They may never have been written, or have been zeroed.
    pub(crate) any: bool,
    /// Some of them begin with other bytes than zeros: damage, or an incomplete record. Also set
    /// with `refused`.
    pub(crate) written: bool,
    /// What the system said when it refused to read bytes: nothing is known of them.
    pub(crate) refused: Option<Errno>,
}

/// The header of a new segment.
pub(crate) fn header(number: u64, salt: u64, boot: u64) -> [u8; at::HEADER_LEN] {
    let mut bytes = [0; at::HEADER_LEN];
    let mut put = |at: usize, from: &[u8]| bytes[at..at + from.len()].copy_from_slice(from);
    put(at::MAGIC_AT, at::MAGIC);
    put(at::VERSION, &at::VERSION_NOW.to_le_bytes());
    put(at::NUMBER, &number.to_le_bytes());
    put(at::SALT, &salt.to_le_bytes());
    put(at::BOOT, &boot.to_le_bytes());
    let check = xxh3_64(&bytes[..at::CHECK]);
    bytes[at::CHECK..].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Returns the salt and the boot of a segment with a header.
fn read_header(bytes: &[u8; at::HEADER_LEN], number: u64) -> Result<(u64, u64), Refusal> {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let good = bytes[..at::VERSION] == *at::MAGIC
        && word(at::NUMBER) == number
        && word(at::CHECK) == xxh3_64(&bytes[..at::CHECK]);
    match word(at::VERSION) as u32 {
        at::VERSION_NOW if good => Ok((word(at::SALT), word(at::BOOT))),
        version if good && version > at::VERSION_NOW => Err(Refusal::Newer),
        _ => Err(Refusal::Damaged),
    }
}

/// What is the same for all segments that are opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// Identifies the current boot of the machine.
    pub(crate) boot: u64,
    /// Whether maps are watched.
    pub(crate) guard: bool,
    /// By how much a file may still grow.
    pub(crate) growth: u64,
}

/// A segment that is open for reading.
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) salt: u64,
    /// Written before the machine last started: nobody knows how much of it reached the disk.
    pub(crate) doubtful: bool,
    file: File,
    guard: bool,
    /// Who opened it: a fork shares the locks and must not give them back.
    process: u32,
    /// Bytes by which the file may still grow.
    growth: u64,
    heads: RwLock<HashMap<u64, Arc<Head>>>,
    bytes: OnceLock<Option<Bytes>>,
    /// How many have the bytes lent.
    lent: Mutex<usize>,
}

impl Segment {
    pub(crate) fn open(folder: &Folder, number: u64, opening: &Opening) -> Result<Self, Refusal> {
        let file =
            folder.open_file(&segment_name(number), OFlags::RDONLY).map_err(|e| match e {
                Errno::NOENT => Refusal::Missing,
                Errno::LOOP | Errno::NXIO => Refusal::Damaged,
                errno => Refusal::System(errno),
            })?;
        let mut bytes = [0; at::HEADER_LEN];
        file.read_exact_at(&mut bytes, 0).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::IsADirectory | ErrorKind::NotSeekable => {
                Refusal::Damaged
            }
            _ => Refusal::System(errno(&e)),
        })?;
        let (salt, wrote) = read_header(&bytes, number)?;
        Ok(Self {
            number,
            salt,
            doubtful: wrote != opening.boot,
            file,
            guard: opening.guard,
            process: std::process::id(),
            growth: opening.growth,
            heads: RwLock::default(),
            bytes: OnceLock::new(),
            lent: Mutex::default(),
        })
    }

    pub(crate) fn file_len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// When something was last written to it, in milliseconds since 1970; zero if nobody knows.
    pub(crate) fn written_ms(&self) -> u64 {
        let written = self.file.metadata().and_then(|metadata| metadata.modified()).ok();
        let since = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_millis() as u64)
    }

    /// Reads all of a buffer. False if the file has not so many bytes or the system refuses.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        self.file.read_exact_at(out, offset).is_ok()
    }

    /// Reads all of a buffer. Returns whether the file has so many bytes.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read them.
    pub(crate) fn try_read(&self, offset: u64, out: &mut [u8]) -> Result<bool, Errno> {
        match self.file.read_exact_at(out, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(errno(&error)),
        }
    }

    /// Returns the head at an offset. `None` if there is no valid one, or if the system does not
    /// read it.
    #[inline]
    pub(crate) fn head(&self, offset: u64) -> Option<Arc<Head>> {
        let heads = self.heads.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = heads.get(&offset) {
            return Some(head.clone());
        }
        drop(heads);
        self.head_from_file(offset)
    }

    #[cold]
    fn head_from_file(&self, offset: u64) -> Option<Arc<Head>> {
        let head = Arc::new(self.read_head(offset)?);
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        if heads.len() >= MAX_HEADS {
            heads.clear();
        }
        // Another thread may have been quicker, and may know of the bytes already.
        Some(heads.entry(offset).or_insert(head).clone())
    }

    /// Reads a head without remembering it.
    pub(crate) fn read_head(&self, offset: u64) -> Option<Head> {
        self.try_head(offset).ok().flatten()
    }

    /// Reads a head without remembering it. `None` if there is none that is right.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read the bytes: nothing is known of them.
    pub(crate) fn try_head(&self, offset: u64) -> Result<Option<Head>, Errno> {
        if offset < at::HEADER_LEN as u64 {
            return Ok(None);
        }
        let mut short = [0; HEAD_READ_LEN];
        let read = self.file.read_at(&mut short, offset).map_err(|error| errno(&error))?;
        let found = &short[..read];
        let Some(len) = length_of_head(found) else { return Ok(None) };
        if len <= read {
            return Ok(decode(found, self.salt, offset, self.number));
        }
        let mut long = vec![0; len];
        let read = self.try_read(offset, &mut long)?;
        Ok(read.then(|| decode(&long, self.salt, offset, self.number)).flatten())
    }

    /// Returns the last record and its offset: scans backward from the end of the file to the last
    /// head. The record may be longer than the file, if its write did not end.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read the bytes.
    pub(crate) fn last_record(&self) -> Result<Option<(u64, Head)>, Errno> {
        let mut window = vec![0; WINDOW];
        let mut end = self.file_len().next_multiple_of(GRAIN);
        while end > at::HEADER_LEN as u64 {
            let from = end.saturating_sub(WINDOW as u64).max(at::HEADER_LEN as u64);
            let read = self.file.read_at(&mut window[..(end - from) as usize], from);
            let read = read.map_err(|error| errno(&error))?;
            for (grain, bytes) in window[..read].chunks(GRAIN as usize).enumerate().rev() {
                let offset = from + grain as u64 * GRAIN;
                if bytes.starts_with(&record::MAGIC.to_le_bytes())
                    && let Some(head) = self.try_head(offset)?
                {
                    return Ok(Some((offset, head)));
                }
            }
            end = from;
        }
        Ok(None)
    }

    /// Visits each record with a valid head, with its offset: also a last one that is longer than
    /// the file. Skips other bytes. Stops at the first error of the system
    /// ([`Gaps::refused`]).
    pub(crate) fn walk(&self, mut visit: impl FnMut(u64, Head)) -> Gaps {
        let end = self.file_len();
        let mut offset = at::HEADER_LEN as u64;
        let mut gaps = Gaps::default();
        while offset < end {
            crate::work::count();
            let next = match self.try_head(offset) {
                Ok(Some(head)) => {
                    let next = head.end();
                    visit(offset, head);
                    Ok(Some(next))
                }
                Ok(None) => {
                    gaps.any = true;
                    self.is_blank(offset).and_then(|is_blank| {
                        gaps.written |= !is_blank;
                        self.next_magic(offset + GRAIN, end)
                    })
                }
                Err(errno) => Err(errno),
            };
            match next {
                Ok(Some(next)) => offset = next,
                Ok(None) => break,
                Err(errno) => {
                    (gaps.any, gaps.written, gaps.refused) = (true, true, Some(errno));
                    break;
                }
            }
        }
        gaps
    }

    /// Returns whether the 64 bytes at an offset exist and are zeros.
    fn is_blank(&self, offset: u64) -> Result<bool, Errno> {
        let mut grain = [1; GRAIN as usize];
        Ok(self.try_read(offset, &mut grain)? && grain == [0; GRAIN as usize])
    }

    /// Returns the next place where a head may be.
    fn next_magic(&self, from: u64, end: u64) -> Result<Option<u64>, Errno> {
        let mut window = vec![0; WINDOW];
        let mut offset = from;
        while offset < end {
            let read = self.file.read_at(&mut window, offset).map_err(|error| errno(&error))?;
            if read == 0 {
                break;
            }
            let grains = window[..read].chunks(GRAIN as usize);
            let magic = record::MAGIC.to_le_bytes();
            if let Some(grain) = grains.into_iter().position(|grain| grain.starts_with(&magic)) {
                return Ok(Some(offset + grain as u64 * GRAIN));
            }
            offset += WINDOW as u64;
        }
        Ok(None)
    }

    /// Takes the shared lock on byte 1, and returns a view of the bytes. `None` if the lock is not
    /// available, because a process is about to free them, or in a forked process. The caller must
    /// then check the number in the row: see [`Lent`].
    pub(crate) fn lend(self: &Arc<Self>) -> Option<Lent> {
        if self.process != std::process::id() {
            return None;
        }
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        if *lent == 0 && !on_byte(&self.file, Byte::Lent, Mode::Shared).unwrap_or(false) {
            return None;
        }
        *lent += 1;
        drop(lent);
        Some(Lent(self.clone()))
    }

    fn mapped(&self) -> Option<&Bytes> {
        let map = || {
            // Addresses to spare, since the file may still grow.
            let len = (self.file_len() + self.growth).next_multiple_of(1 << 20);
            let len = usize::try_from(len).ok()?;
            Bytes::map(&self.file, len, self.guard).ok().flatten()
        };
        self.bytes.get_or_init(map).as_ref()
    }
}

/// Holds the lock for lending, shared by all of this process that lend bytes of a segment.
///
/// Whoever evicts a segment first takes its number out of the slot and then asks for the lock
/// alone: if he gets it, he frees the bytes at once, otherwise they are freed when the last one
/// that lends them ends. So bytes stay if the number is still there after the lock was taken.
pub(crate) struct Lent(Arc<Segment>);

impl Lent {
    /// Whether the file has bytes of a range, and they are mapped.
    pub(crate) fn has(&self, range: &Range<u64>) -> bool {
        let mapped = self.0.mapped().filter(|bytes| !bytes.lost());
        let end = mapped.map_or(0, |bytes| bytes.len() as u64);
        range.end <= end && range.end <= self.0.file_len()
    }

    /// Bytes of the file. Empty if they are not mapped.
    #[inline]
    pub(crate) fn bytes(&self, range: &Range<u64>) -> &[u8] {
        let mapped = self.0.mapped();
        mapped.map_or(&[], |bytes| bytes.slice(range.start as usize..range.end as usize))
    }

    /// Whether the file was cut off under the map.
    pub(crate) fn lost(&self) -> bool {
        self.0.mapped().is_none_or(Bytes::lost)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut lent = self.0.lent.lock().unwrap_or_else(PoisonError::into_inner);
        *lent -= 1;
        if *lent == 0 && self.0.process == std::process::id() {
            let _ = on_byte(&self.0.file, Byte::Lent, Mode::None);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Options, Part, Record, Segments, checksum};
    use std::path::Path;

    /// Puts three records with one part each.
    pub(crate) fn put_three(segments: &Segments) {
        let parts = [Part { end: 4, sum: checksum(b"data") }];
        for first in 0..3 {
            let (name, label) = ([3; 16], &b"label"[..]);
            let record = Record { name, first, label, expiry: 0, parts: &parts, data: b"data" };
            segments.put(&record).expect("a put");
        }
    }

    /// Opens a folder with one segment of three records that this handle cannot read, as on a
    /// failing disk.
    pub(crate) fn folder_with_unreadable_segment(path: &Path) -> Segments {
        let open = || Segments::open(path, &Options::new().limit(4 << 20)).expect("a folder");
        put_three(&open());
        let segments = open();
        let index = segments.index().expect("an index");
        let (mut segment, path) = (open_first(&segments), path.join(segment_name(1)));
        // A file that is open for writing alone.
        segment.file = File::options().write(true).open(path).expect("a file");
        let (slot, _) = index.table().rows().next().expect("a segment");
        *index.segments[slot as usize].write().expect("no panic") = Some(Arc::new(segment));
        segments
    }

    fn open_first(segments: &Segments) -> Segment {
        Segment::open(&segments.folder, 1, &segments.opening).expect("a segment")
    }

    #[test]
    fn bytes_that_the_system_refuses_to_read_are_not_taken_for_absent() {
        let place = tempfile::tempdir().expect("a folder");
        let segments = folder_with_unreadable_segment(place.path());
        let count = |segment: &Segment| {
            let mut records = 0;
            let gaps = segment.walk(|_, _| records += 1);
            (records, gaps.refused)
        };
        assert_eq!(count(&open_first(&segments)), (3, None));
        let index = segments.index().expect("an index");
        let refused = index.table().rows().find_map(|(slot, _)| segments.segment(index, slot));
        assert_eq!(count(&refused.expect("a segment")), (0, Some(Errno::BADF)));
    }
}
