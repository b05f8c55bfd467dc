//! What the memory of the budget is used for.

use super::Server;
use nuthatch_cache::Stats;

/// Bytes of memory in use, by kind. Together they are [`Stats::memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryKinds {
    /// Segments, where items are.
    pub items: u64,
    /// Items that have segments of their own.
    pub large: u64,
    /// The index.
    pub index: u64,
    /// Connections: what they have received, what they are to send, the buffers for it, and values
    /// that are being made of others.
    pub connections: u64,
    /// What is known of segments and of evicted keys.
    pub other: u64,
}

impl MemoryKinds {
    fn new(stats: &Stats, connections: u64) -> Self {
        let Stats { memory_items: items, memory_large: large, memory_index: index, .. } = *stats;
        // Connections may have changed since the cache was asked.
        let left = stats.memory.saturating_sub(items + large + index);
        let connections = connections.min(left);
        Self { items, large, index, connections, other: left - connections }
    }

    /// Each kind by its name.
    pub fn by_name(&self) -> [(&'static str, u64); 5] {
        let Self { items, large, index, connections, other } = *self;
        [
            ("items", items),
            ("large", large),
            ("index", index),
            ("connections", connections),
            ("other", other),
        ]
    }
}

impl Server {
    /// What the memory that the cache tells of is used for.
    pub fn memory_kinds(&self, stats: &Stats) -> MemoryKinds {
        MemoryKinds::new(stats, self.held())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_cache::{Cache, Options};

    #[test]
    fn kinds_add_up_to_all_that_is_used() {
        let cache = Cache::new(Options::new().memory(32 << 20)).expect("a small cache");
        let server = Server::new(cache.into());
        server.hold(1 << 20);
        let stats = server.cache.stats();
        let kinds = server.memory_kinds(&stats);
        assert_eq!(kinds.connections, 1 << 20);
        assert!(kinds.index > 0 && kinds.other > 0, "{kinds:?}");
        assert_eq!(kinds.by_name().iter().map(|(_, bytes)| bytes).sum::<u64>(), stats.memory);
        // Told before the cache knew.
        let kinds = MemoryKinds::new(&stats, u64::MAX);
        assert_eq!(kinds.by_name().iter().map(|(_, bytes)| bytes).sum::<u64>(), stats.memory);
    }
}
