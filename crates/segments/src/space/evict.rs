//! Evicting a segment.

use super::victim::Search;
use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::{FolderGuard, SpareFile};
use crate::index::table::Row;
use crate::layout::index as at;
use crate::layout::segment::HEADER_LEN;
use crate::lock::{Byte, LockMode, lock_byte};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

impl FolderGuard<'_> {
    /// Removes a segment. From the moment its number is removed, no thread begins to read it. Its
    /// bytes are freed at once unless a reader has a view. If another segment is being begun, it
    /// gets the file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not remove the file. The row and the file stay
    /// then, but the words of its parts have been removed already, so they are misses.
    pub(super) fn evict(&mut self, slot: u32, row: &Row, search: &mut Search) -> Result<()> {
        let table = self.index.table();
        let folder = &self.segments.folder;
        let name = segment_name(row.file_number);
        let dirty = self.index.word(at::DIRTY);
        let before = dirty.swap(1, Ordering::AcqRel);
        table.set_number(slot, 0);
        let locks = |file: &File, byte| lock_byte(file, byte, LockMode::Exclusive).unwrap_or(false);
        let file = folder.open_file(&name, OFlags::RDWR).ok();
        let file = file.filter(|file| locks(file, Byte::View));
        // Processes that use an older, deleted index do not see the eviction, and would read the
        // next segment in this file.
        let is_own = row.file_number >= self.index.word(at::FIRST_OWN).load(Ordering::Relaxed);
        let is_wanted = is_own && self.is_beginning && self.spare_file.is_none();
        let is_spare = |file: &File| is_wanted && locks(file, Byte::Writer);
        match file {
            // If this process dies, the file must not be taken for the evicted segment.
            Some(file) if is_spare(&file) && blank_header(&file).is_ok() => {
                self.spare_file = Some(SpareFile { file, name });
            }
            file => {
                if let Err(errno) = folder.remove(&name) {
                    table.set_number(slot, row.file_number);
                    dirty.store(before, Ordering::Release);
                    return Err(folder.error("remove", &name, errno));
                }
                // Other processes may have the file open for a long time.
                let _ = file.map(|file| file.set_len(0));
            }
        }
        table.set_row(slot, &Row::FREE);
        // A spare file is in no row: see `drop_spare_file`.
        dirty.store(if self.spare_file.is_some() { 1 } else { before }, Ordering::Release);
        search.skipped_slots.insert(slot);
        search.freed_bytes += row.charged;
        self.index.word(at::EVICTED).fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Overwrites the header with zeros.
fn blank_header(file: &File) -> io::Result<()> {
    file.write_all_at(&[0; HEADER_LEN], 0)
}
