//! A segment that is open for reading, with the heads that this process has read.

pub(crate) mod appender;
mod header;
mod open_error;
mod preallocation;
pub(crate) mod record;
mod scan;
mod view;

pub(crate) use header::header;
pub(crate) use open_error::OpenError;
pub(crate) use preallocation::Preallocation;
pub(crate) use scan::Gaps;
pub(crate) use view::SegmentView;

use crate::folder::Folder;
use crate::folder::names::segment_name;
use crate::layout::segment as at;
use crate::map::Bytes;
use header::read_header;
use open_error::errno;
use record::{Head, decode, encoded_head_len};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::UNIX_EPOCH;

/// Maximum number of heads in memory for each segment. All are dropped when there are more.
const MAX_HEADS: usize = 4096;
/// Bytes of the first read of a head; few heads are longer.
const HEAD_READ_LEN: usize = 1024;

/// Settings that are the same for all segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenSettings {
    /// Identifies the current boot of the machine.
    pub(crate) boot: u64,
    /// Whether maps are registered with the handler of `SIGBUS`.
    pub(crate) guard: bool,
    /// Bytes by which a file may still grow.
    pub(crate) growth: u64,
}

/// A segment that is open for reading.
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) salt: u64,
    /// Written before the machine last started. Parts of it may not have reached the disk.
    pub(crate) is_from_earlier_boot: bool,
    file: File,
    guard: bool,
    /// The process that opened the file. A forked process shares its locks and must not release
    /// them.
    process_id: u32,
    /// Bytes by which the file may still grow.
    growth: u64,
    heads: RwLock<HashMap<u64, Arc<Head>>>,
    bytes: OnceLock<Option<Bytes>>,
    /// Number of views.
    view_count: Mutex<usize>,
}

impl Segment {
    /// Opens a segment and validates its header.
    ///
    /// # Errors
    ///
    /// Returns the reason if the file cannot be used.
    pub(crate) fn open(
        folder: &Folder,
        number: u64,
        opening: &OpenSettings,
    ) -> Result<Self, OpenError> {
        let file =
            folder.open_file(&segment_name(number), OFlags::RDONLY).map_err(|e| match e {
                Errno::NOENT => OpenError::Missing,
                Errno::LOOP | Errno::NXIO => OpenError::Damaged,
                errno => OpenError::System(errno),
            })?;
        let mut bytes = [0; at::HEADER_LEN];
        file.read_exact_at(&mut bytes, 0).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::IsADirectory | ErrorKind::NotSeekable => {
                OpenError::Damaged
            }
            _ => OpenError::System(errno(&e)),
        })?;
        let (salt, boot) = read_header(&bytes, number)?;
        Ok(Self {
            number,
            salt,
            is_from_earlier_boot: boot != opening.boot,
            file,
            guard: opening.guard,
            process_id: std::process::id(),
            growth: opening.growth,
            heads: RwLock::default(),
            bytes: OnceLock::new(),
            view_count: Mutex::default(),
        })
    }

    /// Returns the length of the file, or zero if the system call fails.
    pub(crate) fn file_len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Returns the time of the last write in milliseconds since 1970, or zero if the system
    /// call fails.
    pub(crate) fn written_ms(&self) -> u64 {
        let written = self.file.metadata().and_then(|metadata| metadata.modified()).ok();
        let since = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_millis() as u64)
    }

    /// Fills a buffer from an offset on. Returns false if the file is too short or the system
    /// refuses.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        self.file.read_exact_at(out, offset).is_ok()
    }

    /// Fills a buffer from an offset on. Returns false if the file is too short.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn try_read(&self, offset: u64, out: &mut [u8]) -> Result<bool, Errno> {
        match self.file.read_exact_at(out, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(errno(&error)),
        }
    }

    /// Returns the head at an offset. `None` if there is no valid head, or if the system does not
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

    /// Reads a head and keeps it in memory.
    #[cold]
    fn head_from_file(&self, offset: u64) -> Option<Arc<Head>> {
        let head = Arc::new(self.read_head(offset)?);
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        if heads.len() >= MAX_HEADS {
            heads.clear();
        }
        // Another thread may have added it meanwhile, and may have checked its parts.
        Some(heads.entry(offset).or_insert(head).clone())
    }

    /// Reads a head without keeping it in memory. Returns `None` as [`Segment::head`] does.
    pub(crate) fn read_head(&self, offset: u64) -> Option<Head> {
        self.try_head(offset).ok().flatten()
    }

    /// Reads a head without keeping it in memory. Returns `None` if there is no valid head.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not read the bytes.
    pub(crate) fn try_head(&self, offset: u64) -> Result<Option<Head>, Errno> {
        if offset < at::HEADER_LEN as u64 {
            return Ok(None);
        }
        let mut first_bytes = [0; HEAD_READ_LEN];
        let read = self.file.read_at(&mut first_bytes, offset).map_err(|error| errno(&error))?;
        let found = &first_bytes[..read];
        let Some(len) = encoded_head_len(found) else { return Ok(None) };
        if len <= read {
            return Ok(decode(found, self.salt, offset, self.number));
        }
        let mut all_bytes = vec![0; len];
        let read = self.try_read(offset, &mut all_bytes)?;
        Ok(read.then(|| decode(&all_bytes, self.salt, offset, self.number)).flatten())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Options, Part, Record, Segments, checksum};
    use std::path::Path;

    /// Stores three records with one part each.
    pub(crate) fn put_three(segments: &Segments) {
        let parts = [Part { end: 4, checksum: checksum(b"data") }];
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
        // A file that is open for writing only, so reads fail.
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
            let gaps = segment.scan(|_, _| records += 1);
            (records, gaps.error)
        };
        assert_eq!(count(&open_first(&segments)), (3, None));
        let index = segments.index().expect("an index");
        let refused = index.table().rows().find_map(|(slot, _)| segments.segment(index, slot));
        assert_eq!(count(&refused.expect("a segment")), (0, Some(Errno::BADF)));
    }
}
