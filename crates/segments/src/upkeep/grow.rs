//! Growth of the index: its words are copied into twice as many sets while readers go on.

use crate::error::Result;
use crate::folder::settings::{self, Settings};
use crate::guard::{FolderGuard, charged_len};
use crate::index::Index;
use crate::index::geometry::{Geometry, MAX_SETS_RATIO};
use crate::layout::{INDEX_NAME, INDEX_NEW, index as at};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use std::fs::File;
use std::sync::atomic::Ordering;

impl FolderGuard<'_> {
    /// Doubles the sets of the index, within the limit or regardless of it. Returns whether there
    /// is another index now.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or [`Error::Busy`](crate::Error::Busy) if the table lock
    /// was lost.
    pub(crate) fn grow(&mut self, within_limit: bool) -> Result<bool> {
        let (used, words) = self.index.sets().used_and_total_words();
        // Sets fill up early only if the names are not evenly distributed.
        if used * 2 < words {
            return Ok(false);
        }
        self.double(within_limit)
    }

    /// Grows the index to the capacity of the settings. Rebuilds an index that is too large for a
    /// limit that was lowered.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`FolderGuard::grow`].
    pub(crate) fn fit_index(&mut self) -> Result<()> {
        let segment_len = self.segment_len();
        let min_len = Geometry::for_limit(self.settings.limit, segment_len, 0).file_len();
        let len = self.index.geometry.file_len();
        if len > min_len && len > self.settings.limit / MAX_SETS_RATIO {
            let settings = Settings { parts: 0, ..self.settings };
            settings::store(&self.segments.folder, settings)?;
            (self.settings, self.exclusive.settings) = (settings, Some(settings));
            self.index = self.segments.rebuild(&mut self.exclusive, settings)?;
            return self.repair();
        }
        let wanted_sets =
            Geometry::for_limit(self.settings.limit, segment_len, self.settings.parts).sets();
        while self.index.geometry.sets() < wanted_sets && self.double(true)? {}
        Ok(())
    }

    /// Copies the index into one with twice as many sets. Returns whether there is another index
    /// now.
    fn double(&mut self, within_limit: bool) -> Result<bool> {
        let old = self.index;
        let Some(geometry) = old.geometry.doubled(self.settings.limit) else { return Ok(false) };
        if within_limit && !self.free_space(charged_len(geometry.file_len()), true)? {
            return Ok(false);
        }
        if !std::ptr::eq(old, self.index) {
            return Ok(true);
        }
        let (segments, settings) = (self.segments, self.settings);
        let file = segments.folder.open_file(INDEX_NAME, OFlags::RDWR);
        let created =
            Index::create(&segments.folder, geometry, old.family, settings, segments.options.guard);
        let Ok(new) = created else {
            let _ = segments.folder.remove(INDEX_NEW);
            return Ok(false);
        };
        // From now on, a process that enters a word then sees that the index is being copied, and
        // enters the word into the copy, too. So each word is either copied here or entered there.
        old.set_retired(at::COPYING);
        copy(old, &new);
        if let Err(error) = Index::publish(&segments.folder) {
            old.set_retired(at::IN_USE);
            return Err(error);
        }
        self.index = segments.adopt_index(new)?;
        old.set_retired(at::REPLACED);
        if let Ok(file) = file {
            free_pages(&file, old.geometry.file_len());
        }
        // An index that is rebuilt later begins with this capacity.
        self.settings.parts = self.settings.parts.max(geometry.parts());
        if settings::store(&segments.folder, self.settings).is_ok() {
            self.index.set_settings(self.settings);
        } else {
            self.settings = settings;
        }
        Ok(true)
    }
}

/// Copies header, rows and words.
fn copy(old: &Index, new: &Index) {
    for word in [
        at::DIRTY,
        at::NEXT,
        at::NEXT_EVICTION_ORDER,
        at::EVICTED,
        at::MOVED,
        at::DISPLACED,
        at::FIRST_OWN,
    ] {
        new.word(word).store(old.word(word).load(Ordering::Relaxed), Ordering::Relaxed);
    }
    let (from, to) = (old.table(), new.table());
    for (slot, row) in from.rows() {
        to.set_row(slot, &row);
        to.set_number(slot, from.number(slot));
    }
    let without_space = old.sets().copy_into(&new.sets(), |place| from.number(place.slot) == 0);
    new.word(at::DISPLACED).fetch_add(without_space, Ordering::Relaxed);
}

/// Frees the pages of a replaced index, all but its header. Other processes may have it mapped for
/// long; they read zeros, which point nowhere.
pub(crate) fn free_pages(file: &File, len: u64) {
    let header = at::HEADER_LEN as u64;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = fallocate(file, flags, header, len.saturating_sub(header).max(1));
}
