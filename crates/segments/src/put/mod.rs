//! Storing records at the end of a segment.

mod enter;

use crate::error::Result;
use crate::index::Index;
use crate::not_kept::{NotKeptReason, is_disk_full};
use crate::segment::appender::{Appender, Reservation};
use crate::segment::record::Record;
use crate::segments::Segments;
use nuthatch_filesystem::link_count;
use std::sync::atomic::Ordering;

/// Maximum number of attempts to write a record when the disk is full.
const MAX_WRITES: usize = 3;

/// The result of storing a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All parts are stored.
    Kept,
    /// All parts are stored, some of them by another process or thread at the same time.
    Duplicate {
        /// The number of the first part that the other one stored with other bytes.
        conflict: Option<u64>,
    },
    /// The parts are stored, but displaced other parts from the index, which cannot grow further.
    Displaced {
        /// Number of displaced parts.
        parts: u64,
    },
    /// The record was not stored, for this reason. The caller still has the bytes.
    NotKept(NotKeptReason),
}

impl Segments {
    /// Stores a record. A record that the folder cannot keep is not an error: see
    /// [`Outcome::NotKept`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::Length`](crate::Error::Length) if label, parts or data are out of range.
    pub fn put(&self, record: &Record<'_>) -> Result<Outcome> {
        record.validate(self.max_part_len())?;
        let outcome =
            self.write(record).unwrap_or_else(|error| Outcome::NotKept(NotKeptReason::of(&error)));
        if let Outcome::NotKept(_) = outcome {
            self.counters.not_kept();
        }
        Ok(outcome)
    }

    /// Writes a record and enters its parts. Frees disk space and tries again if the disk is full.
    fn write(&self, record: &Record<'_>) -> Result<Outcome> {
        if self.is_denied.load(Ordering::Relaxed) {
            self.check_writable()?;
        }
        for _ in 0..MAX_WRITES {
            let Some(index) = self.index() else {
                return Ok(Outcome::NotKept(NotKeptReason::Folder));
            };
            let reservation = match self.reserve(index, record.len())? {
                Ok(reservation) => reservation,
                Err(reason) => return Ok(Outcome::NotKept(reason)),
            };
            match self.write_at(&reservation, record) {
                Ok(()) => return Ok(self.enter(&reservation, record)),
                Err(error) if is_disk_full(&error) => {
                    // The reserved bytes stay unused. The segment may be the one that is evicted.
                    drop(reservation);
                    if !self.free_disk_space(record.len())? {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        Ok(Outcome::NotKept(NotKeptReason::Disk))
    }

    /// Reserves bytes at the end of a segment. Other threads append meanwhile. Only those that also
    /// need another segment wait, up to the patience of the options.
    fn reserve(
        &self,
        index: &Index,
        len: u64,
    ) -> Result<std::result::Result<Reservation, NotKeptReason>> {
        if let Some(reservation) = self.reserve_in_open(index, len) {
            return Ok(Ok(reservation));
        }
        let Some(mut guard) = self.folder_guard_for_put()? else {
            return Ok(Err(NotKeptReason::Busy));
        };
        // The thread that had exclusive access before may have begun a segment.
        if let Some(reservation) = self.reserve_in_open(guard.index, len) {
            return Ok(Ok(reservation));
        }
        let full_segment = self.lock_appender().take();
        if let Some(full_segment) =
            full_segment.filter(|appender| appender.process_id == std::process::id())
        {
            guard.seal(full_segment);
        }
        match guard.begin(len, false)? {
            Ok(mut appender) => {
                let reservation = appender.reserve(len).ok_or(NotKeptReason::NoRoom);
                *self.lock_appender() = Some(appender);
                Ok(reservation)
            }
            Err(reason) => Ok(Err(reason)),
        }
    }

    /// Reserves bytes in the segment that this process appends to.
    fn reserve_in_open(&self, index: &Index, len: u64) -> Option<Reservation> {
        let mut appender = self.lock_appender();
        appender.as_mut().filter(|appender| appender.is_usable(index))?.reserve(len)
    }

    /// Evicts at least this many bytes because the disk is full. Returns whether it evicted any.
    fn free_disk_space(&self, bytes: u64) -> Result<bool> {
        let Some(mut guard) = self.folder_guard_for_put()? else { return Ok(false) };
        guard.evict_bytes(bytes)
    }
}

impl Appender {
    /// Returns whether this process may still append: the segment was not evicted, the index is of
    /// the same family, and this is not a forked process.
    fn is_usable(&self, index: &Index) -> bool {
        self.family == index.family
            && self.process_id == std::process::id()
            && index.table().number(self.slot) == self.number
            && link_count(&self.file).is_ok_and(|links| links > 0)
    }
}
