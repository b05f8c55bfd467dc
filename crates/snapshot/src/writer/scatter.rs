//! Distribution of rows to slices of the key hash.

use super::buffer::Buffer;
use super::row::{self, RowRef};
use crate::error::Result;
use crate::parallel;

/// References to the rows of some neighbouring buffers, grouped by slice.
pub(crate) struct Scattered {
    refs: Vec<RowRef>,
    /// Index in `refs` of the first row of each slice, and the number of rows.
    starts: Vec<usize>,
}

impl Scattered {
    /// Returns the rows of a slice, in the order in which they were added.
    pub(crate) fn slice(&self, slice: usize) -> &[RowRef] {
        &self.refs[self.starts[slice]..self.starts[slice + 1]]
    }
}

/// Groups rows by slice: by the top `bits` of the key hash. Each thread processes neighbouring
/// buffers. Within a slice, rows stay in the order in which they were added.
pub(crate) fn scatter(buffers: &[Buffer], bits: u32, threads: usize) -> Result<Vec<Scattered>> {
    let group_len = buffers.len().div_ceil(threads).max(1);
    let groups = buffers.chunks(group_len).enumerate();
    parallel::map(threads, groups, |(group, buffers)| {
        let slice_of = |row: &RowRef| ((row.hash >> 1) >> (63 - bits)) as usize;
        let rows = || {
            let numbered = buffers.iter().enumerate();
            numbered.flat_map(move |(i, buffer)| row::refs_of(group * group_len + i, buffer))
        };
        let mut starts = vec![0; (1 << bits) + 1];
        for row in rows() {
            starts[slice_of(&row) + 1] += 1;
        }
        for slice in 0..1 << bits {
            starts[slice + 1] += starts[slice];
        }
        let mut next = starts.clone();
        let mut refs = vec![RowRef::default(); starts[1 << bits]];
        for row in rows() {
            let cursor = &mut next[slice_of(&row)];
            refs[*cursor] = row;
            *cursor += 1;
        }
        Ok(Scattered { refs, starts })
    })
}
