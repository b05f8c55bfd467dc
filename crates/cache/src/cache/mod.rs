//! The cache that all sessions share.

mod changed_keys;
mod free_segments;
mod pages;
mod restoring;
mod unlogged;

use crate::cache::changed_keys::ChangedKeys;
use crate::cache::unlogged::LoggedRecords;
use crate::config::{Eviction, Options};
use crate::error::Result;
use crate::hash::KeyHash;
use crate::index::ghost::GhostQueue;
use crate::index::slot::Slot;
use crate::index::tables::Tables;
use crate::memory::arena::Arena;
use crate::memory::epoch::Epochs;
use crate::memory::large::MAX_VALUE_LEN;
use crate::memory::segments::Segments;
use crate::stats::{Counters, Stats};
use nuthatch_clock::Clock;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// An in-memory cache, shared by all threads of a process. Each thread uses a
/// [`Session`](crate::Session) of its own.
pub struct Cache {
    pub(crate) arena: Arena,
    pub(crate) segments: Segments,
    pub(crate) tables: Tables,
    pub(crate) epochs: Epochs,
    pub(crate) ghost: GhostQueue,
    pub(crate) eviction: Eviction,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) guard_wait: Duration,
    /// Whether writers may evict items that were not written to disk.
    evicts_unwritten: AtomicBool,
    /// Bytes that a write requested while only demotion frees memory, until as many are free: the
    /// most of several writes.
    requested_bytes: AtomicU64,
    /// The records of items on disk, if there can be any.
    pub(crate) records: Option<LoggedRecords>,
    seed: u64,
    partition_of: Option<fn(&[u8]) -> u16>,
    memory: u64,
    reserved: AtomicU64,
    /// Bytes of items with item references.
    pub(crate) referenced_bytes: AtomicU64,
    /// Bytes of pending values.
    pub(crate) pending_bytes: AtomicU64,
    next_cas: AtomicU64,
    /// Whether items of an earlier run are restored.
    is_restoring: AtomicBool,
    /// The keys that were changed meanwhile.
    changed_keys: RwLock<Option<ChangedKeys>>,
    /// Counters of open sessions, and the sum of those of closed ones.
    counters: Mutex<(Vec<Arc<Counters>>, Stats)>,
}

impl Cache {
    /// Maximum length of a key in bytes.
    pub const MAX_KEY_LEN: usize = 64 << 10;

    /// Maximum length of a value in bytes, whatever the budget. The limit of a cache is
    /// [`max_value_len`](Self::max_value_len).
    pub const MAX_VALUE_LEN: usize = MAX_VALUE_LEN as usize;

    /// Creates a cache. It reserves address space for the whole budget, and takes memory from the
    /// system only as items need it.
    ///
    /// # Errors
    ///
    /// - [`Error::Options`](crate::Error::Options) if an option is out of its range.
    /// - [`Error::Memory`](crate::Error::Memory) if the process cannot reserve the address space.
    pub fn new(options: Options) -> Result<Self> {
        options.validate()?;
        let Options { memory, eviction, clock, seed, guard_wait, first_cas, .. } = options;
        let Options { records, partition_of, .. } = options;
        let (arena, segments) = reserve_addresses(memory)?;
        let cache = Self {
            arena,
            segments,
            tables: Tables::new(memory, records.is_some()),
            epochs: Epochs::new(),
            ghost: GhostQueue::default(),
            eviction,
            clock,
            guard_wait,
            records: records.map(LoggedRecords::new),
            evicts_unwritten: AtomicBool::new(true),
            requested_bytes: AtomicU64::new(0),
            seed: seed.unwrap_or_else(|| RandomState::new().hash_one(memory)),
            partition_of,
            memory,
            reserved: AtomicU64::new(0),
            referenced_bytes: AtomicU64::new(0),
            pending_bytes: AtomicU64::new(0),
            next_cas: AtomicU64::new(first_cas),
            is_restoring: AtomicBool::new(false),
            changed_keys: RwLock::default(),
            counters: Mutex::default(),
        };
        cache.update_reserved();
        Ok(cache)
    }

    /// Returns the maximum length of a value in bytes: [`MAX_VALUE_LEN`](Self::MAX_VALUE_LEN), or
    /// 5/8 of the budget minus [`MAX_KEY_LEN`](Self::MAX_KEY_LEN), whichever is less.
    ///
    /// The maximum is lower if there is little address space for long values: with a budget near
    /// the maximum of 1 TiB, or in a process whose address space is limited.
    pub fn max_value_len(&self) -> usize {
        let item = self.segments.max_item_len(self.memory);
        (item - Self::MAX_KEY_LEN as u64).min(MAX_VALUE_LEN) as usize
    }

    /// Returns the bytes of a granule: the step in which memory is charged for a pending value as
    /// it grows. See [`Guard::begin_value`](crate::Guard::begin_value).
    pub fn granule_len(&self) -> usize {
        self.segments.len() as usize
    }

    /// Returns the budget in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns what happens when the budget is used up.
    pub fn eviction(&self) -> Eviction {
        self.eviction
    }

