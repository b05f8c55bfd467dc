//! Putting records at the end of a segment.

mod enter;

use crate::error::Result;
use crate::index::Index;
use crate::not_kept::{Reason, is_disk_full};
use crate::segment::appender::{Appender, Space};
use crate::segment::record::{Record, erase_head};
use crate::segments::Segments;
use nuthatch_filesystem::link_count;
use std::io;
use std::sync::atomic::Ordering;

/// How many times a record is tried to be written when the disk is full.
const TRIES: usize = 3;

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
}

impl Appender {
    /// Whether it may be appended to still: nobody took the segment away, this is no fork.
    fn usable(&self, index: &Index) -> bool {
        self.family == index.family
            && self.process == std::process::id()
            && index.table().number(self.slot) == self.number
            && link_count(&self.file).is_ok_and(|links| links > 0)
    }
}
