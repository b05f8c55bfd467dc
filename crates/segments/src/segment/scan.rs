//! Scans of a segment: all records, or the last one.

use super::open_error::errno;
use super::{Head, Segment};
use crate::layout::{GRAIN, record, segment as at};
use rustix::io::Errno;
use std::os::unix::fs::FileExt;

/// Bytes that are searched for a head at a time.
const WINDOW: usize = 64 << 10;

/// Bytes of a segment that belong to no record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    /// There are such bytes: never written, or zeroed.
    pub(crate) exist: bool,
    /// Some of them are not zero: damage, or an incomplete record. Also set with `error`.
    pub(crate) have_data: bool,
    /// The error that ended the scan. There may be more records.
    pub(crate) error: Option<Errno>,
}

impl Segment {
    /// Returns the last record and its offset. Searches backward from the end of the file for a
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

    /// Visits each record with a valid head, with its offset, including a last one that is longer
    /// than the file. Skips other bytes. Stops at the first error of the system ([`Gaps::error`]).
    pub(crate) fn scan(&self, mut visit: impl FnMut(u64, Head)) -> Gaps {
        let end = self.file_len();
        let mut offset = at::HEADER_LEN as u64;
        let mut gaps = Gaps::default();
        while offset < end {
            crate::work_counters::count_step();
            let next = match self.try_head(offset) {
                Ok(Some(head)) => {
                    let next = head.end();
                    visit(offset, head);
                    Ok(Some(next))
                }
                Ok(None) => {
                    gaps.exist = true;
                    self.is_blank(offset).and_then(|is_blank| {
                        gaps.have_data |= !is_blank;
                        self.next_magic(offset + GRAIN, end)
                    })
                }
                Err(errno) => Err(errno),
            };
            match next {
                Ok(Some(next)) => offset = next,
                Ok(None) => break,
                Err(errno) => {
                    (gaps.exist, gaps.have_data, gaps.error) = (true, true, Some(errno));
                    break;
                }
            }
        }
        gaps
    }

    /// Returns whether the 64 bytes at an offset exist and are zero.
    fn is_blank(&self, offset: u64) -> Result<bool, Errno> {
        let mut grain = [1; GRAIN as usize];
        Ok(self.try_read(offset, &mut grain)? && grain == [0; GRAIN as usize])
    }

    /// Returns the next offset where a head may begin.
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
}
