//! Warm restart: when the server stops, it writes its items to a folder; when it starts with the
//! same folder, it has them again.
//!
//! The dump is written after the last connection is closed, with the items that are read most
//! first, and for a limited time. It is valid once it is closed. The next server reads
//! it on a thread of its own, while it already serves clients, and removes it: items that clients
//! changed meanwhile are not restored, and a server that ends without a dump leaves none.
//!
//! `load.rs` restores items, and `dump.rs` writes them. The format is in docs/formats/tier.md.

mod dump;
mod load;
mod progress;

pub(crate) use load::Restorer;
pub use progress::RestoreProgress;

use crate::log;
use nuthatch_cache::{Clock, KeyHash, Options as CacheOptions, SystemClock};
use nuthatch_tier::{Error, FolderState, Options, Reader, RecordId, RemovedRecords, Tier};
use nuthatch_tiered::{FirstRecords, KeptPartitions, folder_id};
use progress::Counters;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Maximum bytes of a dump, as a multiple of the budget of the cache. Records and their directory
/// take more bytes than items in memory: at most three times as many, with the shortest items.
const MAX_DUMP_RATIO: u64 = 4;

/// Minimum number of item files of the longest dump, unless they would be shorter than 1 MiB or
/// longer than 64 MiB.
const MIN_FILES: u64 = 256;

/// Numbers for compare-and-set that a cache may assign in a millisecond, on average, without
/// reaching those of the next run.
const CAS_PER_MS: u64 = 1 << 20;

/// Returns the partition of a key.
type PartitionOf = fn(&[u8]) -> u16;

/// The folder of dumps of a server, and the state of restoring the last one.
pub struct WarmRestart {
    /// `None` once the dump is closed.
    tier: Mutex<Option<Tier>>,
    reader: Reader,
    /// Records that are out of date, if the folder was that of a disk tier.
    removed: RemovedRecords,
    hash_seed: u64,
    /// Which records are valid, and the partition of a key, in a cache with partitions.
    partitions: Option<(FirstRecords, PartitionOf)>,
    max_dump_time: Duration,
    counters: Counters,
    /// When restoring must end, once the server stops.
    restore_until: OnceLock<Instant>,
    /// Whether the server has started, so that its items may differ from those of the dump.
    is_started: AtomicBool,
    /// Whether neither items are restored nor a dump is written any more.
    is_cancelled: AtomicBool,
}

impl WarmRestart {
    /// Opens the folder of dumps, and creates it if there is none. `memory` is the budget of the
    /// cache in bytes. The end of a restore in progress and the dump take at most `max_dump_time`
    /// together, and then the time until the dump is durable.
    ///
    /// Removes a dump that its server did not close.
    ///
    /// # Errors
    ///
    /// Returns the error of the folder: another process uses it, another version wrote it, its
    /// manifest is damaged, or the system refuses to read or write it.
    pub fn open(folder: &Path, memory: u64, max_dump_time: Duration) -> Result<Self, Error> {
        let (mut tier, recovery) = Tier::open(folder, &tier_options(memory))?;
        let has_dump = recovery.state == FolderState::Closed;
        for damage in &recovery.damage {
            log::dump_damaged(damage);
        }
        if !has_dump {
            if recovery.files > 0 {
                log::dump_discarded(recovery.records);
            }
            tier.clear()?;
        }
        Ok(Self {
            removed: recovery.removed,
            reader: tier.reader(),
            hash_seed: tier.hash_seed(),
            partitions: None,
            tier: Mutex::new(Some(tier)),
            max_dump_time,
            counters: Counters::new(if has_dump { recovery.records } else { 0 }),
            restore_until: OnceLock::new(),
            is_started: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
        })
    }

    /// Restores only the items of some partitions of the keys, as
    /// [`Options::partitions`](nuthatch_tiered::Options::partitions) does.
    #[must_use]
    pub fn partitions(mut self, partition_of: PartitionOf, kept: &KeptPartitions) -> Self {
        let first_records = FirstRecords::of(kept, self.folder_id(), FirstRecords::LATER);
        self.partitions = Some((first_records, partition_of));
        self
    }

