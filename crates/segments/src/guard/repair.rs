//! Repair of the table: comparing it with the files of the folder. Handles what a process that died
//! left behind, files that were deleted, copied or damaged by other programs, and a new index.

use super::{FolderGuard, charged_len};
use crate::error::Result;
use crate::folder::Entry;
use crate::folder::names::{segment_name, segment_number};
use crate::index::table::{Row, State};
use crate::layout::{INDEX_NAME, INDEX_NEW, PINS_NEW, SETTINGS_NEW, index as at};
use crate::lock::{Byte, LockMode, lock_byte};
use crate::segment::{OpenError, Segment};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Maximum distance from the greatest segment number to the next one. Beyond that, the counter is
/// damaged.
pub(crate) const MAX_NUMBER_GAP: u64 = 1 << 40;

/// Returns the bytes that a file other than a segment counts towards the limit. The index is
/// counted separately.
pub(crate) fn other_bytes(entry: &Entry) -> u64 {
    if entry.name == INDEX_NAME { 0 } else { charged_len(entry.disk_bytes.max(entry.len)) }
}

/// The system did not open a segment, so nothing is known of it.
struct NotOpened;

impl FolderGuard<'_> {
    /// Compares the table with the folder and corrects it.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the folder cannot be listed.
    pub(crate) fn repair_table(&mut self) -> Result<()> {
        let index = self.index;
        index.word(at::DIRTY).store(1, Ordering::Release);
        let entries = self.segments.folder.list()?;
        let mut other_len = self.segments.folder.folder_bytes();
        let mut files = BTreeMap::new();
        for entry in &entries {
            match segment_number(&entry.name).filter(|_| entry.is_file) {
                Some(number) => {
                    files.insert(number, entry.len);
                }
                None => other_len += self.remove_leftover(entry),
            }
        }
        self.exclusive.other_bytes = other_len;
        let greatest = files.keys().next_back().copied().unwrap_or(0);
        let next = index.word(at::NEXT).load(Ordering::Relaxed);
        if next <= greatest || next - greatest > MAX_NUMBER_GAP {
            index.word(at::NEXT).store(greatest + 1, Ordering::Relaxed);
        }
        self.repair_rows(&mut files);
        let mut all_opened = true;
        for (&number, &len) in &files {
            if let Err(NotOpened) = self.add_segment(number, len) {
                // The file counts towards the limit. The next guard tries again.
                self.exclusive.other_bytes += charged_len(len);
                all_opened = false;
            }
        }
        self.exclusive.segments_since_repair = all_opened.then_some(0);
        index.word(at::DIRTY).store(0, Ordering::Release);
        Ok(())
    }

    /// Removes an unfinished file of this crate. Returns the bytes that other files count.
    fn remove_leftover(&self, entry: &Entry) -> u64 {
        let is_leftover = [INDEX_NEW, PINS_NEW, SETTINGS_NEW].contains(&entry.name.as_str());
        if is_leftover && self.segments.folder.remove(&entry.name).is_ok() {
            0
        } else {
            other_bytes(entry)
        }
    }

    /// Corrects all rows, and removes their files from `files`.
    fn repair_rows(&mut self, files: &mut BTreeMap<u64, u64>) {
        let table = self.index.table();
        let mut is_gone = vec![false; table.slots as usize];
        let mut any_is_gone = false;
        for slot in 0..table.slots {
            let row = table.row(slot);
            let number = table.number(slot);
            let used_row = row.filter(|row| row.state != State::Free);
            if row == Some(Row::FREE) && number == 0 {
                continue;
            }
            let len = used_row.and_then(|row| files.get(&row.file_number).copied());
            if let (Some(row), Some(len), true) = (used_row, len, number != 0) {
                files.remove(&row.file_number);
                if number != row.file_number {
                    table.set_number(slot, row.file_number);
                }
                // Another program may have changed the length of the file.
                let has_changed = match row.state {
                    State::Sealed => row.charged != charged_len(len),
                    _ => row.charged < charged_len(len),
                };
                if has_changed {
                    table.set_row(slot, &Row { charged: charged_len(len), ..row });
                }
                continue;
            }
            // The segment is partly created, partly evicted or deleted, or the row is damaged. If
            // there is a file, `add_segment` adds it below.
            table.set_number(slot, 0);
            if let Some(row) = used_row.filter(|_| number == 0)
                && self.segments.folder.remove(&segment_name(row.file_number)).is_ok()
            {
                files.remove(&row.file_number);
            }
            table.set_row(slot, &Row::FREE);
            is_gone[slot as usize] = true;
            any_is_gone = true;
        }
        if any_is_gone {
            let is_gone = |slot: u32| is_gone.get(slot as usize).copied().unwrap_or(true);
            self.index.sets().sweep(|place| is_gone(place.slot));
        }
    }

    /// Adds a row for a segment that has none, or removes the file if it is not a valid segment.
    fn add_segment(&mut self, number: u64, len: u64) -> std::result::Result<(), NotOpened> {
        let table = self.index.table();
        let remove = || self.segments.folder.remove(&segment_name(number));
        match Segment::open(&self.segments.folder, number, &self.segments.opening) {
            Ok(_) => {}
            Err(OpenError::System(_) | OpenError::Newer) => return Err(NotOpened),
            Err(OpenError::Missing | OpenError::Damaged) => {
                let _ = remove();
                return Ok(());
            }
        }
        let Some(slot) = table.free_slot() else {
            let _ = remove();
            return Ok(());
        };
        let file = self.segments.folder.open_file(&segment_name(number), OFlags::RDWR);
        let is_sealed = file
            .is_ok_and(|file| lock_byte(&file, Byte::Writer, LockMode::Exclusive).unwrap_or(false));
        // A process that still writes the segment notices that the index was replaced and begins
        // another one.
        let state = if is_sealed { State::Sealed } else { State::Writing };
        let reserved = if is_sealed { len } else { len.max(self.segment_len()) };
        let eviction_order = self.next(at::NEXT_EVICTION_ORDER);
        let row = Row {
            file_number: number,
            charged: charged_len(reserved),
            state,
            in_main_queue: false,
            is_partly_indexed: true,
            eviction_order,
        };
        table.set_row(slot, &row);
        table.set_number(slot, number);
        self.index.word(at::FIRST_OWN).fetch_max(number.saturating_add(1), Ordering::Relaxed);
        Ok(())
    }
}
