//! Going on with a segment that is sealed and mostly empty.

use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::{Turn, counted};
use crate::index::table::{Row, State};
use crate::index::word::Place;
use crate::layout::GRAIN;
use crate::lock::{Byte, Mode, is_free, on_byte};
use crate::segment::Segment;
use crate::segment::appender::Appender;
use crate::segment::record::erase_head;
use rustix::fs::OFlags;

impl Turn<'_> {
    /// Goes on with a segment that is sealed and mostly empty, so that many processes that write a
    /// little do not leave many small files.
    pub(super) fn resume(&mut self, len: u64, whole: u64) -> Result<Option<Appender>> {
        let table = self.index.table();
        let small = |row: &Row| {
            let sealed = row.state == State::Sealed && !row.kept && !row.unread;
            sealed && row.counted + len + 8192 <= whole / 2
        };
        let Some((slot, row)) = table.rows().find(|(_, row)| small(row)) else { return Ok(None) };
        if !self.room(counted(whole) - row.counted.min(whole), false)?
            || table.row(slot) != Some(row)
        {
            return Ok(None);
        }
        let name = segment_name(row.file);
        let Ok(file) = self.of.folder.open_file(&name, OFlags::RDWR) else { return Ok(None) };
        let reading = Segment::open(&self.of.folder, row.file, &self.of.opening);
        // Whoever reclaims it may be about to evict it.
        let free = is_free(&file, Byte::Work)
            && on_byte(&file, Byte::Writer, Mode::Alone).unwrap_or(false);
        let Some(reading) = reading.ok().filter(|reading| free && !reading.doubtful) else {
            return Ok(None);
        };
        let Ok(last) = reading.last_record() else { return Ok(None) };
        let tail = reading.file_len().next_multiple_of(GRAIN);
        if let Some((offset, head)) = last.filter(|(_, head)| head.end() > tail) {
            let place = Place { slot, offset };
            let sets = self.index.sets();
            // An incomplete write has no words. If there are some, the file was truncated.
            let is_truncated = head.hashes().any(|hash| sets.uses(hash, place).is_some());
            if is_truncated || erase_head(&file, offset).is_err() {
                return Ok(None);
            }
        }
        if tail + len > whole {
            return Ok(None);
        }
        let writing = Row { state: State::Writing, counted: counted(whole), ..row };
        self.changing(|| table.set_row(slot, &writing));
        Ok(Some(self.appender(slot, row.file, file, reading.salt, tail, whole)))
    }
}