    /// Returns the hash of a key in this cache, for [`Guard::prefetch`](crate::Guard::prefetch) and
    /// [`Guard::get_hashed`](crate::Guard::get_hashed).
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        let hash = KeyHash::of(key, self.seed);
        match self.partition_of {
            None => hash,
            Some(partition_of) => hash.in_partition(partition_of(key)),
        }
    }

    /// Reserves `bytes` of the budget for other purposes than items, such as the buffers of
    /// connections. Replaces the earlier reservation.
    ///
    /// Returns at once. Later guards and writes evict items until the rest fits, and return the
    /// freed memory to the system. Without eviction, or if the reservation is the whole budget,
    /// writes fail with [`Error::Full`](crate::Error::Full).
    pub fn reserve(&self, bytes: u64) {
        self.reserved.store(bytes, Ordering::Relaxed);
        self.update_reserved();
    }

    /// Returns the bytes of items with [item references](crate::Guard::item_ref). An item counts
    /// once for each reference.
    pub fn referenced_bytes(&self) -> u64 {
        self.referenced_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes of large items that were removed, replaced or evicted but still have item
    /// references. Eviction cannot free this memory.
    pub fn retained_bytes(&self) -> u64 {
        // The last reference may be subtracted before the item is added.
        let bytes = self.segments.retained_bytes.load(Ordering::Relaxed);
        u64::try_from(bytes.cast_signed()).unwrap_or(0)
    }

    /// Returns the total length in bytes of all pending values, headers and keys included, whether
    /// received yet or not.
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes.load(Ordering::Relaxed)
    }

    /// Sets whether writers may evict items that were not written to disk. By default they may, if
    /// eviction is enabled. Otherwise writes that find no memory fail with
    /// [`Error::Full`](crate::Error::Full), until [`Session::finish_demotions`] has freed some.
    ///
    /// [`Session::finish_demotions`]: crate::Session::finish_demotions
    pub fn set_evicts_unwritten(&self, may: bool) {
        self.evicts_unwritten.store(may, Ordering::Relaxed);
    }

    /// Returns whether writers may evict items.
    pub(crate) fn may_evict(&self) -> bool {
        self.eviction != Eviction::None && self.evicts_unwritten.load(Ordering::Relaxed)
    }

    /// Returns whether no memory is free and eviction is disabled, so that writes fail. The next
    /// guard may still free memory of expired and removed items.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.eviction == Eviction::None && self.segments.available_now() == 0
    }

    /// Subtracts the memory that is not for items from the limit of segments.
    pub(crate) fn update_reserved(&self) {
        // The ghost queue is created when memory is already short. Its memory is reserved from the
        // start, for as many items as the index has slots for.
        let ghost = match self.eviction {
            Eviction::S3Fifo => {
                self.ghost.planned_memory(self.segments.index_bytes() / size_of::<Slot>() as u64)
            }
            Eviction::None => 0,
        };
        let reserved = self.reserved.load(Ordering::Relaxed);
        let metadata =
            self.segments.memory() + self.tables.memory() + ghost + self.restore_memory();
        self.segments.reserve(reserved + metadata);
    }

    /// Returns the bytes of the state of segments, of the ghost queue, and of the record of changed
    /// keys while items are restored.
    fn memory_metadata(&self) -> u64 {
        self.segments.memory() + self.ghost.memory() + self.restore_memory()
    }

    /// Allocates `count` consecutive numbers for compare-and-set, and returns the first.
    pub(crate) fn allocate_cas(&self, count: u64) -> u64 {
        self.next_cas.fetch_add(count, Ordering::Relaxed)
    }

    /// Makes numbers for compare-and-set that are allocated later greater than this one.
    pub(crate) fn skip_cas(&self, cas: u64) {
        self.next_cas.fetch_max(cas.saturating_add(1), Ordering::Relaxed);
    }

    /// Adds the counters of a session that is opened.
    pub(crate) fn register_counters(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.push(Arc::clone(&counters));
        counters
    }

    /// Adds the counters of a session that is closed to the sum.
    pub(crate) fn unregister_counters(&self, counters: &Arc<Counters>) {
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.add(counters);
        all.0.retain(|one| !Arc::ptr_eq(one, counters));
    }

    /// Returns the number of items, including expired items that are not removed yet.
    pub fn len(&self) -> u64 {
        self.tables.len(&self.arena)
    }

    /// Returns the number of items on disk.
    pub fn items_on_disk(&self) -> u64 {
        self.tables.on_disk()
    }

    /// Returns whether the cache has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counters of all sessions since the cache was created, and the current items and
    /// memory.
    pub fn stats(&self) -> Stats {
        let all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stats = all.1;
        all.0.iter().for_each(|counters| stats.add(counters));
        stats.items = self.len();
        stats.items_on_disk = self.tables.on_disk();
        // Frees the segments whose last guard has ended.
        self.segments.available(&self.epochs);
        let (index, items, large) = self.segments.bytes_in_use();
        stats.memory_index = index + self.tables.memory();
        stats.memory_items = items;
        stats.memory_large = large;
        stats.memory_metadata = self.memory_metadata();
        stats.memory_reserved = self.reserved.load(Ordering::Relaxed);
        stats.memory = stats.memory_index
            + stats.memory_items
            + stats.memory_large
            + stats.memory_metadata
            + stats.memory_reserved;
        stats.memory_referenced = self.referenced_bytes();
        stats.memory_limit = self.memory;
        stats
    }
}

/// Reserves address space for a budget and creates the segments. If the process cannot reserve all
/// of it, there are fewer granules for large items.
fn reserve_addresses(memory: u64) -> Result<(Arena, Segments)> {
    let mut granules = Segments::granules(memory);
    let len = Segments::segment_len(memory);
    loop {
        let ordinary = (memory / len * len) as usize;
        match Arena::new(ordinary, (u64::from(granules) * len) as usize) {
            Ok(arena) => return Ok((arena, Segments::new(memory, granules))),
            Err(_) if granules > 0 => granules /= 2,
            Err(error) => return Err(error),
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("memory", &self.memory)
            .field("eviction", &self.eviction)
            .finish_non_exhaustive()
    }
}
