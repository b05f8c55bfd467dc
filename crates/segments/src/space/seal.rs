//! Sealing segments.

use crate::folder::names::segment_name;
use crate::guard::{Turn, counted};
use crate::index::table::{Row, State};
use crate::lock::{Byte, Mode, on_byte};
use crate::segment::appender::Appender;
use rustix::fs::OFlags;

impl Turn<'_> {
    /// Ends the appending to a segment; what it reserved and did not use is given back.
    pub(crate) fn seal(&mut self, full: Appender) {
        let table = self.index.table();
        let row = table.row(full.slot).filter(|row| row.file == full.number);
        if let Some(row) = row.filter(|_| full.family == self.index.family) {
            // The file may be longer: it was another segment's before, or has pages to spare.
            if let Some(before) = full.file.metadata().ok().filter(|file| file.len() > full.tail) {
                let _ = full.file.set_len(full.tail);
                // When it was last written to is when something was put.
                let _ = before.modified().and_then(|written| full.file.set_modified(written));
            }
            let sealed = Row { state: State::Sealed, counted: counted(full.tail), ..row };
            self.changing(|| table.set_row(full.slot, &sealed));
        }
        drop(full);
    }

    /// Seals what processes that died were appending to. Whether there was any.
    pub(super) fn seal_orphans(&mut self) -> bool {
        let table = self.index.table();
        let mut found = false;
        for (slot, row) in table.rows().filter(|(_, row)| row.state == State::Writing) {
            let name = segment_name(row.file);
            let Ok(file) = self.of.folder.open_file(&name, OFlags::RDWR) else { continue };
            if !on_byte(&file, Byte::Writer, Mode::Alone).unwrap_or(false) {
                continue;
            }
            let len = file.metadata().map_or(0, |metadata| metadata.len());
            let sealed = Row { state: State::Sealed, counted: counted(len), ..row };
            self.changing(|| table.set_row(slot, &sealed));
            found = true;
        }
        found
    }
}
