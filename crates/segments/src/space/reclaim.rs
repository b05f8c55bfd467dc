//! Reclaiming a segment: what is to be kept is moved, the rest leaves the index.

use super::census::Live;
use super::victim::Search;
use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::Turn;
use crate::index::Index;
use crate::index::table::Row;
use crate::index::word::Place;
use crate::layout::index as at;
use crate::lock::{Byte, Mode, is_free, on_byte};
use crate::segment::Segment;
use crate::segment::record::Head;
use rustix::fs::OFlags;
use std::fs::File;

impl Turn<'_> {
    /// Saves what is to be saved of a segment and takes the rest out of the index. False if the
    /// segment stays. The lock of the folder is given back meanwhile.
    pub(super) fn reclaim(
        &mut self,
        slot: u32,
        row: &Row,
        segment: &Segment,
        search: &Search,
        nested: bool,
    ) -> Result<bool> {
        let Some(work) = self.work_on(row) else { return Ok(false) };
        // A record that is written and not entered yet would lead to the slot for ever.
        if !is_free(&work, Byte::Writer) {
            return Ok(false);
        }
        let index = self.index;
        self.release();
        let census = self.census(slot, segment, search);
        // What the system did not read may be pinned.
        if census.is_refused && !search.pins.is_empty() {
            self.retake()?;
            return Ok(false);
        }
        // In the midst of moving there is nowhere to move to: what is not pinned goes.
        let stays = census.saved * 2 > census.all || nested && census.pinned > 0;
        if stays && (!search.forced || census.pinned > 0) {
            self.forget_uses(slot, segment, &census.live);
            self.retake()?;
            self.let_stay(slot, row);
            return Ok(false);
        }
        self.moving = Some(slot).filter(|_| !nested).or(self.moving);
        let saved = if nested { Ok(true) } else { self.save(slot, segment, &census.live) };
        self.moving = self.moving.filter(|_| nested);
        let saved = saved?;
        if saved {
            self.take_out(slot, segment);
        }
        self.retake()?;
        Ok(saved && self.is_unchanged(index, slot, row))
    }

    /// Returns whether a segment can be evicted whose words were removed from an index without the
    /// lock of the folder. If another process has grown the index meanwhile, the new index may have
    /// these words.
    pub(super) fn is_unchanged(&self, index: &Index, slot: u32, row: &Row) -> bool {
        std::ptr::eq(index, self.index) && self.index.table().row(slot) == Some(*row)
    }

    /// Locks a segment whose records are to be gone through. `None` if another process does.
    pub(crate) fn work_on(&self, row: &Row) -> Option<File> {
        let file = self.of.folder.open_file(&segment_name(row.file), OFlags::RDWR).ok()?;
        on_byte(&file, Byte::Work, Mode::Alone).unwrap_or(false).then_some(file)
    }

    /// Takes what leads to a segment out of the index.
    pub(super) fn take_out(&self, slot: u32, segment: &Segment) {
        let sets = self.index.sets();
        let gaps = segment.walk(|offset, head| {
            for hash in head.hashes() {
                sets.remove(hash, Place { slot, offset });
            }
        });
        // What was a record tells no more what led to it.
        if gaps.any {
            sets.sweep(|place| place.slot == slot);
        }
    }

    /// Takes one from the uses of records that stay.
    fn forget_uses(&self, slot: u32, segment: &Segment, live: &[Live]) {
        let sets = self.index.sets();
        for &Live { offset, .. } in live {
            for hash in segment.read_head(offset).iter().flat_map(Head::hashes) {
                sets.forget_use(hash, Place { slot, offset });
            }
        }
    }

    /// Another round for a segment, at the end of the queue of those that hold what was used.
    fn let_stay(&mut self, slot: u32, row: &Row) {
        let table = self.index.table();
        if table.row(slot) == Some(*row) {
            let turn = self.next(at::TURN);
            self.changing(|| table.set_row(slot, &Row { kept: true, turn, ..*row }));
        }
    }
}
