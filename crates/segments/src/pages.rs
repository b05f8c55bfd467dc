//! Has the pages of a new segment lie in memory in large pieces.
//!
//! The system keeps a file in pieces as large as the writes that made them, if these begin where
//! such a piece may begin. Records begin anywhere, so their pieces would be small ones, and a read
//! takes a fifth longer: each piece begins anew. So zeros are written ahead of them, by whole
//! pieces; writing over those takes a quarter of the time that it takes to make pages.

use std::fs::File;
use std::io::IoSlice;

/// The largest pieces, on most machines.
const PIECE: u64 = 2 << 20;
/// Zeros that are near, however many of them are written.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The pages of a segment that is appended to. The file is as long as what is ready: there are
/// zeros behind the last record.
pub(crate) struct Pages {
    ready: u64,
    end: u64,
}

impl Pages {
    /// Those of a new segment that ends somewhere, the first of them made: a page that is there
    /// already is in the way of a large piece. `None` if the segment is too short for it, or the
    /// system refuses.
    pub(crate) fn of(file: &File, end: u64) -> Option<Self> {
        let mut pages = (end >= PIECE).then_some(Self { ready: 0, end })?;
        pages.reach(file, 1).then_some(pages)
    }

    /// Has the pages up to an offset be there. False if the system refuses.
    pub(crate) fn reach(&mut self, file: &File, offset: u64) -> bool {
        while self.ready < offset {
            let len = PIECE.min(self.end - self.ready);
            let slices = (0..len).step_by(ZEROS.len()).map(|at| {
                let len = ZEROS.len().min((len - at) as usize);
                IoSlice::new(&ZEROS[..len])
            });
            let slices: Vec<_> = slices.collect();
            if rustix::io::pwritev(file, &slices, self.ready) != Ok(len as usize) {
                return false;
            }
            self.ready += len;
        }
        true
    }
}
