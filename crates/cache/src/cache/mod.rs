//! What all sessions of a cache share.

mod free_segments;
mod pages;

use crate::clock::Clock;
use crate::config::{Eviction, Options};
use crate::error::Result;
use crate::hash::KeyHash;
use crate::index::ghost::Ghost;
use crate::index::slot::Slot;
use crate::index::tables::Tables;
use crate::memory::arena::Arena;
use crate::memory::epoch::Epochs;
use crate::memory::large::VALUE_MOST;
use crate::memory::segments::Segments;
use crate::stats::{Counters, Stats};
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A cache in memory, shared by all threads of a process. Each works through a [`Session`].
pub struct Cache {
    pub(crate) arena: Arena,
    pub(crate) segments: Segments,
    pub(crate) tables: Tables,
    pub(crate) epochs: Epochs,
    pub(crate) ghost: Ghost,
    pub(crate) eviction: Eviction,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) guard_wait: Duration,
    seed: u64,
    memory: u64,
    elsewhere: AtomicU64,
    /// Bytes of items under lease.
    pub(crate) leased: AtomicU64,
    /// Bytes of drafts.
    pub(crate) drafted: AtomicU64,
    next_cas: AtomicU64,
    /// Of sessions that are open, and of those that are over as one.
    counters: Mutex<(Vec<Arc<Counters>>, Stats)>,
}

impl Cache {
    /// The longest key in bytes.
    pub const KEY_MOST: usize = 64 << 10;

    /// Maximum length of a value in bytes, whatever the budget; [`value_most`](Self::value_most) is
    /// that of this cache.
    pub const VALUE_MOST: usize = VALUE_MOST as usize;

    /// A cache with these options. Memory is taken from the system as it is needed.
    pub fn new(options: Options) -> Result<Self> {
        options.validate()?;
        let Options { memory, eviction, clock, seed, guard_wait } = options;
        let (arena, segments) = take_memory(memory)?;
        let cache = Self {
            arena,
            segments,
            tables: Tables::new(memory),
            epochs: Epochs::new(),
            ghost: Ghost::default(),
            eviction,
            clock,
            guard_wait,
            seed: seed.unwrap_or_else(|| RandomState::new().hash_one(memory)),
            memory,
            elsewhere: AtomicU64::new(0),
            leased: AtomicU64::new(0),
            drafted: AtomicU64::new(0),
            next_cas: AtomicU64::new(1),
            counters: Mutex::default(),
        };
        cache.note_reserved();
        Ok(cache)
    }

    /// The longest value in bytes: 512 MiB, or what makes 5/8 of the budget with the longest key.
    /// Less where there are not enough addresses: a budget from 512 GiB up leaves fewer and fewer,
    /// as does a process that may not have many.
    pub fn value_most(&self) -> usize {
        let item = self.segments.item_most(self.memory);
        (item - Self::KEY_MOST as u64).min(VALUE_MOST) as usize
    }

    /// Bytes in which memory for large items is given out: see [`Turn::draft`](crate::Turn::draft).
    pub fn granule_len(&self) -> usize {
        self.segments.len() as usize
    }

    /// The budget in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// What happens when memory is used up.
    pub fn eviction(&self) -> Eviction {
        self.eviction
    }

    /// The hash of a key, for [`Turn::prefetch`](crate::Turn::prefetch) and the lookup after it.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash::of(key, self.seed)
    }

    /// Takes so many bytes of the budget for something outside the cache, such as the buffers of
    /// connections, instead of what was taken before. Items are evicted to make room, and memory
    /// that they had goes back to the system.
    pub fn reserve(&self, bytes: u64) {
        self.elsewhere.store(bytes, Ordering::Relaxed);
        self.note_reserved();
    }

    /// Bytes of items under lease, each as often as it has leases: see
    /// [`Turn::lease`](crate::Turn::lease).
    pub fn leased(&self) -> u64 {
        self.leased.load(Ordering::Relaxed)
    }

    /// Returns the bytes of large items that were removed, replaced or evicted but are still
    /// leased: memory that eviction cannot free.
    pub fn kept_by_leases(&self) -> u64 {
        // The last lease may be subtracted before the item is added.
        let bytes = self.segments.kept_by_leases.load(Ordering::Relaxed);
        u64::try_from(bytes.cast_signed()).unwrap_or(0)
    }

    /// Bytes that drafts have when they are whole: they may have come or not.
    pub fn drafted(&self) -> u64 {
        self.drafted.load(Ordering::Relaxed)
    }

    pub(crate) fn note_reserved(&self) {
        // The ghost queue is made when room is short already: room for it is kept from the start,
        // for as many items as the index can hold.
        let ghost = match self.eviction {
            Eviction::S3Fifo => {
                self.ghost.memory_ahead(self.segments.index_bytes() / size_of::<Slot>() as u64)
            }
            Eviction::None => 0,
        };
        let elsewhere = self.elsewhere.load(Ordering::Relaxed);
        let beside = self.segments.memory() + self.tables.memory() + ghost;
        self.segments.reserve(elsewhere + beside);
    }

    /// Bytes of what is known of segments and of keys that were evicted.
    fn memory_beside(&self) -> u64 {
        self.segments.memory() + self.ghost.memory()
    }

    /// Numbers for compare-and-set that nobody else gets: the first of so many.
    pub(crate) fn take_cas(&self, count: u64) -> u64 {
        self.next_cas.fetch_add(count, Ordering::Relaxed)
    }

    pub(crate) fn enroll(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.push(Arc::clone(&counters));
        counters
    }

    pub(crate) fn dismiss(&self, counters: &Arc<Counters>) {
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.add(counters);
        all.0.retain(|one| !Arc::ptr_eq(one, counters));
    }

    /// Returns the number of items, including expired items that are not removed yet.
    pub fn len(&self) -> u64 {
        self.tables.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the cache has done and what it holds.
    pub fn stats(&self) -> Stats {
        let all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stats = all.1;
        all.0.iter().for_each(|counters| stats.add(counters));
        stats.items = self.len();
        // Segments whose last guard has ended are free.
        self.segments.room(&self.epochs);
        let (index, items, large) = self.segments.bytes_in_use();
        stats.memory_index = index + self.tables.memory();
        stats.memory_items = items;
        stats.memory_large = large;
        stats.memory_beside = self.memory_beside();
        stats.memory_elsewhere = self.elsewhere.load(Ordering::Relaxed);
        stats.memory = stats.memory_index
            + stats.memory_items
            + stats.memory_large
            + stats.memory_beside
            + stats.memory_elsewhere;
        stats.memory_leased = self.leased();
        stats.memory_limit = self.memory;
        stats
    }
}

/// Addresses for a budget, and what is known of them. Where the process may not have as many as
/// large items should have, there are fewer.
fn take_memory(memory: u64) -> Result<(Arena, Segments)> {
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
