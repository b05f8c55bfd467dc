//! Putting records at the end of a segment.

use crate::error::Result;
use crate::id::Id;
use crate::index::Index;
use crate::layout::index as at;
use crate::layout::segment::HEADER_LEN;
use crate::lock::{Byte, Mode, on_byte};
use crate::pages::Pages;
use crate::reason::{Reason, is_disk_full};
use crate::record::{Record, erase_head};
use crate::segments::Segments;
use crate::sets::{Inserted, Place};
use nuthatch_filesystem::link_count;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The end of a segment to which this process alone appends: it has the lock of the writer. When it
/// goes without being sealed, or the process dies, others find the lock free and seal it.
pub(crate) struct Appender {
    pub(crate) slot: u32,
    pub(crate) number: u64,
    pub(crate) file: Arc<WriterFile>,
    pub(crate) salt: u64,
    pub(crate) tail: u64,
    pub(crate) end: u64,
    /// Which indexes know of it, and which process made it: a fork has both, and must not append.
    pub(crate) family: u64,
    pub(crate) process: u32,
    /// Of a new file, as long as the system goes along.
    pub(crate) pages: Option<Pages>,
}

/// The file of a segment to which this process appends, with the lock of its writer. The end of the
/// segment and every put into it share the file. So as long as somebody else finds the lock free,
/// all records of the segment are in the index.
pub(crate) struct WriterFile {
    file: File,
    process: u32,
}

impl WriterFile {
    /// Takes over a file that has the lock.
    pub(crate) fn new(file: File) -> Self {
        Self { file, process: std::process::id() }
    }
}

impl Deref for WriterFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for WriterFile {
    fn drop(&mut self) {
        // A child that was forked meanwhile has a copy of the descriptor; so closing is not enough.
        if self.process == std::process::id() {
            let _ = on_byte(&self.file, Byte::Writer, Mode::None);
        }
    }
}

/// Where a record goes.
pub(crate) struct Space {
    pub(crate) slot: u32,
    pub(crate) number: u64,
    pub(crate) file: Arc<WriterFile>,
    pub(crate) salt: u64,
    pub(crate) offset: u64,
    family: u64,
}

/// Whether a record was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is there.
    Kept,
    /// It is there but for parts that another process or thread put at the same time: the first of
    /// them that has other bytes there, if any.
    Met {
        /// The number of the first part that is there with other bytes.
        other: Option<u64>,
    },
    /// The parts are stored, but displaced other parts from the index, which cannot grow further.
    Displaced {
        /// Number of displaced parts.
        parts: u64,
    },
    /// It was not written. Whoever has the bytes goes on with them.
    NotKept(Reason),
}

impl Appender {
    /// Takes room for a record, if it has it.
    pub(crate) fn take(&mut self, len: u64) -> Option<Space> {
        let offset = self.tail;
        self.tail = offset.checked_add(len).filter(|end| *end <= self.end)?;
        self.pages = self
            .pages
            .take()
            .and_then(|mut pages| pages.reach(&self.file, self.tail).then_some(pages));
        let (slot, number, salt) = (self.slot, self.number, self.salt);
        let (file, family) = (self.file.clone(), self.family);
        Some(Space { slot, number, file, salt, offset, family })
    }

    /// Whether it may be appended to still: nobody took the segment away, this is no fork.
    fn usable(&self, index: &Index) -> bool {
        self.family == index.family
            && self.process == std::process::id()
            && index.table().number(self.slot) == self.number
            && link_count(&self.file).is_ok_and(|links| links > 0)
    }
}

/// How many times a record is tried to be written when the disk is full.
const TRIES: usize = 3;
/// Maximum number of times that a record is entered again because its index is replaced.
const ENTER_TRIES: usize = 8;

impl Segments {
    /// Puts a record. What the folder cannot keep is no error: see [`Outcome`].
    pub fn put(&self, record: &Record<'_>) -> Result<Outcome> {
        record.validate(self.part_most())?;
        let outcome =
            self.write(record).unwrap_or_else(|error| Outcome::NotKept(Reason::of(&error)));
        if let Outcome::NotKept(_) = outcome {
            self.counts.not_kept();
        }
        Ok(outcome)
    }

