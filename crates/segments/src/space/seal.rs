//! Sealing segments: ending writes to them.

use crate::folder::names::segment_name;
use crate::guard::{FolderGuard, charged_len};
use crate::index::table::{Row, State};
use crate::lock::{Byte, LockMode, lock_byte};
use crate::segment::appender::Appender;
use rustix::fs::OFlags;

impl FolderGuard<'_> {
    /// Ends appending to a segment and frees the bytes that it reserved and did not use.
    pub(crate) fn seal(&mut self, appender: Appender) {
        let table = self.index.table();
        let row = table.row(appender.slot).filter(|row| row.file_number == appender.number);
        if let Some(row) = row.filter(|_| appender.family == self.index.family) {
            // The file may be longer: it belonged to another segment before, or is preallocated.
            if let Some(before) =
                appender.file.metadata().ok().filter(|file| file.len() > appender.tail)
            {
                let _ = appender.file.set_len(appender.tail);
                // The time of the last write is that of the last put.
                let _ = before.modified().and_then(|written| appender.file.set_modified(written));
            }
            let sealed = Row { state: State::Sealed, charged: charged_len(appender.tail), ..row };
            self.with_dirty_mark(|| table.set_row(appender.slot, &sealed));
        }
        drop(appender);
    }

    /// Seals the segments of processes that died.
    pub(crate) fn seal_orphans(&mut self) -> bool {
        let table = self.index.table();
        let mut found = false;
        for (slot, row) in table.rows().filter(|(_, row)| row.state == State::Writing) {
            let name = segment_name(row.file_number);
            let Ok(file) = self.segments.folder.open_file(&name, OFlags::RDWR) else { continue };
            if !lock_byte(&file, Byte::Writer, LockMode::Exclusive).unwrap_or(false) {
                continue;
            }
            let len = file.metadata().map_or(0, |metadata| metadata.len());
            let sealed = Row { state: State::Sealed, charged: charged_len(len), ..row };
            self.with_dirty_mark(|| table.set_row(slot, &sealed));
            found = true;
        }
        found
    }
}
