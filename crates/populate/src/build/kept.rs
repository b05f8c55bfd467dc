//! What is counted and kept of a source, besides its entries.

use super::sampler::SampledRow;
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;

/// What is counted while a source is read.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) rows: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// What is kept of a source besides its entries.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Rows that were chosen at random.
    pub(crate) sample: Vec<SampledRow>,
    /// Keys of values that are NULL, for incremental jobs.
    pub(crate) absent: HashSet<Vec<u8>>,
}

/// What to keep of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// Number of rows to choose at random.
    pub(crate) sample: usize,
    /// Whether to keep the keys of values that are NULL.
    pub(crate) absent: bool,
}
