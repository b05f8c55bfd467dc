//! Has the pages of a new segment lie in memory in large pieces.
//!
//! The system keeps a file in pieces as large as the writes that made them, if these begin where
//! such a piece may begin. Records begin anywhere, so their pieces would be small ones, and a read
//! takes a fifth longer: each piece begins anew. Pages that are read before they are written come
//! in pieces of 2 MiB if that is asked for, and writing over them is faster by what that takes.

use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;

/// The largest pieces, on most machines.
const PIECE: u64 = 2 << 20;

/// The pages of a segment that is appended to. What is ready of it was made as long as that: there
/// are zeros behind the last record.
pub(crate) struct Pages {
    map: MmapRaw,
    ready: u64,
    end: u64,
}

impl Pages {
    /// Those of a new segment that ends somewhere. `None` if it is too short for it, or the system
    /// has no such pieces.
    pub(crate) fn of(file: &File, end: u64) -> Option<Self> {
        let len = usize::try_from(end).ok().filter(|_| end >= PIECE)?;
        let map = MmapOptions::new().len(len).map_raw_read_only(file).ok()?;
        map.advise(Advice::HugePage).ok()?;
        Some(Self { map, ready: 0, end })
    }

    /// Has the pages up to an offset be there. False if the system refuses.
    pub(crate) fn reach(&mut self, file: &File, offset: u64) -> bool {
        if offset <= self.ready {
            return true;
        }
        let next = offset.next_multiple_of(PIECE).min(self.end);
        let (from, len) = (self.ready as usize, (next - self.ready) as usize);
        self.ready = next;
        // A file that somebody cuts off meanwhile is an error here, no signal.
        file.set_len(next).is_ok() && self.map.advise_range(Advice::PopulateRead, from, len).is_ok()
    }
}
