//! What is counted and kept of a source, besides its entries.

use super::absent::{AbsentKeys, KeySet};
use super::sampler::SampledRow;
use std::sync::Mutex;
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
    /// Keys of values that are NULL and were not passed on, for incremental jobs.
    pub(super) absent: KeySet,
}

/// What to keep of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep<'a> {
    /// Number of rows to choose at random.
    pub(crate) sample: usize,
    /// The place for keys of values that are NULL, in an incremental run.
    pub(crate) absent: Option<&'a Mutex<AbsentKeys>>,
}
