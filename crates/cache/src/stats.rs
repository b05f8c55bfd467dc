//! What a cache has done, and what it holds.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What one session counts. It alone writes here, and only adds.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// Facts about a cache. Counts are since it was made.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            /// Current number of items, including expired items that are not removed yet.
            pub items: u64,
            /// Bytes of memory in use: the sum of the next five.
            pub memory: u64,
            /// Bytes of the index.
            pub memory_index: u64,
            /// Bytes of segments of ordinary items, holes in them included.
            pub memory_items: u64,
            /// Bytes of large items, and of those that are over until the system has them back.
            pub memory_large: u64,
            /// Bytes of what is known of segments and of keys that were evicted.
            pub memory_beside: u64,
            /// Bytes taken for something outside the cache:
            /// [`Cache::reserve`](crate::Cache::reserve).
            pub memory_elsewhere: u64,
            /// Bytes of items under lease, each as often as it has leases. They are among those
            /// above, also when nothing but leases keeps them.
            pub memory_leased: u64,
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
    /// Lookups of keys that were not there.
    misses_absent,
    /// Lookups of keys whose time was over.
    misses_expired,
    /// Lookups of keys that had been evicted lately, before they were ever asked for.
    misses_evicted,
    /// Items stored.
    stored,
    /// Items removed on demand.
    removed,
    /// Expired items that were removed.
    expired,
    /// Items evicted.
    evicted,
    /// Bytes copied within memory to make room.
    moved_bytes,
    /// Writes that found no free memory and waited for the guards of other sessions.
    guard_waits,
}

/// A count that one thread adds to and others read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        // Nobody else writes, so that no locked instruction is needed.
        self.0.store(self.0.load(Ordering::Relaxed) + count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
