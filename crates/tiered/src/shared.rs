//! What the threads of a tier share.

use crate::options::CanDecompress;
use crate::records::ItemRecords;
use crate::state::State;
use nuthatch_cache::Cache;
use nuthatch_tier::{Reader, Tier};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The cache, its item files, and their state.
pub(crate) struct Shared {
    pub(crate) cache: Arc<Cache>,
    /// Writes item files. Reading needs no lock.
    tier: Mutex<Option<Tier>>,
    pub(crate) reader: Reader,
    pub(crate) records: Arc<ItemRecords>,
    pub(crate) state: Arc<State>,
    pub(crate) can_decompress: Arc<CanDecompress>,
    /// Held during a long read by a reader thread.
    pub(crate) long_reads: Mutex<()>,
}

impl Shared {
    pub(crate) fn new(
        cache: Arc<Cache>,
        tier: Tier,
        records: Arc<ItemRecords>,
        state: Arc<State>,
        can_decompress: Arc<CanDecompress>,
    ) -> Self {
        let reader = tier.reader();
        let (tier, long_reads) = (Mutex::new(Some(tier)), Mutex::default());
        Self { cache, tier, reader, records, state, can_decompress, long_reads }
    }

    /// Locks the writer of item files. It is `None` after the tier was closed.
    pub(crate) fn tier(&self) -> MutexGuard<'_, Option<Tier>> {
        self.tier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
