//! How a cache is set up.

use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What happens when memory is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// What is asked for least makes room, in a way that one pass over many keys does not disturb
    /// (S3-FIFO: Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023).
    #[default]
    S3Fifo,
    /// Nothing is evicted: writes that need room fail.
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
}

impl Options {
    /// The least budget: 16 MiB.
    pub const LEAST_MEMORY: u64 = 16 << 20;
    /// The greatest budget: 1 TiB.
    pub const MOST_MEMORY: u64 = 1 << 40;

    /// 1 GiB, eviction, the system's clock.
    pub fn new() -> Self {
        let clock = Arc::new(SystemClock);
        let eviction = Eviction::default();
        let guard_wait = Duration::from_secs(1);
        Self { memory: 1 << 30, eviction, clock, seed: None, guard_wait }
    }

    /// The budget in bytes, from 16 MiB to 1 TiB. Everything counts: keys, values, index, and what
    /// is known of segments. A value may have 5/8 of it, up to 512 MiB; the addresses for such
    /// values become few from 512 GiB on.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// What happens when memory is used up.
    #[must_use]
    pub fn eviction(mut self, eviction: Eviction) -> Self {
        self.eviction = eviction;
        self
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The seed of the hash of keys. By default a random one, so that nobody outside can choose
    /// keys that collide.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets how long [`Turn::renew`](crate::Turn::renew), and the guard after a write that failed,
    /// wait at most for the epoch guards of other sessions that delay the reuse of freed memory;
    /// one second by default. Guards are short, but a descheduled thread keeps its guard. Only the
    /// time that the waiting thread sleeps counts.
    #[must_use]
    pub fn guard_wait(mut self, wait: Duration) -> Self {
        self.guard_wait = wait;
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if (Self::LEAST_MEMORY..=Self::MOST_MEMORY).contains(&self.memory) {
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
