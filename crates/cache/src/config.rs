//! Options of a cache.

use crate::error::{Error, Result};
use crate::records::Records;
use nuthatch_clock::{Clock, SystemClock};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What happens when the budget is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// Evicts items that are rarely read. A single pass over many keys does not displace items that
    /// are read often. (S3-FIFO: Yang and others, "FIFO queues are all you need for cache
    /// eviction", SOSP 2023.)
    #[default]
    S3Fifo,
    /// Evicts nothing: a write that finds no memory fails with [`Error::Full`].
    None,
}

/// Options of a [`Cache`](crate::Cache).
#[derive(Clone)]
pub struct Options {
    pub(crate) memory: u64,
    pub(crate) eviction: Eviction,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) seed: Option<u64>,
    pub(crate) guard_wait: Duration,
    pub(crate) first_cas: u64,
    pub(crate) records: Option<Arc<dyn Records>>,
    pub(crate) partition_of: Option<fn(&[u8]) -> u16>,
}

impl Options {
    /// Minimum budget: 16 MiB.
    pub const MIN_MEMORY: u64 = 16 << 20;
    /// Maximum budget: 1 TiB.
    pub const MAX_MEMORY: u64 = 1 << 40;

    /// Returns the defaults: a budget of 1 GiB, S3-FIFO eviction, the system clock, a random seed,
    /// and at most one second of waiting for guards.
    pub fn new() -> Self {
        let clock = Arc::new(SystemClock);
        let eviction = Eviction::default();
        let guard_wait = Duration::from_secs(1);
        Self {
            memory: 1 << 30,
            eviction,
            clock,
            seed: None,
            guard_wait,
            first_cas: 1,
            records: None,
            partition_of: None,
        }
    }

    /// Sets the budget in bytes, from 16 MiB to 1 TiB. It includes keys, values, the index and the
    /// state of segments. It also limits the length of values:
    /// [`Cache::max_value_len`](crate::Cache::max_value_len).
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets what happens when the budget is used up.
    #[must_use]
    pub fn eviction(mut self, eviction: Eviction) -> Self {
        self.eviction = eviction;
        self
    }

    /// Sets the source of time.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the seed of the hash of keys. The default is a random seed, so that clients cannot
    /// choose keys that collide.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the maximum time that a session sleeps until the epoch guards of other sessions end,
    /// which delay the reuse of freed memory: in [`Guard::renew`](crate::Guard::renew), and in
    /// [`Session::guard`](crate::Session::guard) after a large item found no memory. Guards are
    /// short, but a descheduled thread keeps its guard.
    #[must_use]
    pub fn guard_wait(mut self, wait: Duration) -> Self {
        self.guard_wait = wait;
        self
    }

    /// Sets the first number for compare-and-set that the cache assigns. The default is 1. A cache
    /// into which items of an earlier run are [restored](crate::Cache::begin_restore) must not
    /// assign the numbers of that run again, as clients may still use them.
    #[must_use]
    pub fn first_cas(mut self, first_cas: u64) -> Self {
        self.first_cas = first_cas;
        self
    }

    /// Sets the records of items on disk, so that the index can point to them. Then items can be
    /// demoted: see [`Session::choose_demotions`](crate::Session::choose_demotions).
    #[must_use]
    pub fn records(self, records: Arc<dyn Records>) -> Self {
        Self { records: Some(records), ..self }
    }

    /// Divides the keys into partitions: `partition_of` returns that of a key, below 16,384. It
    /// replaces the 14 lowest bits of the hash, so that the records of a partition on disk are
    /// found without their keys: see [`KeyHash::partition`](crate::KeyHash::partition).
    #[must_use]
    pub fn partitions(self, partition_of: fn(&[u8]) -> u16) -> Self {
        Self { partition_of: Some(partition_of), ..self }
    }

    /// Checks all options.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] if one is out of its range.
    pub(crate) fn validate(&self) -> Result<()> {
        if (Self::MIN_MEMORY..=Self::MAX_MEMORY).contains(&self.memory) {
            return Ok(());
        }
        Err(Error::Options {
            option: "memory",
            expected: "from 16 MiB to 1 TiB".to_owned(),
            found: format!("{} bytes", self.memory),
        })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("memory", &self.memory)
            .field("eviction", &self.eviction)
            .finish_non_exhaustive()
    }
}
