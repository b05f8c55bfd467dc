//! Use of the memory budget.

use super::Server;
use nuthatch_cache::Stats;

/// Bytes of memory in use, by kind. Their sum is [`Stats::memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryKinds {
    /// Segments of ordinary items.
    pub items: u64,
    /// Large items and values that are being received in place.
    pub large: u64,
    /// The index.
    pub index: u64,
    /// Connections: input, output, buffers, and values that commands are building.
    pub connections: u64,
    /// Metadata of segments, and the ghost queue.
    pub other: u64,
}

impl MemoryKinds {
    fn new(stats: &Stats, connections: u64) -> Self {
        let Stats { memory_items: items, memory_large: large, memory_index: index, .. } = *stats;
        // Connections may have changed since the cache was read.
        let left = stats.memory.saturating_sub(items + large + index);
        let connections = connections.min(left);
        Self { items, large, index, connections, other: left - connections }
    }

    /// Returns each kind with its name.
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
    /// Returns the memory in use by kind, from these statistics of the cache.
    pub fn memory_kinds(&self, stats: &Stats) -> MemoryKinds {
        MemoryKinds::new(stats, self.held())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_cache::{Cache, Options};

    #[test]
    fn kinds_add_up_to_the_total() {
        let cache = Cache::new(Options::new().memory(32 << 20)).expect("a small cache");
        let server = Server::new(cache.into());
        server.hold(1 << 20);
        let stats = server.cache.stats();
        let kinds = server.memory_kinds(&stats);
        assert_eq!(kinds.connections, 1 << 20);
        assert!(kinds.index > 0 && kinds.other > 0, "{kinds:?}");
        assert_eq!(kinds.by_name().iter().map(|(_, bytes)| bytes).sum::<u64>(), stats.memory);
        // Read before the cache counted them.
        let kinds = MemoryKinds::new(&stats, u64::MAX);
        assert_eq!(kinds.by_name().iter().map(|(_, bytes)| bytes).sum::<u64>(), stats.memory);
    }
}
