//! Which records of a partition of keys are valid.

use crate::options::KeptPartitions;
use nuthatch_cache::KeyHash;
use std::sync::atomic::{AtomicU64, Ordering};

const PARTITIONS: usize = KeyHash::PARTITIONS;

/// Returns the number that identifies a folder whose hashes have this seed.
#[must_use]
pub fn folder_id(hash_seed: u64) -> u64 {
    KeyHash::of(b"", hash_seed).to_u64()
}

/// For each partition, the lowest id of its valid records. Records with lower ids are invalid:
/// their items are not found, although the index may still point to them.
///
/// A thread reads it under an epoch guard of the cache. So once an id was set and all guards that
/// began before have ended, no earlier record is used.
#[derive(Debug)]
pub struct FirstRecords(Box<[AtomicU64]>);

impl FirstRecords {
    /// Marks a suspended partition: no record is valid, and none is written.
    pub const SUSPENDED: u64 = u64::MAX;

    /// Marks a partition whose records so far are all invalid; later ones are valid.
    pub const LATER: u64 = u64::MAX - 1;

    /// Returns the first valid records for the partitions of a folder that earlier processes have
    /// kept. `next` is the lowest valid id of the other partitions, above all ids of these
    /// processes.
    #[must_use]
    pub fn of(kept: &KeptPartitions, folder_id: u64, next: u64) -> Self {
        let first_records = Self((0..PARTITIONS).map(|_| AtomicU64::new(next)).collect());
        if kept.folder_id == folder_id {
            for (partition, first) in &kept.first_records {
                first_records.set(*partition, next.min(*first));
            }
        }
        first_records
    }

    /// Returns the lowest valid id of a partition.
    #[must_use]
    pub fn get(&self, partition: u16) -> u64 {
        self.0[usize::from(partition) % PARTITIONS].load(Ordering::SeqCst)
    }

    /// Sets the lowest valid id of a partition.
    pub fn set(&self, partition: u16, id: u64) {
        self.0[usize::from(partition) % PARTITIONS].store(id, Ordering::SeqCst);
    }

    /// Returns whether a partition is suspended.
    #[must_use]
    pub fn is_suspended(&self, partition: u16) -> bool {
        self.get(partition) == Self::SUSPENDED
    }

    /// Returns whether a record is valid.
    #[must_use]
    pub fn is_valid(&self, partition: u16, id: u64) -> bool {
        id >= self.get(partition)
    }
}
