//! Writes zeros ahead of the records of a new segment, so that the page cache holds the file in
//! large folios.
//!
//! The system keeps a file in folios as large as the writes that created them, if these begin at a
//! multiple of the folio size, and a read takes longer for each folio. Records begin at any offset,
//! so their folios would be small. Therefore the step in which a record ends is filled with zeros
//! before the record is written: the next record then creates its pages from a multiple of the step
//! on.

use std::fs::File;

/// Bytes that are written at once, at a multiple of this.
const STEP: u64 = 512 << 10;
static ZEROS: [u8; STEP as usize] = [0; STEP as usize];

/// The bytes of a new segment that are filled with zeros. The file is as long as they are.
pub(crate) struct Preallocation {
    filled: u64,
    end: u64,
}

impl Preallocation {
    /// Fills the first step of a new segment with zeros. Returns `None` if the segment is short or
    /// the system refuses.
    pub(crate) fn new(file: &File, end: u64) -> Option<Self> {
        let mut preallocation = (end >= 8 * STEP).then_some(Self { filled: 0, end })?;
        preallocation.extend_to(file, 1).then_some(preallocation)
    }

    /// Fills the step in which a record ends at `offset` with zeros, before other threads reserve
    /// space in it. Returns false if the system refuses.
    pub(crate) fn extend_to(&mut self, file: &File, offset: u64) -> bool {
        if offset <= self.filled {
            return true;
        }
        // The filled bytes end at a multiple of a step, or at the end of the segment.
        let from = (offset - 1) / STEP * STEP;
        let len = STEP.min(self.end - from);
        self.filled = from + len;
        rustix::io::pwrite(file, &ZEROS[..len as usize], from) == Ok(len as usize)
    }
}
