//! The options of a store.

use crate::error::{Error, Result};
use nuthatch_clock::{Clock, SystemClock};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a commit waits for, and so what a power failure or a kernel crash may lose. A process that
/// is killed loses no commits with any durability: the kernel has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Nothing that was committed is lost. Each commit waits for the disk twice: for its pages, and
    /// for the meta page that makes them visible.
    #[default]
    Sync,
    /// The last commit may be lost, even if it was acknowledged. Earlier commits are not, and the
    /// store is undamaged. Each commit waits for its pages; its meta page reaches the disk with the
    /// next commit, or [`sync`](crate::Store::sync).
    Group,
    /// Any number of the last commits may be lost, and the store may be damaged, unless the
    /// filesystem keeps the order of writes. No commit waits for the disk. A later commit that
    /// does, or [`sync`](crate::Store::sync), makes all earlier ones durable. For data that can be
    /// recreated.
    None,
}

/// Options of a [`Store`](crate::Store).
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "options that are independent of each other")]
pub struct Options {
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) durability: Durability,
    pub(crate) reserve: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) growth_patience: Duration,
    pub(crate) tables: u32,
    pub(crate) readers: u32,
    pub(crate) threads: usize,
    pub(crate) read_ahead: bool,
    pub(crate) allow_network_filesystem: bool,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Options {
    /// The minimum of [`reserve`](Self::reserve) and [`limit`](Self::limit): 64 KiB.
    pub const MIN_RESERVE: u64 = 64 << 10;
    /// The maximum of [`reserve`](Self::reserve) and [`limit`](Self::limit): 64 TiB.
    pub const MAX_RESERVE: u64 = 64 << 40;

    /// Returns the defaults: the store is created if it does not exist, commits are durable, and
    /// its size is not limited.
    pub fn new() -> Self {
        Self {
            create: true,
            read_only: false,
            durability: Durability::default(),
            reserve: 1 << 40,
            limit: None,
            growth_patience: Duration::from_secs(5),
            tables: 256,
            readers: 1022,
            threads: std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 16),
            read_ahead: true,
            allow_network_filesystem: false,
            clock: Arc::new(SystemClock),
        }
    }

    /// Sets whether the store is created if it does not exist; `true` by default. The parent of its
    /// folder must exist.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets whether the store is opened for reading only; `false` by default. Writes fail then.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets what commits wait for, if a transaction does not set it; [`Durability::Sync`] by
    /// default.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the initial address space of the map in bytes; 1 TiB by default. It uses no memory and
    /// no disk space: the file is as long as its data. If the system provides less, the store uses
    /// what it gets; if the data outgrows it, the map moves while no transaction of the process is
    /// open.
    #[must_use]
    pub fn reserve(mut self, bytes: u64) -> Self {
        self.reserve = bytes;
        self
    }

    /// Sets the maximum size of the file in bytes, rounded up to a multiple of 64 KiB; no limit by
    /// default. Writes beyond it fail with [`Error::Full`]. A limit below the size of an existing
    /// file only keeps it from growing.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Sets the maximum time that a write which needs a larger map waits for open transactions to
    /// end; 5 seconds by default. The map moves when none is open in this process.
    ///
    /// New transactions begin meanwhile. Once all older ones have ended, new ones wait too, for at
    /// most 64 ms at a time. After the maximum time, writes that do not fit fail with
    /// [`Error::Full`]. So do transactions that read pages which another process wrote beyond this
    /// map.
    #[must_use]
    pub fn growth_patience(mut self, patience: Duration) -> Self {
        self.growth_patience = patience;
        self
    }

    /// Sets the maximum number of tables that this process opens, system tables not included; 256
    /// by default, from 1 to 100,000.
    #[must_use]
    pub fn tables(mut self, max: u32) -> Self {
        self.tables = max;
        self
    }

    /// Sets the maximum number of open read transactions in all processes; 1022 by default, from 1
    /// to 100,000. The value of the first process that opens the store applies.
    #[must_use]
    pub fn readers(mut self, max: u32) -> Self {
        self.readers = max;
        self
    }

    /// Sets the maximum number of threads that read for streams, from 1 to 1024; by default one for
    /// each core, from 2 to 16. Threads start when they are needed and end when they are idle.
    /// Parallel scans have threads of their own: see [`Parallel::split`](crate::Parallel::split).
    #[must_use]
    pub fn threads(mut self, max: usize) -> Self {
        self.threads = max.clamp(1, 1024);
        self
    }

    /// Sets whether streams of rows read up to four batches ahead; `true` by default.
    #[must_use]
    pub fn read_ahead(mut self, ahead: bool) -> Self {
        self.read_ahead = ahead;
        self
    }

    /// Sets whether a folder on a network filesystem, such as NFS or SMB, may be opened; `false` by
    /// default.
    ///
    /// Processes share a store through memory maps and locks. Two machines may see different bytes
    /// of one map on such a filesystem, so that a store which both write to is damaged without an
    /// error. Allow it only if processes of one machine use the store.
    #[must_use]
    pub fn allow_network_filesystem(mut self, allow: bool) -> Self {
        self.allow_network_filesystem = allow;
        self
    }

    /// Sets the clock that expiry uses; the system's clock by default.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the initial size of the map in bytes.
    pub(crate) fn first_map(&self) -> u64 {
        self.limit.map_or(self.reserve, |limit| limit.min(self.reserve))
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let range = Self::MIN_RESERVE..=Self::MAX_RESERVE;
        let wrong = |option, expected: &str, found: String| {
            Err(Error::Options { option, expected: expected.to_owned(), found })
        };
        for (option, value) in [("reserve", Some(self.reserve)), ("limit", self.limit)] {
            match value {
                Some(bytes) if !range.contains(&bytes) => {
                    return wrong(option, "from 64 KiB to 64 TiB", format!("{bytes} bytes"));
                }
                _ => {}
            }
        }
        if !(1..=100_000).contains(&self.tables) {
            return wrong("tables", "from 1 to 100000", self.tables.to_string());
        }
        if !(1..=100_000).contains(&self.readers) {
            return wrong("readers", "from 1 to 100000", self.readers.to_string());
        }
        Ok(())
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
            .field("create", &self.create)
            .field("read_only", &self.read_only)
            .field("durability", &self.durability)
            .field("reserve", &self.reserve)
            .field("limit", &self.limit)
            .field("allow_network_filesystem", &self.allow_network_filesystem)
            .finish_non_exhaustive()
    }
}
