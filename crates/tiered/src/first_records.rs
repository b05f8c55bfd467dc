//! Which records of a partition of keys are valid.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of partitions of a cache with [partitions](nuthatch_cache::Options::partitions).
const PARTITIONS: usize = 1 << 14;

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

    /// Creates it with the lowest valid id of each partition.
    #[must_use]
    pub fn new(first: impl Fn(u16) -> u64) -> Self {
        Self((0..PARTITIONS as u16).map(|partition| AtomicU64::new(first(partition))).collect())
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

    /// Returns whether a record is valid.
    #[must_use]
    pub fn is_valid(&self, partition: u16, id: u64) -> bool {
        id >= self.get(partition)
    }
}
