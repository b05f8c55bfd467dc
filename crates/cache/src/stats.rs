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
            /// Items now, expired ones among them that were not met yet.
            pub items: u64,
            /// Bytes of memory in use: segments, index, and what is known of them.
            pub memory: u64,
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
    /// Items whose memory came back since their time was over.
    expired,
    /// Items evicted.
    evicted,
    /// Bytes copied within memory to make room.
    moved_bytes,
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
