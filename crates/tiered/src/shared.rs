//! What the threads of a tier share.

use crate::first_records::FirstRecords;
use crate::options::{CanDecompress, KeptPartitions, Options};
use crate::records::ItemRecords;
use crate::state::State;
use nuthatch_cache::{Cache, KeyHash};
use nuthatch_tier::{Entry, Reader, RecordId, Tier};
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
    /// Identifies the folder.
    pub(crate) folder_id: u64,
    /// Which records of each partition are valid, if the cache has partitions.
    pub(crate) first_records: Option<FirstRecords>,
    /// Held during a long read by a reader thread.
    pub(crate) long_reads: Mutex<()>,
}

impl Shared {
    pub(crate) fn new(
        cache: Arc<Cache>,
        tier: Tier,
        records: Arc<ItemRecords>,
        state: Arc<State>,
        options: &Options,
    ) -> Self {
        let reader = tier.reader();
        let folder_id = KeyHash::of(b"", tier.hash_seed()).to_u64();
        let kept = options.partitions.as_ref().map(|(_, kept)| kept);
        let first_records = kept.map(|kept| first_records(kept, folder_id, tier.next_id()));
        Self {
            cache,
            tier: Mutex::new(Some(tier)),
            reader,
            records,
            state,
            can_decompress: Arc::clone(&options.can_decompress),
            folder_id,
            first_records,
            long_reads: Mutex::default(),
        }
    }

    /// Returns whether items of this key are not written to disk now.
    pub(crate) fn is_suspended(&self, hash: KeyHash) -> bool {
        let first_records = self.first_records.as_ref();
        first_records.is_some_and(|first| first.get(hash.partition()) == FirstRecords::SUSPENDED)
    }

    /// Returns whether a record of an item file is valid, as far as that depends on its partition.
    pub(crate) fn is_valid(&self, file: u64, entry: &Entry) -> bool {
        self.allows(entry.hash, RecordId { file, unit: entry.place.unit })
    }

    /// Returns the same for a record of a key with this hash.
    pub(crate) fn allows(&self, hash: u64, id: RecordId) -> bool {
        let partition = KeyHash::from_u64(hash).partition();
        let first_records = self.first_records.as_ref();
        first_records.is_none_or(|first_records| first_records.is_valid(partition, id.pack()))
    }

    /// Locks the writer of item files. It is `None` after the tier was closed.
    pub(crate) fn tier(&self) -> MutexGuard<'_, Option<Tier>> {
        self.tier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns which records are valid if an earlier process has kept this. Those of other partitions
/// are not.
fn first_records(kept: &KeptPartitions, folder_id: u64, next: RecordId) -> FirstRecords {
    let next = next.pack();
    let first_records = FirstRecords::new(|_| next);
    for (partition, first) in kept.first_records.iter().filter(|_| kept.folder_id == folder_id) {
        first_records.set(*partition, next.min(*first));
    }
    first_records
}
