//! Putting records at the end of a segment.

use crate::error::Result;
use crate::id::Id;
use crate::index::Index;
use crate::layout::segment::HEADER_LEN;
use crate::pages::Pages;
use crate::record::Record;
use crate::segments::Segments;
use crate::sets::Place;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// The end of a segment to which this process alone appends: it has the lock of the writer. When it
/// goes without being sealed, or the process dies, others find the lock free and seal it.
pub(crate) struct Appender {
    pub(crate) slot: u32,
    pub(crate) number: u64,
    pub(crate) file: Arc<File>,
    pub(crate) salt: u64,
    pub(crate) tail: u64,
    pub(crate) end: u64,
    /// Which index knows of it, and which process made it: a fork has both, and must not append.
    pub(crate) generation: usize,
    pub(crate) process: u32,
    /// Of a new file, as long as the system goes along.
    pub(crate) pages: Option<Pages>,
}

/// Where a record goes.
pub(crate) struct Space {
    pub(crate) slot: u32,
    pub(crate) number: u64,
    pub(crate) file: Arc<File>,
    pub(crate) salt: u64,
    pub(crate) offset: u64,
    generation: usize,
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
    /// It was not written. Whoever has the bytes goes on with them.
    NotKept(Reason),
}

/// Why a record was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The limit is used up by what is pinned or being written.
    NoRoom,
    /// The disk is full, or refuses to write.
    Disk,
    /// Another process had the folder to itself for too long.
    Busy,
    /// The index or the folder cannot be used.
    Folder,
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
        let (file, generation) = (self.file.clone(), self.generation);
        Some(Space { slot, number, file, salt, offset, generation })
    }

    /// Whether it may be appended to still: nobody took the segment away, this is no fork.
    fn usable(&self, segments: &Segments, index: &Index) -> bool {
        self.generation == segments.generation()
            && self.process == std::process::id()
            && index.table().number(self.slot) == self.number
            && self.file.metadata().is_ok_and(|metadata| metadata.nlink() > 0)
    }
}

/// How many times a record is tried to be written when the disk is full.
const TRIES: usize = 3;

impl Segments {
    /// Puts a record. What the folder cannot keep is no error: see [`Outcome`].
    pub fn put(&self, record: &Record<'_>) -> Result<Outcome> {
        record.validate(self.part_most())?;
        let outcome = self.write(record)?;
        if let Outcome::NotKept(_) = outcome {
            self.counts.not_kept();
        }
        Ok(outcome)
    }

    fn write(&self, record: &Record<'_>) -> Result<Outcome> {
        for _ in 0..TRIES {
            let Some(index) = self.index() else { return Ok(Outcome::NotKept(Reason::Folder)) };
            let space = match self.reserve(index, record.len())? {
                Ok(space) => space,
                Err(reason) => return Ok(Outcome::NotKept(reason)),
            };
            match self.write_at(&space, record) {
                Ok(()) => return Ok(self.enter(&space, record)),
                Err(error) if is_full(&error) => {
                    // What was reserved here stays unused; the segment may be the one to go.
                    if !self.free_disk(record.len())? {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        Ok(Outcome::NotKept(Reason::Disk))
    }

    pub(crate) fn write_at(&self, space: &Space, record: &Record<'_>) -> io::Result<()> {
        let head = record.encode(space.salt, space.offset);
        self.options.disk.write(&space.file, &head, record.data, space.offset)?;
        self.counts.written(record.len());
        Ok(())
    }

    /// Room for so many bytes at the end of a segment.
    fn reserve(&self, index: &Index, len: u64) -> Result<std::result::Result<Space, Reason>> {
        let mut writer = self.lock_writer();
        if let Some(open) = writer.as_mut().filter(|open| open.usable(self, index))
            && let Some(space) = open.take(len)
        {
            return Ok(Ok(space));
        }
        let Some(mut turn) = self.turn()? else { return Ok(Err(Reason::Busy)) };
        if let Some(full) = writer.take().filter(|full| full.process == std::process::id()) {
            turn.seal(full);
        }
        match turn.begin(len, false)? {
            Ok(mut open) => {
                let space = open.take(len).ok_or(Reason::NoRoom);
                *writer = Some(open);
                Ok(space)
            }
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Enters the parts of a record that is written into the index.
    fn enter(&self, space: &Space, record: &Record<'_>) -> Outcome {
        // The one that has the segment: it may be another one than when the put began.
        let Some(index) = self.index_of(space.generation) else {
            return Outcome::NotKept(Reason::Folder);
        };
        let place = Place { slot: space.slot, offset: space.offset };
        let table = index.table();
        let gone = |place: Place| table.number(place.slot) == 0;
        let mut outcome = Outcome::Kept;
        for (number, part) in (record.first..).zip(record.parts) {
            let id = Id::new(record.name, number);
            let hash = id.hash();
            index.sets().insert(hash, place, 0, gone);
            // Another one may have put the same part since it was looked for.
            let Some(sum) = self.other_sum(index, &id, place, record.label) else { continue };
            index.sets().remove(hash, place);
            let before = if let Outcome::Met { other } = outcome { other } else { None };
            outcome = Outcome::Met { other: before.or((sum != part.sum).then_some(number)) };
        }
        if table.number(space.slot) != space.number {
            // Evicted meanwhile, by somebody who may have looked for words before they were there.
            for number in (record.first..).take(record.parts.len()) {
                index.sets().remove(Id::new(record.name, number).hash(), place);
            }
            return Outcome::NotKept(Reason::NoRoom);
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

/// The first offset that a record of a new segment may have.
pub(crate) const FIRST_OFFSET: u64 = HEADER_LEN as u64;

/// Whether the disk has no room, or the user may not have more of it.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
