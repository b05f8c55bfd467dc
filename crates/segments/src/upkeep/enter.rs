//! Entering the parts of segments that are not in the index yet.

use crate::error::Result;
use crate::guard::FolderGuard;
use crate::index::sets::Inserted;
use crate::index::table::Row;
use crate::index::word::Place;
use crate::layout::index as at;
use crate::segment::Segment;
use std::sync::atomic::Ordering;

impl FolderGuard<'_> {
    /// Enters the parts of all partly indexed segments, except those that another process scans.
    /// Releases the table lock meanwhile.
    pub(super) fn enter_missing_parts(&mut self) -> Result<()> {
        let rows: Vec<_> =
            self.index.table().rows().filter(|(_, row)| row.is_partly_indexed).collect();
        for (slot, row) in rows {
            if self.index.table().row(slot) != Some(row) {
                continue;
            }
            let Some(_scan_lock) = self.lock_for_scan(&row) else { continue };
            let Some(segment) = self.segments.segment(self.index, slot) else { continue };
            let without_space = loop {
                let index = self.index;
                self.release();
                let without_space = self.enter_all(slot, &segment);
                self.retake()?;
                // Another process that grew the index meanwhile may have copied it before the words
                // were entered.
                let is_copied = !std::ptr::eq(index, self.index);
                let row_now = self.index.table().row(slot);
                let is_same = row_now.is_some_and(|found| found.file_number == row.file_number);
                if !is_same || !is_copied && (without_space == 0 || !self.grow(false)?) {
                    break without_space;
                }
            };
            self.index.word(at::DISPLACED).fetch_add(without_space, Ordering::Relaxed);
            if let Some(found) =
                self.index.table().row(slot).filter(|found| found.file_number == row.file_number)
            {
                let table = self.index.table();
                self.with_dirty_mark(|| {
                    table.set_row(slot, &Row { is_partly_indexed: false, ..found });
                });
            }
        }
        Ok(())
    }

    /// Enters the parts of a segment. Returns the number of parts that found no space.
    fn enter_all(&self, slot: u32, segment: &Segment) -> u64 {
        let (table, sets) = (self.index.table(), self.index.sets());
        let mut without_space = 0;
        let len = segment.file_len();
        segment.scan(|offset, head| {
            // The record is incomplete.
            if head.data_offset + head.data_len() > len {
                return;
            }
            let place = Place { slot, offset };
            for hash in head.hashes() {
                let is_gone = |place: Place| table.number(place.slot) == 0;
                without_space += u64::from(sets.insert(hash, place, 0, is_gone) == Inserted::Full);
            }
        });
        without_space
    }
}
