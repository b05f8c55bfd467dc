//! Continuing a sealed segment that is mostly empty.

use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::{FolderGuard, charged_len};
use crate::index::table::{Row, State};
use crate::index::word::Place;
use crate::layout::GRAIN;
use crate::lock::{Byte, LockMode, is_unlocked, lock_byte};
use crate::segment::Segment;
use crate::segment::appender::Appender;
use crate::segment::record::erase_head;
use rustix::fs::OFlags;

impl FolderGuard<'_> {
    /// Continues a sealed segment that is mostly empty, so that many processes that write little do
    /// not leave many small files.
    pub(super) fn resume(&mut self, len: u64, max_len: u64) -> Result<Option<Appender>> {
        let table = self.index.table();
        let is_small = |row: &Row| {
            let is_complete =
                row.state == State::Sealed && !row.in_main_queue && !row.is_partly_indexed;
            is_complete && row.charged + len + 8192 <= max_len / 2
        };
        let Some((slot, row)) = table.rows().find(|(_, row)| is_small(row)) else {
            return Ok(None);
        };
        if !self.free_space(charged_len(max_len) - row.charged.min(max_len), false)?
            || table.row(slot) != Some(row)
        {
            return Ok(None);
        }
        let name = segment_name(row.file_number);
        let Ok(file) = self.segments.folder.open_file(&name, OFlags::RDWR) else { return Ok(None) };
        let segment = Segment::open(&self.segments.folder, row.file_number, &self.segments.opening);
        // A process that reclaims the segment may be about to evict it.
        let is_free = is_unlocked(&file, Byte::Scan)
            && lock_byte(&file, Byte::Writer, LockMode::Exclusive).unwrap_or(false);
        let Some(segment) = segment.ok().filter(|segment| is_free && !segment.is_from_earlier_boot)
        else {
            return Ok(None);
        };
        let Ok(last) = segment.last_record() else { return Ok(None) };
        let tail = segment.file_len().next_multiple_of(GRAIN);
        if let Some((offset, head)) = last.filter(|(_, head)| head.end() > tail) {
            let place = Place { slot, offset };
            let sets = self.index.sets();
            // An incomplete record has no words. If there are some, another program truncated the
            // file.
            let is_truncated = head.hashes().any(|hash| sets.uses(hash, place).is_some());
            if is_truncated || erase_head(&file, offset).is_err() {
                return Ok(None);
            }
        }
        if tail + len > max_len {
            return Ok(None);
        }
        let writing = Row { state: State::Writing, charged: charged_len(max_len), ..row };
        self.with_dirty_mark(|| table.set_row(slot, &writing));
        Ok(Some(self.appender(slot, row.file_number, file, segment.salt, tail, max_len)))
    }
}
