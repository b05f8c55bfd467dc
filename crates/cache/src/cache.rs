//! What all sessions of a cache share.

use crate::arena::Arena;
use crate::clock::Clock;
use crate::config::{Eviction, Options};
use crate::epoch::Epochs;
use crate::error::Result;
use crate::ghost::Ghost;
use crate::hash::KeyHash;
use crate::segments::Segments;
use crate::session::Session;
use crate::stats::{Counters, Stats};
use crate::tables::Tables;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A cache in memory, shared by all threads of a process. Each works through a [`Session`].
pub struct Cache {
    pub(crate) arena: Arena,
    pub(crate) segments: Segments,
    pub(crate) tables: Tables,
    pub(crate) epochs: Epochs,
    pub(crate) ghost: Ghost,
    pub(crate) eviction: Eviction,
    pub(crate) clock: Arc<dyn Clock>,
    seed: u64,
    memory: u64,
    elsewhere: AtomicU64,
    next_cas: AtomicU64,
    /// Of sessions that are open, and of those that are over as one.
    counters: Mutex<(Vec<Arc<Counters>>, Stats)>,
}

impl Cache {
    /// The longest key in bytes.
    pub const KEY_MOST: usize = 64 << 10;

    /// A cache with these options. Memory is taken from the system as it is needed.
    pub fn new(options: Options) -> Result<Self> {
        options.validate()?;
        let Options { memory, eviction, clock, seed } = options;
        let segments = Segments::new(memory);
        let cache = Self {
            arena: Arena::new((u64::from(segments.count()) * u64::from(segments.len())) as usize)?,
            segments,
            tables: Tables::new(memory),
            epochs: Epochs::new(),
            ghost: Ghost::default(),
            eviction,
            clock,
            seed: seed.unwrap_or_else(|| RandomState::new().hash_one(memory)),
            memory,
            elsewhere: AtomicU64::new(0),
            next_cas: AtomicU64::new(1),
            counters: Mutex::default(),
        };
        cache.note_reserved();
        Ok(cache)
    }

    /// Opens a session, for one thread at a time.
    pub fn session(&self) -> Result<Session<'_>> {
        Session::new(self)
    }

    /// The longest value in bytes.
    pub fn value_most(&self) -> usize {
        self.segments.len() as usize / 2 - Self::KEY_MOST
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
    /// connections, instead of what was taken before. Items are evicted to make room.
    pub fn reserve(&self, bytes: u64) {
        self.elsewhere.store(bytes, Ordering::Relaxed);
        self.note_reserved();
    }

    pub(crate) fn note_reserved(&self) {
        self.segments.reserve(self.elsewhere.load(Ordering::Relaxed) + self.memory_beside());
    }

    /// Bytes of what is known of segments, tables and keys that were evicted.
    fn memory_beside(&self) -> u64 {
        self.segments.memory() + self.tables.memory() + self.ghost.memory()
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

    /// Number of items, expired ones among them that were not met yet.
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
        stats.memory_items = self.segments.bytes_in_use();
        stats.memory_index = self.tables.memory();
        stats.memory_beside =
            self.segments.memory() + self.ghost.memory() + self.elsewhere.load(Ordering::Relaxed);
        stats.memory = stats.memory_items + stats.memory_index + stats.memory_beside;
        stats.memory_limit = self.memory;
        stats
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
