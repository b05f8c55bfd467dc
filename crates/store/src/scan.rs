//! What a scan reads, and in which way.

use crate::range::Range;

/// What a scan reads, and in which way.
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
    /// The rows of a batch, at most, unless told otherwise.
    pub const BATCH_ROWS: usize = 4096;
    /// The bytes of keys and values of a batch, about, unless told otherwise.
    pub const BATCH_BYTES: usize = 4 << 20;

    /// All rows of a range, from the least key on.
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

    /// All rows of a table.
    pub fn all() -> Self {
        Self::new(Range::all())
    }

    /// From the greatest key on.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// So many rows at most.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = rows;
        self
    }

    /// Keys without values: these are empty.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// How many rows a batch has, at most; at least one.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// After how many bytes of keys and values a batch ends. It has one row at least.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// The range it reads.
    pub fn range(&self) -> &Range {
        &self.range
    }
}

impl From<Range> for Scan {
    fn from(range: Range) -> Self {
        Self::new(range)
    }
}
