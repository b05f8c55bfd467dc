//! A turn: one thread of one process has the folder to itself and changes the table. The system
//! ends the turn of a process that dies; what it left half done is marked by a word, and put right
//! by the next turn.

mod release;
mod repair;
mod settings;

pub(crate) use repair::{NEXT_AHEAD, other_bytes};

use crate::folder::settings::Settings;
use crate::index::Index;
use crate::layout::index as at;
use crate::lock::{FolderLock, TimedGuard};
use crate::options::segment_len;
use crate::segments::{Alone, Segments};
use std::fs::File;
use std::sync::atomic::Ordering;

/// The turn of this thread.
pub(crate) struct Turn<'a> {
    pub(crate) of: &'a Segments,
    pub(crate) index: &'a Index,
    pub(crate) settings: Settings,
    pub(crate) alone: TimedGuard<'a, Alone>,
    /// The slot whose records are being moved: it is not evicted to make room for them.
    pub(crate) moving: Option<u32>,
    /// Whether a segment is being begun, which can have the file of one that goes.
    pub(crate) beginning: bool,
    /// The file of a segment that went.
    pub(crate) spare: Option<Spare>,
    /// The lock of the folder, but for work that needs none: see [`Turn::release`].
    pub(crate) lock: Option<FolderLock>,
}

/// The file of a segment that nobody reads or writes any more, under its old name. Writing over
/// pages that are in memory takes half the time of writing to new ones.
pub(crate) struct Spare {
    /// Has both locks of the file, whose header is zero.
    pub(crate) file: File,
    pub(crate) name: String,
}

/// What a segment counts: its pages, and one for what the file system keeps of it.
pub(crate) fn counted(len: u64) -> u64 {
    len.next_multiple_of(4096) + 4096
}

impl Turn<'_> {
    /// Does something that leaves the table wrong when it is not done to its end.
    pub(crate) fn changing<T>(&self, change: impl FnOnce() -> T) -> T {
        let dirty = self.index.word(at::DIRTY);
        let before = dirty.swap(1, Ordering::AcqRel);
        let result = change();
        dirty.store(before, Ordering::Release);
        result
    }

    pub(crate) fn next(&self, at: usize) -> u64 {
        self.index.word(at).fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn segment_len(&self) -> u64 {
        segment_len(&self.of.options, self.settings.limit)
    }

    /// Bytes that are in use or reserved.
    pub(crate) fn used(&self) -> u64 {
        let others = self.alone.others + counted(self.index.geometry.file_len());
        let rows = self.index.table().rows();
        rows.fold(others, |sum, (_, row)| sum.saturating_add(row.counted))
    }

    /// Removes the file of a segment that went, if no other segment got it. As long as there is
    /// such a file, the table is marked as being changed: the file is in no row.
    pub(crate) fn drop_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            let _ = spare.file.set_len(0);
            let _ = self.of.folder.remove(&spare.name);
            self.index.word(at::DIRTY).store(0, Ordering::Release);
        }
    }
}
