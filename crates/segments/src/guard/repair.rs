//! Comparing the table with the folder: what a process that died left behind, what somebody
//! deleted, copied in or damaged, and everything when the index is new.

use super::{Turn, counted};
use crate::error::Result;
use crate::folder::Entry;
use crate::folder::names::{segment_name, segment_number};
use crate::index::table::{Row, State};
use crate::layout::{INDEX_NAME, INDEX_NEW, PINS_NEW, SETTINGS_NEW, index as at};
use crate::lock::{Byte, Mode, on_byte};
use crate::segment::{Refusal, Segment};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// How far the number of the next segment may be ahead of the last one: beyond that, it is damaged.
pub(crate) const NEXT_AHEAD: u64 = 1 << 40;

/// What a file counts that is no segment.
pub(crate) fn other_bytes(entry: &Entry) -> u64 {
    if entry.name == INDEX_NAME { 0 } else { counted(entry.taken.max(entry.len)) }
}

/// The system would not open a segment, of which nothing is known then.
struct Unopened;

impl Turn<'_> {
    /// Puts the table right.
    pub(crate) fn settle_table(&mut self) -> Result<()> {
        let index = self.index;
        index.word(at::DIRTY).store(1, Ordering::Release);
        let entries = self.of.folder.list()?;
        let mut others = self.of.folder.own_bytes();
        let mut files = BTreeMap::new();
        for entry in &entries {
            match segment_number(&entry.name).filter(|_| entry.is_file) {
                Some(number) => {
                    files.insert(number, entry.len);
                }
                None => others += self.other(entry),
            }
        }
        self.alone.others = others;
        let greatest = files.keys().next_back().copied().unwrap_or(0);
        let next = index.word(at::NEXT).load(Ordering::Relaxed);
        if next <= greatest || next - greatest > NEXT_AHEAD {
            index.word(at::NEXT).store(greatest + 1, Ordering::Relaxed);
        }
        self.settle_rows(&mut files);
        let mut all = true;
        for (&number, &len) in &files {
            if let Err(Unopened) = self.adopt(number, len) {
                // Whatever it is, it is there, and the next turn tries again.
                self.alone.others += counted(len);
                all = false;
            }
        }
        self.alone.settled = all.then_some(0);
        index.word(at::DIRTY).store(0, Ordering::Release);
        Ok(())
    }

    /// What a file counts that is no segment; what nobody needs is removed.
    fn other(&self, entry: &Entry) -> u64 {
        let left = [INDEX_NEW, PINS_NEW, SETTINGS_NEW].contains(&entry.name.as_str());
        if left && self.of.folder.remove(&entry.name).is_ok() { 0 } else { other_bytes(entry) }
    }

    /// Looks at all rows; the files that they have are taken out of `files`.
    fn settle_rows(&mut self, files: &mut BTreeMap<u64, u64>) {
        let table = self.index.table();
        let mut gone = vec![false; table.slots as usize];
        let mut any_gone = false;
        for slot in 0..table.slots {
            let row = table.row(slot);
            let number = table.number(slot);
            let here = row.filter(|row| row.state != State::Free);
            if row == Some(Row::FREE) && number == 0 {
                continue;
            }
            let len = here.and_then(|row| files.get(&row.file).copied());
            if let (Some(row), Some(len), true) = (here, len, number != 0) {
                files.remove(&row.file);
                if number != row.file {
                    table.set_number(slot, row.file);
                }
                // Somebody may have cut it off, or made it longer.
                let changed = match row.state {
                    State::Sealed => row.counted != counted(len),
                    _ => row.counted < counted(len),
                };
                if changed {
                    table.set_row(slot, &Row { counted: counted(len), ..row });
                }
                continue;
            }
            // Half made, half evicted, deleted, or a row that is damaged: then the file, if there
            // is one, is looked at below as one that nobody knows.
            table.set_number(slot, 0);
            if let Some(row) = here.filter(|_| number == 0)
                && self.of.folder.remove(&segment_name(row.file)).is_ok()
            {
                files.remove(&row.file);
            }
            table.set_row(slot, &Row::FREE);
            gone[slot as usize] = true;
            any_gone = true;
        }
        if any_gone {
            let is_gone = |slot: u32| gone.get(slot as usize).copied().unwrap_or(true);
            self.index.sets().sweep(|place| is_gone(place.slot));
        }
    }

    /// Enters a segment that the table does not know; removes it if it is none.
    fn adopt(&mut self, number: u64, len: u64) -> std::result::Result<(), Unopened> {
        let table = self.index.table();
        let remove = || self.of.folder.remove(&segment_name(number));
        match Segment::open(&self.of.folder, number, &self.of.opening) {
            Ok(_) => {}
            Err(Refusal::System(_) | Refusal::Newer) => return Err(Unopened),
            Err(Refusal::Missing | Refusal::Damaged) => {
                let _ = remove();
                return Ok(());
            }
        }
        let Some(slot) = table.free_slot() else {
            let _ = remove();
            return Ok(());
        };
        let file = self.of.folder.open_file(&segment_name(number), OFlags::RDWR);
        let free =
            file.is_ok_and(|file| on_byte(&file, Byte::Writer, Mode::Alone).unwrap_or(false));
        // Whoever writes it still notices that the index is another one, and begins a new segment.
        let state = if free { State::Sealed } else { State::Writing };
        let reserved = if free { len } else { len.max(self.segment_len()) };
        let turn = self.next(at::TURN);
        let file = number;
        let row = Row { file, counted: counted(reserved), state, kept: false, unread: true, turn };
        table.set_row(slot, &row);
        table.set_number(slot, number);
        self.index.word(at::FIRST_OWN).fetch_max(number.saturating_add(1), Ordering::Relaxed);
        Ok(())
    }
}
