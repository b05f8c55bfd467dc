//! Distribution of rows to slices of the key hash.

use super::row::RowRef;

/// Rows are grouped by this many top bits of their hash.
pub(crate) const SLICE_BITS: u32 = 12;

/// References to rows, grouped by slice as the rows are added: their heads are in the cache then.
/// Within a slice, rows stay in the order in which they were added.
pub(crate) struct Scattered(Vec<Vec<RowRef>>);

impl Default for Scattered {
    fn default() -> Self {
        Self(vec![Vec::new(); 1 << SLICE_BITS])
    }
}

impl Scattered {
    /// Adds a row.
    #[inline]
    pub(crate) fn push(&mut self, row: RowRef) {
        self.0[(row.hash >> (u64::BITS - SLICE_BITS)) as usize].push(row);
    }

    /// Returns the rows of a slice.
    pub(crate) fn slice(&self, slice: usize) -> &[RowRef] {
        &self.0[slice]
    }

    /// Returns the rows of all slices.
    pub(crate) fn into_slices(self) -> Vec<Vec<RowRef>> {
        self.0
    }
}
