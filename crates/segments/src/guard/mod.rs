//! Exclusive access to a folder, for one thread of one process: [`FolderGuard`].
//!
//! Rows of the table and names of files change only under a guard that holds the table lock. The
//! kernel releases the lock of a process that dies. An unfinished change is marked by the word
//! `dirty` of the index, and the next guard repairs the table.

mod release;
mod repair;
mod settings;

pub(crate) use repair::{MAX_NUMBER_GAP, other_bytes};

use crate::folder::settings::Settings;
use crate::index::Index;
use crate::layout::index as at;
use crate::lock::{TableLock, TimedGuard};
use crate::options::segment_len;
use crate::segments::{ExclusiveState, Segments};
use std::fs::File;
use std::sync::atomic::Ordering;

/// Exclusive access to a folder. Other threads of this process wait until it is dropped. Other
/// processes wait while it holds the table lock, which it can release for long work.
pub(crate) struct FolderGuard<'a> {
    pub(crate) segments: &'a Segments,
    pub(crate) index: &'a Index,
    pub(crate) settings: Settings,
    pub(crate) exclusive: TimedGuard<'a, ExclusiveState>,
    /// The slot whose records are being moved. It is not evicted to make space for them.
    pub(crate) moving_slot: Option<u32>,
    /// Whether a segment is being begun, which can take over the file of an evicted one.
    pub(crate) is_beginning: bool,
    /// The file of an evicted segment.
    pub(crate) spare_file: Option<SpareFile>,
    /// The table lock. `None` while it is released: see [`FolderGuard::release`].
    pub(crate) table_lock: Option<TableLock>,
}

/// The file of an evicted segment without readers and writers, under its old name. Overwriting its
/// pages, which are in memory, takes half the time of creating new ones.
pub(crate) struct SpareFile {
    /// Holds the writer lock and the view lock, both exclusive. Its header is zero.
    pub(crate) file: File,
    pub(crate) name: String,
}

/// Returns the bytes that a file counts towards the limit: its pages, and one for the metadata of
/// the filesystem.
pub(crate) fn charged_len(len: u64) -> u64 {
    len.next_multiple_of(4096) + 4096
}

impl FolderGuard<'_> {
    /// Runs a change of the table under the mark `dirty`, in case this process dies before it is
    /// complete.
    pub(crate) fn with_dirty_mark<T>(&self, change: impl FnOnce() -> T) -> T {
        let dirty = self.index.word(at::DIRTY);
        let before = dirty.swap(1, Ordering::AcqRel);
        let result = change();
        dirty.store(before, Ordering::Release);
        result
    }

    /// Returns the value of a counter in the header of the index and increments it.
    pub(crate) fn next(&self, at: usize) -> u64 {
        self.index.word(at).fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the length of a segment.
    pub(crate) fn segment_len(&self) -> u64 {
        segment_len(&self.segments.options, self.settings.limit)
    }

    /// Returns the bytes that are in use or reserved.
    pub(crate) fn used(&self) -> u64 {
        let other_len = self.exclusive.other_bytes + charged_len(self.index.geometry.file_len());
        let rows = self.index.table().rows();
        rows.fold(other_len, |sum, (_, row)| sum.saturating_add(row.charged))
    }

    /// Removes the spare file. While there is one, the table is marked as being changed, because
    /// the file is in no row.
    pub(crate) fn drop_spare_file(&mut self) {
        if let Some(spare_file) = self.spare_file.take() {
            let _ = spare_file.file.set_len(0);
            let _ = self.segments.folder.remove(&spare_file.name);
            self.index.word(at::DIRTY).store(0, Ordering::Release);
        }
    }
}
