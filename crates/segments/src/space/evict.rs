//! Removing a segment.

use super::victim::Search;
use crate::error::Result;
use crate::folder::names::segment_name;
use crate::guard::{Spare, Turn};
use crate::index::table::Row;
use crate::layout::index as at;
use crate::layout::segment::HEADER_LEN;
use crate::lock::{Byte, Mode, on_byte};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

impl Turn<'_> {
    /// Removes a segment. From the moment its number is gone no thread begins to read it; its bytes
    /// are freed at once unless a reader has them lent. If another segment is being begun, it gets
    /// the file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not remove the file. The row and the file stay
    /// then, but the words of its parts have been removed already, so they are misses.
    pub(super) fn evict(&mut self, slot: u32, row: &Row, search: &mut Search) -> Result<()> {
        let table = self.index.table();
        let folder = &self.of.folder;
        let name = segment_name(row.file);
        let dirty = self.index.word(at::DIRTY);
        let before = dirty.swap(1, Ordering::AcqRel);
        table.set_number(slot, 0);
        let alone = |file: &File, byte| on_byte(file, byte, Mode::Alone).unwrap_or(false);
        let file = folder.open_file(&name, OFlags::RDWR).ok();
        let file = file.filter(|file| alone(file, Byte::Lent));
        // Other processes may read a segment through an older index, which was deleted: they do not
        // see that it is evicted, and would read the next segment.
        let is_own = row.file >= self.index.word(at::FIRST_OWN).load(Ordering::Relaxed);
        let is_wanted = is_own && self.beginning && self.spare.is_none();
        let is_spare = |file: &File| is_wanted && alone(file, Byte::Writer);
        match file {
            // If this process dies, the file must not be taken for the segment that it was.
            Some(file) if is_spare(&file) && blank_header(&file).is_ok() => {
                self.spare = Some(Spare { file, name });
            }
            file => {
                if let Err(errno) = folder.remove(&name) {
                    table.set_number(slot, row.file);
                    dirty.store(before, Ordering::Release);
                    return Err(folder.error("remove", &name, errno));
                }
                // Other processes may have the file open for long.
                let _ = file.map(|file| file.set_len(0));
            }
        }
        table.set_row(slot, &Row::FREE);
        // A spare file is in no row: see `drop_spare`.
        dirty.store(if self.spare.is_some() { 1 } else { before }, Ordering::Release);
        search.stay.insert(slot);
        search.freed += row.counted;
        self.index.word(at::EVICTED).fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn blank_header(file: &File) -> io::Result<()> {
    file.write_all_at(&[0; HEADER_LEN], 0)
}
