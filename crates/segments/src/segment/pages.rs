//! Has the pages of a new segment lie in memory in large pieces.
//!
//! The system keeps a file in pieces as large as the writes that made them, if these begin where
//! such a piece may begin, and a read takes longer for each piece. Records begin anywhere, and so
//! would their pieces begin small. So the step in which a record ends is written with zeros before
//! the record is: the next one then makes its pages from a good place on.

use std::fs::File;

/// What is written at once; where pages begin to be made is a multiple of it.
const STEP: u64 = 512 << 10;
static ZEROS: [u8; STEP as usize] = [0; STEP as usize];

/// The pages of a segment that is appended to. The file is as long as what is ready: there are
/// zeros behind the last record.
pub(crate) struct Pages {
    ready: u64,
    end: u64,
}

impl Pages {
    /// Those of a new segment that ends somewhere, the first of them made. `None` if the segment is
    /// too short for it, or the system refuses.
    pub(crate) fn of(file: &File, end: u64) -> Option<Self> {
        let mut pages = (end >= 8 * STEP).then_some(Self { ready: 0, end })?;
        pages.reach(file, 1).then_some(pages)
    }

    /// Has the pages be there in which a record ends that will be written up to an offset. Nobody
    /// else has room there as yet. False if the system refuses.
    pub(crate) fn reach(&mut self, file: &File, offset: u64) -> bool {
        if offset <= self.ready {
            return true;
        }
        // What is ready ends with a step, or with the segment.
        let from = (offset - 1) / STEP * STEP;
        let len = STEP.min(self.end - from);
        self.ready = from + len;
        rustix::io::pwrite(file, &ZEROS[..len as usize], from) == Ok(len as usize)
    }
}
