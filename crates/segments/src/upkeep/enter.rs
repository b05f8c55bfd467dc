//! Entering the parts of segments that are not in the index.

use crate::error::Result;
use crate::guard::Turn;
use crate::index::sets::Inserted;
use crate::index::table::Row;
use crate::index::word::Place;
use crate::layout::index as at;
use crate::segment::Segment;
use std::sync::atomic::Ordering;

impl Turn<'_> {
    /// Enters the parts of all segments that are not in the index as yet, but for those that
    /// another process is at. The lock of the folder is given back meanwhile.
    pub(super) fn enter_unread(&mut self) -> Result<()> {
        let rows: Vec<_> = self.index.table().rows().filter(|(_, row)| row.unread).collect();
        for (slot, row) in rows {
            if self.index.table().row(slot) != Some(row) {
                continue;
            }
            let Some(_work) = self.work_on(&row) else { continue };
            let Some(segment) = self.of.segment(self.index, slot) else { continue };
            let left = loop {
                let index = self.index;
                self.release();
                let left = self.enter_all(slot, &segment);
                self.retake()?;
                // Another process that has grown the index meanwhile may have copied it before the
                // words were entered.
                let is_copied = !std::ptr::eq(index, self.index);
                let row_now = self.index.table().row(slot);
                let is_same = row_now.is_some_and(|found| found.file == row.file);
                if !is_same || !is_copied && (left == 0 || !self.grow(false)?) {
                    break left;
                }
            };
            self.index.word(at::DISPLACED).fetch_add(left, Ordering::Relaxed);
            if let Some(found) = self.index.table().row(slot).filter(|found| found.file == row.file)
            {
                let table = self.index.table();
                self.changing(|| table.set_row(slot, &Row { unread: false, ..found }));
            }
        }
        Ok(())
    }

    /// Enters the parts of a segment. Returns how many found no room.
    fn enter_all(&self, slot: u32, segment: &Segment) -> u64 {
        let (table, sets) = (self.index.table(), self.index.sets());
        let mut left = 0;
        let len = segment.file_len();
        segment.walk(|offset, head| {
            // Its write did not end.
            if head.data_at + head.data_len() > len {
                return;
            }
            let place = Place { slot, offset };
            for hash in head.hashes() {
                let gone = |place: Place| table.number(place.slot) == 0;
                left += u64::from(sets.insert(hash, place, 0, gone) == Inserted::Full);
            }
        });
        left
    }
}
