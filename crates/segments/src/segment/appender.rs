//! The end of a segment, to which one process appends.

use super::Pages;
use crate::layout::segment::HEADER_LEN;
use crate::lock::{Byte, Mode, on_byte};
use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;

/// The first offset that a record of a new segment may have.
pub(crate) const FIRST_OFFSET: u64 = HEADER_LEN as u64;

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
    pub(crate) family: u64,
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
}

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
