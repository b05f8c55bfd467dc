//! Counters and statistics of a cache.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one session. Only that session writes them, and only adds.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// Statistics of a cache. Counters start when the cache is created.
        ///
        /// A lookup is a call of [`Guard::get`](crate::Guard::get),
        /// [`get_hashed`](crate::Guard::get_hashed) or
        /// [`get_with_cas`](crate::Guard::get_with_cas). Other operations count no hits and no
        /// misses, such as [`peek`](crate::Guard::peek) and [`update`](crate::Guard::update).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            /// Current number of items, including expired items that are not removed yet.
            pub items: u64,
            /// Number of these items that are on disk.
            pub items_on_disk: u64,
            /// Bytes of the budget in use: the sum of index, items, large, metadata and reserved.
            pub memory: u64,
            /// Bytes of the index.
            pub memory_index: u64,
            /// Bytes of ordinary segments with items, including dead bytes.
            pub memory_items: u64,
            /// Bytes of large items and pending values. Removed ones count until their pages were
            /// returned to the system.
            pub memory_large: u64,
            /// Bytes of the state of segments and of the ghost queue.
            pub memory_metadata: u64,
            /// Bytes reserved for other purposes than items:
            /// [`Cache::reserve`](crate::Cache::reserve).
            pub memory_reserved: u64,
            /// Bytes of items with item references; an item counts once for each reference. The
            /// memory of these items is part of `memory_items` or `memory_large`, even if only
            /// references keep it.
            pub memory_referenced: u64,
            /// The budget in bytes.
            pub memory_limit: u64,
        }

        impl Stats {
            pub(crate) fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.get();)*
            }
        }
    };
}
counters! {
    /// Lookups that found an item.
    hits,
    /// Lookups of keys that are unknown or were removed.
    misses_absent,
    /// Lookups of expired items.
    misses_expired,
    /// Lookups of recently evicted keys whose items were not read before their eviction.
    /// Approximate: only 16 bits of the hash of each evicted key are remembered.
    misses_evicted,
    /// Items stored, those that replaced another item included.
    stored,
    /// Items removed by [`Guard::remove`](crate::Guard::remove) and
    /// [`Guard::update`](crate::Guard::update). [`Guard::clear`](crate::Guard::clear) counts none.
    removed,
    /// Expired items that were removed.
    expired,
    /// Items evicted.
    evicted,
    /// Items evicted to disk: their records were written.
    demoted,
    /// Items evicted to disk without a write, since their records were there already.
    demoted_unchanged,
    /// Items on disk that were stored in memory again.
    promoted,
    /// Bytes of items moved by reclamation.
    moved_bytes,
    /// Times that a session found no free memory for a write and slept until other sessions ended
    /// their guards. Each wait takes at most
    /// [`Options::guard_wait`](crate::Options::guard_wait).
    guard_waits,
}

/// A counter with one writer and any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        // There is one writer, so no atomic read-modify-write is needed.
        self.0.store(self.0.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
