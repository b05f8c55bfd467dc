//! What limits the length of a value.

use nuthatch_cache::Cache;
use std::fmt;

/// What limits the length of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueLimit {
    /// The setting that Redis calls `proto-max-bulk-len` (`max-value` of the configuration).
    #[default]
    Setting,
    /// The memory of the cache, of which one value may have 5/8.
    Memory,
    /// The memory of the cache, of which a value that is copied from its request may have 3/8.
    CopiedMemory,
    /// The longest value that the cache can store.
    Item,
    /// What a client may send before it has logged in.
    BeforeLogin,
}

impl ValueLimit {
    /// Returns what sets the maximum length of a value of a cache.
    pub(crate) fn of_cache(max: usize) -> Self {
        if max < Cache::MAX_VALUE_LEN { Self::Memory } else { Self::Item }
    }
}

impl fmt::Display for ValueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Setting => "proto-max-bulk-len",
            Self::Memory => "5/8 of maxmemory",
            Self::CopiedMemory => "3/8 of maxmemory",
            Self::Item => "the longest value that can be stored",
            Self::BeforeLogin => "the limit before login",
        })
    }
}
