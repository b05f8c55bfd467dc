//! Options of a scan.

use crate::range::Range;

/// A scan: its range, direction, limits and batch size.
///
/// ```
/// use nuthatch_store::{Range, Scan};
/// let newest = Scan::new(Range::prefix(b"log:")).reverse().limit(10);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    pub(crate) range: Range,
    pub(crate) reverse: bool,
    pub(crate) limit: u64,
    pub(crate) keys_only: bool,
    pub(crate) batch_rows: usize,
    pub(crate) batch_bytes: usize,
}

impl Scan {
    /// Default of [`batch_rows`](Self::batch_rows): 4096.
    pub const BATCH_ROWS: usize = 4096;
    /// Default of [`batch_bytes`](Self::batch_bytes): 4 MiB.
    pub const BATCH_BYTES: usize = 4 << 20;

    /// Returns a scan of all rows of a range, in ascending order.
    pub fn new(range: Range) -> Self {
        Self {
            range,
            reverse: false,
            limit: u64::MAX,
            keys_only: false,
            batch_rows: Self::BATCH_ROWS,
            batch_bytes: Self::BATCH_BYTES,
        }
    }

    /// Returns a scan of all rows of a table.
    pub fn all() -> Self {
        Self::new(Range::all())
    }

    /// Reverses the order: rows are returned in descending key order.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// Sets the maximum number of rows; no limit by default.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = rows;
        self
    }

    /// Makes the scan return empty values in place of the stored ones.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Sets the maximum number of rows of a batch, at least one; [`BATCH_ROWS`](Self::BATCH_ROWS)
    /// by default.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// Sets the number of bytes of keys and values at which a batch ends;
    /// [`BATCH_BYTES`](Self::BATCH_BYTES) by default. The last row of a batch may exceed it.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// Returns the range.
    pub fn range(&self) -> &Range {
        &self.range
    }
}

impl From<Range> for Scan {
    fn from(range: Range) -> Self {
        Self::new(range)
    }
}
