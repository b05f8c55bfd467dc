//! A segment that is open for reading.

pub(crate) mod appender;
mod header;
mod pages;
pub(crate) mod record;
mod refusal;
mod scan;
mod view;

pub(crate) use header::header;
pub(crate) use pages::Pages;
pub(crate) use refusal::Refusal;
pub(crate) use scan::Gaps;
pub(crate) use view::Lent;

use crate::folder::Folder;
use crate::folder::names::segment_name;
use crate::layout::segment as at;
use crate::map::Bytes;
use header::read_header;
use record::{Head, decode, length_of_head};
use refusal::errno;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::UNIX_EPOCH;

/// Heads that are remembered for each segment; all are forgotten when there are more.
const MAX_HEADS: usize = 4096;
/// Bytes that are read for a head at first: few heads are longer.
const HEAD_READ_LEN: usize = 1024;

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
