//! The end of a segment, to which one process appends.

use super::Preallocation;
use crate::layout::segment::HEADER_LEN;
use crate::lock::{Byte, LockMode, lock_byte};
use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;

/// The first offset that a record of a segment may have.
pub(crate) const FIRST_OFFSET: u64 = HEADER_LEN as u64;

/// The end of a segment to which this process appends. It holds the writer lock (byte 0). If it is
/// dropped without being sealed, or the process dies, another process finds the lock free and seals
/// the segment.
pub(crate) struct Appender {
    pub(crate) slot: u32,
    pub(crate) number: u64,
    pub(crate) file: Arc<WriterFile>,
    pub(crate) salt: u64,
    pub(crate) tail: u64,
    pub(crate) end: u64,
    /// The family of the index that the slot belongs to.
    pub(crate) family: u64,
    /// The process that created this. A forked process must not append.
    pub(crate) process_id: u32,
    /// For a new file, as long as the system does not refuse.
    pub(crate) preallocation: Option<Preallocation>,
}

/// A file that this process appends to, with the writer lock. The appender and all reservations
/// share it. So if another process finds the lock free, all records of the segment are in the
/// index.
pub(crate) struct WriterFile {
    file: File,
    process_id: u32,
}

impl WriterFile {
    /// Returns the file of an appender. The caller has taken the writer lock.
    pub(crate) fn new(file: File) -> Self {
        Self { file, process_id: std::process::id() }
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
        // Closing the file is not enough: a forked child has a copy of the descriptor.
        if self.process_id == std::process::id() {
            let _ = lock_byte(&self.file, Byte::Writer, LockMode::Unlock);
        }
    }
}

/// Reserved bytes of a segment for one record.
pub(crate) struct Reservation {
    pub(crate) slot: u32,
    pub(crate) number: u64,
    pub(crate) file: Arc<WriterFile>,
    pub(crate) salt: u64,
    pub(crate) offset: u64,
    pub(crate) family: u64,
}

impl Appender {
    /// Reserves bytes for a record. Returns `None` if the segment has too few.
    pub(crate) fn reserve(&mut self, len: u64) -> Option<Reservation> {
        let offset = self.tail;
        self.tail = offset.checked_add(len).filter(|end| *end <= self.end)?;
        self.preallocation = self.preallocation.take().and_then(|mut preallocation| {
            preallocation.extend_to(&self.file, self.tail).then_some(preallocation)
        });
        let (slot, number, salt) = (self.slot, self.number, self.salt);
        let (file, family) = (self.file.clone(), self.family);
        Some(Reservation { slot, number, file, salt, offset, family })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::is_unlocked;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock_of_the_writer() {
        let place = tempfile::NamedTempFile::new().expect("a file");
        let other = place.reopen().expect("the file again");
        let file = place.reopen().expect("the file again");
        // A forked process has such a copy.
        let copy = file.try_clone().expect("a copy");
        assert!(lock_byte(&file, Byte::Writer, LockMode::Exclusive).expect("a lock"));
        let file = WriterFile::new(file);
        assert!(!is_unlocked(&other, Byte::Writer));
        drop(file);
        assert!(is_unlocked(&other, Byte::Writer));
        drop(copy);
    }
}
