//! Growing the index: its words are copied into twice as many sets, while readers go on.

use crate::error::Result;
use crate::folder::settings::{self, Settings};
use crate::guard::{Turn, counted};
use crate::index::Index;
use crate::index::geometry::{GROWN_SHARE, Geometry};
use crate::layout::{INDEX_NAME, INDEX_NEW, index as at};
use crate::segments::Segments;

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::fs::File;
use std::sync::atomic::Ordering;

/// Puts that find no room in an index that cannot grow, before it is asked again.
const PAUSE: u32 = 1000;

impl Segments {
    /// Has an index grow in which a word found no room. Returns whether there is another one now.
    pub(crate) fn grow(&self, full: &Index) -> bool {
        let pause = &self.growth_pause;
        let less = |left: u32| left.checked_sub(1);
        if pause.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return false;
        }
        let Ok(Some(mut turn)) = self.turn() else { return false };
        let grown = !std::ptr::eq(turn.index, full) || turn.grow(true).unwrap_or(false);
        if !grown {
            pause.store(PAUSE, Ordering::Relaxed);
        }
        grown
    }
}

impl Turn<'_> {
    /// Doubles the sets of the index, within the limit or whatever it takes. Returns whether there
    /// is another index now.
    pub(crate) fn grow(&mut self, within_limit: bool) -> Result<bool> {
        let (used, words) = self.index.sets().fill();
        // Sets are full of few words only if their names are no hashes.
        if used * 2 < words {
            return Ok(false);
        }
        self.double(within_limit)
    }

    /// Has the index be as big as the settings ask for. One that is too big for a limit that was
    /// lowered is made again.
    pub(crate) fn fit_index(&mut self) -> Result<()> {
        let usual = self.segment_len();
        let small = Geometry::suit(self.settings.limit, usual, 0).file_len();
        let len = self.index.geometry.file_len();
        if len > small && len > self.settings.limit / GROWN_SHARE {
            let settings = Settings { parts: 0, ..self.settings };
            settings::store(&self.of.folder, settings)?;
            (self.settings, self.alone.settings) = (settings, Some(settings));
            self.index = self.of.rebuild(&mut self.alone, settings)?;
            return self.settle();
        }
        let wanted = Geometry::suit(self.settings.limit, usual, self.settings.parts).sets();
        while self.index.geometry.sets() < wanted && self.double(true)? {}
        Ok(())
    }

    fn double(&mut self, within_limit: bool) -> Result<bool> {
        let old = self.index;
        let Some(geometry) = old.geometry.doubled(self.settings.limit) else { return Ok(false) };
        if within_limit && !self.room(counted(geometry.file_len()), true)? {
            return Ok(false);
        }
        if !std::ptr::eq(old, self.index) {
            return Ok(true);
        }
        let (of, settings) = (self.of, self.settings);
        let file = of.folder.open_file(INDEX_NAME, OFlags::RDWR);
        let made = Index::make(&of.folder, geometry, old.family, settings, of.options.guard);
        let Ok(new) = made else {
            let _ = of.folder.remove(INDEX_NEW);
            return Ok(false);
        };
        // From now on, who enters a word looks afterwards whether the index is being copied, and
        // enters it into the copy too. So each word is either seen here or entered there.
        old.retire(at::COPYING);
        copy(old, &new);
        if let Err(error) = Index::publish(&of.folder) {
            old.retire(at::IN_USE);
            return Err(error);
        }
        self.index = of.adopt_index(new)?;
        old.retire(at::REPLACED);
        if let Ok(file) = file {
            free_pages(&file, old.geometry.file_len());
        }
        // If it is ever made from the segments, it begins as big.
        self.settings.parts = self.settings.parts.max(geometry.parts());
        if settings::store(&of.folder, self.settings).is_ok() {
            self.index.set_settings(self.settings);
        } else {
            self.settings = settings;
        }
        Ok(true)
    }
}

fn copy(old: &Index, new: &Index) {
    for word in
        [at::DIRTY, at::NEXT, at::TURN, at::EVICTED, at::MOVED, at::DISPLACED, at::FIRST_OWN]
    {
        new.word(word).store(old.word(word).load(Ordering::Relaxed), Ordering::Relaxed);
    }
    let (from, to) = (old.table(), new.table());
    for (slot, row) in from.rows() {
        to.set_row(slot, &row);
        to.set_number(slot, from.number(slot));
    }
    let left = old.sets().copy_into(&new.sets(), |place| from.number(place.slot) == 0);
    new.word(at::DISPLACED).fetch_add(left, Ordering::Relaxed);
}

/// Gives the pages of an index that was replaced back to the system, all but its header: processes
/// may have it mapped for long. They read zeros, which lead nowhere.
pub(crate) fn free_pages(file: &File, len: u64) {
    let header = at::HEADER_LEN as u64;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = fallocate(file, flags, header, len.saturating_sub(header).max(1));
}
