//! Reclaiming a segment: its retained records are moved, and its words are removed from the index.

use super::census::Retained;
use super::victim::Search;
use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::FolderGuard;
use crate::index::Index;
use crate::index::table::Row;
use crate::index::word::Place;
use crate::layout::index as at;
use crate::lock::{Byte, LockMode, is_unlocked, lock_byte};
use crate::segment::Segment;
use crate::segment::record::Head;
use rustix::fs::OFlags;
use std::fs::File;

impl FolderGuard<'_> {
    /// Moves the retained records of a segment and removes its other words from the index. Returns
    /// false if the segment stays. Releases the table lock meanwhile.
    pub(super) fn reclaim(
        &mut self,
        slot: u32,
        row: &Row,
        segment: &Segment,
        search: &Search,
        is_nested: bool,
    ) -> Result<bool> {
        let Some(scan_lock) = self.lock_for_scan(row) else { return Ok(false) };
        // If a record is written whose words are not entered yet, its words would point to the slot
        // for ever.
        if !is_unlocked(&scan_lock, Byte::Writer) {
            return Ok(false);
        }
        let index = self.index;
        self.release();
        let census = self.census(slot, segment, search);
        // Records that the system did not read may be pinned.
        if census.has_read_error && !search.pins.is_empty() {
            self.retake()?;
            return Ok(false);
        }
        // If nested, there is no segment to move records to: only pinned ones keep the segment.
        let is_kept =
            census.retained_bytes * 2 > census.data_bytes || is_nested && census.pinned_bytes > 0;
        if is_kept && (!search.evicts_used || census.pinned_bytes > 0) {
            self.decrement_uses(slot, segment, &census.retained);
            self.retake()?;
            self.requeue(slot, row);
            return Ok(false);
        }
        self.moving_slot = Some(slot).filter(|_| !is_nested).or(self.moving_slot);
        let is_moved =
            if is_nested { Ok(true) } else { self.move_records(slot, segment, &census.retained) };
        self.moving_slot = self.moving_slot.filter(|_| is_nested);
        let is_moved = is_moved?;
        if is_moved {
            self.remove_words(slot, segment);
        }
        self.retake()?;
        Ok(is_moved && self.is_unchanged(index, slot, row))
    }

    /// Returns whether a segment can be evicted whose words were removed from `index` without the
    /// table lock. If another process grew the index meanwhile, the new index may have these words.
    pub(super) fn is_unchanged(&self, index: &Index, slot: u32, row: &Row) -> bool {
        std::ptr::eq(index, self.index) && self.index.table().row(slot) == Some(*row)
    }

    /// Takes the scan lock (byte 2) of a segment. `None` if another process has it.
    pub(crate) fn lock_for_scan(&self, row: &Row) -> Option<File> {
        let file =
            self.segments.folder.open_file(&segment_name(row.file_number), OFlags::RDWR).ok()?;
        lock_byte(&file, Byte::Scan, LockMode::Exclusive).unwrap_or(false).then_some(file)
    }

    /// Removes the words of a segment from the index.
    pub(super) fn remove_words(&self, slot: u32, segment: &Segment) {
        let sets = self.index.sets();
        let gaps = segment.scan(|offset, head| {
            for hash in head.hashes() {
                sets.remove(hash, Place { slot, offset });
            }
        });
        // Words of damaged records are found only by a pass over the index.
        if gaps.exist {
            sets.sweep(|place| place.slot == slot);
        }
    }

    /// Decrements the use counts of records that stay.
    fn decrement_uses(&self, slot: u32, segment: &Segment, retained: &[Retained]) {
        let sets = self.index.sets();
        for &Retained { offset, .. } in retained {
            for hash in segment.read_head(offset).iter().flat_map(Head::hashes) {
                sets.decrement_use(hash, Place { slot, offset });
            }
        }
    }

    /// Moves a segment to the end of the main queue.
    fn requeue(&mut self, slot: u32, row: &Row) {
        let table = self.index.table();
        if table.row(slot) == Some(*row) {
            let eviction_order = self.next(at::NEXT_EVICTION_ORDER);
            self.with_dirty_mark(|| {
                table.set_row(slot, &Row { in_main_queue: true, eviction_order, ..*row });
            });
        }
    }
}