    fn write(&self, record: &Record<'_>) -> Result<Outcome> {
        if self.is_denied.load(Ordering::Relaxed) {
            self.check_writable()?;
        }
        for _ in 0..TRIES {
            let Some(index) = self.index() else { return Ok(Outcome::NotKept(Reason::Folder)) };
            let space = match self.reserve(index, record.len())? {
                Ok(space) => space,
                Err(reason) => return Ok(Outcome::NotKept(reason)),
            };
            match self.write_at(&space, record) {
                Ok(()) => return Ok(self.enter(&space, record)),
                Err(error) if is_disk_full(&error) => {
                    // What was reserved here stays unused; the segment may be the one to go.
                    drop(space);
                    if !self.free_disk(record.len())? {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        Ok(Outcome::NotKept(Reason::Disk))
    }

    /// Writes a record. If the write fails, for example because the disk is full, no head of it
    /// remains.
    pub(crate) fn write_at(&self, space: &Space, record: &Record<'_>) -> io::Result<()> {
        let head = record.encode(space.salt, space.offset);
        let written = self.options.disk.write(&space.file, &head, record.data, space.offset);
        if written.is_err() && space.file.metadata().is_ok_and(|file| file.len() > space.offset) {
            // If this fails too, the next process that appends does it.
            let _ = erase_head(&space.file, space.offset);
        }
        written?;
        self.counts.written(record.len());
        Ok(())
    }

    /// Takes room for so many bytes at the end of a segment. Other threads append meanwhile; only
    /// those that need another segment too wait, and no longer than the patience of the options.
    fn reserve(&self, index: &Index, len: u64) -> Result<std::result::Result<Space, Reason>> {
        if let Some(space) = self.take_open(index, len) {
            return Ok(Ok(space));
        }
        let Some(mut turn) = self.turn()? else { return Ok(Err(Reason::Busy)) };
        // The thread that had the turn before may have begun one.
        if let Some(space) = self.take_open(turn.index, len) {
            return Ok(Ok(space));
        }
        let full = self.lock_writer().take();
        if let Some(full) = full.filter(|full| full.process == std::process::id()) {
            turn.seal(full);
        }
        match turn.begin(len, false)? {
            Ok(mut open) => {
                let space = open.take(len).ok_or(Reason::NoRoom);
                *self.lock_writer() = Some(open);
                Ok(space)
            }
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Takes room for so many bytes in the segment that this process appends to.
    fn take_open(&self, index: &Index, len: u64) -> Option<Space> {
        let mut writer = self.lock_writer();
        writer.as_mut().filter(|open| open.usable(index))?.take(len)
    }

    /// Enters the parts of a record that is written into the index.
    fn enter(&self, space: &Space, record: &Record<'_>) -> Outcome {
        let mut displaced = 0;
        for _ in 0..ENTER_TRIES {
            // It may be another one than when the put began.
            let Some(index) = self.index() else { return Outcome::NotKept(Reason::Folder) };
            let Some(slot) = slot_of(index, space) else {
                return Outcome::NotKept(Reason::NoRoom);
            };
            let place = Place { slot, offset: space.offset };
            let outcome = self.enter_into(index, place, record, &mut displaced);
            let last = self.indexes.last().is_some_and(|last| std::ptr::eq(last, index));
            let replaced = index.is_copied() || !last;
            if !replaced && index.table().number(slot) != space.number {
                // Evicted meanwhile, by a process that may have looked for words before they were
                // there.
                for number in (record.first..).take(record.parts.len()) {
                    index.sets().remove(Id::new(record.name, number).hash(), place);
                }
                return Outcome::NotKept(Reason::NoRoom);
            }
            if !replaced {
                return match outcome {
                    Outcome::Kept if displaced > 0 => Outcome::Displaced { parts: displaced },
                    outcome => outcome,
                };
            }
            // The copy may have been made before or after. Wait for it, and enter them there.
            match self.turn() {
                Ok(Some(turn)) => drop(turn),
                Ok(None) => break,
                Err(error) => return Outcome::NotKept(Reason::of(&error)),
            }
        }
        Outcome::NotKept(Reason::Busy)
    }

    /// Enters parts into the index, and grows the index when it is full.
    fn enter_into(
        &self,
        index: &Index,
        place: Place,
        record: &Record<'_>,
        displaced: &mut u64,
    ) -> Outcome {
        let table = index.table();
        let gone = |place: Place| table.number(place.slot) == 0;
        let mut outcome = Outcome::Kept;
        for (number, part) in (record.first..).zip(record.parts) {
            let id = Id::new(record.name, number);
            let hash = id.hash();
            if index.sets().insert(hash, place, 0, gone) == Inserted::Full {
                if self.grow(index) {
                    return outcome;
                }
                if index.sets().displace(hash, place) {
                    index.word(at::DISPLACED).fetch_add(1, Ordering::Relaxed);
                    *displaced += 1;
                }
            }
            // Another one may have put the same part since it was looked for.
            let Some(sum) = self.other_sum(index, &id, place, record.label) else { continue };
            index.sets().remove(hash, place);
            let before = if let Outcome::Met { other } = outcome { other } else { None };
            outcome = Outcome::Met { other: before.or((sum != part.sum).then_some(number)) };
        }
        outcome
    }

    /// The checksum of a part that lies elsewhere too.
    fn other_sum(&self, index: &Index, id: &Id, but: Place, label: &[u8]) -> Option<u64> {
        let mut places = index.sets().of(id.hash()).filter(|(_, place)| *place != but);
        places.find_map(|(_, place)| {
            let head = self.segment(index, place.slot)?.head(place.offset)?;
            let there = head.holds(id, label) && !head.expired(self.options.clock.now_ms());
            there.then(|| head.position(id.number).map(|part| head.parts[part].sum))?
        })
    }
}

/// Returns the slot of the segment in which a record was written.
fn slot_of(index: &Index, space: &Space) -> Option<u32> {
    if index.family == space.family {
        return Some(space.slot);
    }
    // The index was made again, and may have the segment in another slot.
    let mut rows = index.table().rows();
    rows.find(|(_, row)| row.file == space.number).map(|(slot, _)| slot)
}

/// The first offset that a record of a new segment may have.
pub(crate) const FIRST_OFFSET: u64 = HEADER_LEN as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::is_free;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock_of_the_writer() {
        let place = tempfile::NamedTempFile::new().expect("a file");
        let other = place.reopen().expect("the file again");
        let file = place.reopen().expect("the file again");
        // A fork makes such a copy.
        let copy = file.try_clone().expect("a copy");
        assert!(on_byte(&file, Byte::Writer, Mode::Alone).expect("a lock"));
        let file = WriterFile::new(file);
        assert!(!is_free(&other, Byte::Writer));
        drop(file);
        assert!(is_free(&other, Byte::Writer));
        drop(copy);
    }
}