    /// Returns a number that identifies the folder.
    pub fn folder_id(&self) -> u64 {
        folder_id(self.hash_seed)
    }

    /// Restores no more items of some partitions, and leaves them out of a dump, until
    /// [`resume`](Self::resume). Wait for the guards of other sessions afterwards.
    pub(crate) fn suspend(&self, partitions: impl Iterator<Item = u16>) {
        if let Some((first_records, _)) = &self.partitions {
            partitions.for_each(|partition| first_records.set(partition, FirstRecords::SUSPENDED));
        }
    }

    /// Dumps the items of some partitions again, which are not those of the last run.
    pub(crate) fn resume(&self, partitions: impl Iterator<Item = u16>) {
        if let Some((first_records, _)) = &self.partitions {
            partitions.for_each(|partition| first_records.set(partition, FirstRecords::LATER));
        }
    }

    /// Returns whether the items of a key are left out of a dump.
    fn is_suspended(&self, key: &[u8]) -> bool {
        self.partitions.as_ref().is_some_and(|(first_records, partition_of)| {
            first_records.is_suspended(partition_of(key))
        })
    }

    /// Returns whether the record of a key is valid, as far as that depends on its partition.
    fn allows(&self, key: &[u8], id: RecordId) -> bool {
        self.partitions.as_ref().is_none_or(|(first_records, partition_of)| {
            first_records.is_valid(partition_of(key), id.pack())
        })
    }

    /// Returns the hash of a key in the files of the dump.
    fn hash(&self, key: &[u8]) -> u64 {
        let hash = KeyHash::of(key, self.hash_seed);
        let partitions = self.partitions.as_ref();
        partitions.map_or(hash, |(_, partition_of)| hash.in_partition(partition_of(key))).to_u64()
    }

    /// Removes the dump in a folder, if there is one, before a server uses the data without a warm
    /// restart: its items would be outdated at the next one. Returns the number of items.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn discard(folder: &Path, memory: u64) -> Result<u64, Error> {
        if folder.try_exists().is_ok_and(|exists| !exists) {
            return Ok(0);
        }
        let (mut tier, recovery) = Tier::open(folder, &tier_options(memory))?;
        tier.clear().map(|()| recovery.records)
    }

    /// Returns the options of a cache into which the dump can be restored: with numbers for
    /// compare-and-set that no earlier run has assigned.
    ///
    /// Its hashes must not have the seed of the last run. A dump is in the order of hashes, and
    /// with the same seed, all items would be restored into one table of the index before the next.
    #[must_use]
    pub fn cache_options(&self, options: CacheOptions) -> CacheOptions {
        options.first_cas(SystemClock.now_ms().saturating_mul(CAS_PER_MS).max(1))
    }

    /// Returns the progress of restoring.
    pub fn progress(&self) -> RestoreProgress {
        self.counters.progress()
    }

    /// Ends restoring and dumping at once, for a server that must not take longer to stop.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tier>> {
        self.tier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WarmRestart {
    /// Keeps the dump for the next start if this one failed, for example because an address was in
    /// use.
    fn drop(&mut self) {
        if !self.is_started.load(Ordering::Relaxed)
            && let Some(tier) = self.lock().take()
            && let Err(error) = tier.close()
        {
            log::dump_lost(&error);
        }
    }
}

/// Returns the options of the folder for a cache with this budget in bytes.
fn tier_options(memory: u64) -> Options {
    let max_bytes = memory.saturating_mul(MAX_DUMP_RATIO);
    let mut options = Options::new(max_bytes);
    // The last file of a full disk, and one with a damaged header, is lost as a whole.
    options.file_len = (max_bytes / MIN_FILES).clamp(1 << 20, 64 << 20).next_power_of_two();
    options.batch_len = (options.file_len / 4).min(1 << 20) as usize;
    options
}

impl fmt::Debug for WarmRestart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarmRestart")
            .field("max_dump_time", &self.max_dump_time)
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}
