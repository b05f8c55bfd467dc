//! What limits the length of a value.

use nuthatch_cache::Cache;
use std::fmt;

/// What limits the length of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueLimit {
    /// The setting `proto-max-bulk-len` of Redis (`max-value` of the configuration).
    #[default]
    Setting,
    /// The memory of the cache: at most 5/8 of it.
    Memory,
    /// The memory of the cache for a value that is copied from its request: at most 3/8 of it.
    CopiedMemory,
    /// The maximum length of a value in any cache, 512 MiB.
    Item,
    /// The limit before login.
    BeforeLogin,
}

impl ValueLimit {
    /// Returns what limits values of a cache with this maximum.
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
