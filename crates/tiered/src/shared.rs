//! What the threads of a tier share.

use crate::first_records::{FirstRecords, folder_id};
use crate::options::{CanDecompress, Event, Options};
use crate::records::ItemRecords;
use crate::state::State;
use nuthatch_cache::{Cache, KeyHash};
use nuthatch_tier::{Directory, Entry, Reader, RecordId, Tier};
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
        let folder_id = folder_id(tier.hash_seed());
        let kept = options.partitions.as_ref().map(|(_, kept)| kept);
        let next = tier.next_id().pack();
        let first_records = kept.map(|kept| FirstRecords::of(kept, folder_id, next));
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

    /// Reads the directory of an item file and reports damage. Returns `None` if the file was
    /// removed.
    pub(crate) fn directory(&self, number: u64) -> Option<Directory> {
        let (directory, damage) = self.reader.directory(number)?;
        for damage in damage {
            self.state.report(Event::Damaged(damage));
        }
        Some(directory)
    }

    /// Returns whether items of this key are not written to disk now.
    pub(crate) fn is_suspended(&self, hash: KeyHash) -> bool {
        let first_records = self.first_records.as_ref();
        first_records.is_some_and(|first| first.is_suspended(hash.partition()))
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
