//! Options of a cache with a disk tier, and the events that it reports.

use nuthatch_tier::{Damage, Disk, SystemDisk};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What happens when items cannot be written to disk as fast as they must leave memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBehind {
    /// Items are evicted without being written, and counted.
    #[default]
    Drop,
    /// Writers wait: their writes fail with [`Error::Full`](nuthatch_cache::Error::Full) until
    /// memory is free.
    Wait,
}

/// What a cache with a disk tier reports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Something in the folder is damaged or cannot be read. The items in it are lost.
    Damaged(Damage),
    /// The records of the last run may be out of date, since the system stopped without notice.
    /// They were removed.
    PowerLost {
        /// The number of records.
        records: u64,
    },
    /// The records of the last run are out of date, since a process used the folder without a disk
    /// tier. They were removed.
    Outdated {
        /// The number of records.
        records: u64,
    },
    /// A compressed value cannot be decompressed. Its item was removed.
    Undecodable,
    /// The items of the last run are in the index.
    Recovered {
        /// The number of items.
        items: u64,
        /// How long it took.
        elapsed: Duration,
    },
    /// Records of the last run were removed because a damaged part of the removal log may have
    /// named them.
    RecordsLost {
        /// The number of records.
        records: u64,
    },
    /// Nothing is written to disk any more because of this error.
    Off {
        /// The error.
        error: String,
    },
    /// It could not be recorded that items on disk were replaced or removed. The items that are on
    /// disk now are lost when the process ends.
    LogFailed {
        /// The error.
        error: String,
    },
    /// The items in memory were written when the cache was closed, as far as time and space
    /// permitted.
    Dumped {
        /// The number of items that were written.
        items: u64,
        /// The number of items that were not written, since time or space was used up.
        left_out: u64,
        /// How long it took.
        elapsed: Duration,
    },
}

/// Options of a [`TieredCache`](crate::TieredCache).
#[derive(Clone)]
pub struct Options {
    pub(crate) folder: PathBuf,
    pub(crate) max_bytes: u64,
    pub(crate) when_behind: WhenBehind,
    pub(crate) readers: usize,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) on_event: Arc<dyn Fn(Event) + Send + Sync>,
    pub(crate) can_decompress: Arc<CanDecompress>,
    pub(crate) partitions: Option<(PartitionOf, KeptPartitions)>,
}

/// Returns the partition of a key.
pub(crate) type PartitionOf = fn(&[u8]) -> u16;

/// The partitions whose records of earlier processes are valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptPartitions {
    /// The [folder](crate::TieredCache::folder_id) that has the records. In another one, none are
    /// valid.
    pub folder_id: u64,
    /// Partitions with their lowest valid id: [`FirstRecords::get`](crate::FirstRecords::get). All
    /// records of other partitions are invalid.
    pub first_records: Vec<(u16, u64)>,
}

/// Returns whether a compressed value can be decompressed.
pub(crate) type CanDecompress = dyn Fn(&[u8]) -> bool + Send + Sync;

impl Options {
    /// Minimum bytes on disk: 16 MiB.
    pub const MIN_BYTES: u64 = 16 << 20;
    /// Maximum bytes on disk: 1 TiB.
    pub const MAX_BYTES: u64 = 1 << 40;
    /// Default number of reader threads: the number of reads that the disk performs at a time.
    pub const READERS: usize = 16;

    /// Returns the options for a folder that may use `max_bytes` bytes, with all files in it.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, max_bytes: u64) -> Self {
        Self {
            folder: folder.into(),
            max_bytes,
            when_behind: WhenBehind::default(),
            readers: Self::READERS,
            disk: Arc::new(SystemDisk),
            on_event: Arc::new(|_| {}),
            can_decompress: Arc::new(|_| true),
            partitions: None,
        }
    }

    /// Sets what happens when the disk is too slow.
    #[must_use]
    pub fn when_behind(self, when_behind: WhenBehind) -> Self {
        Self { when_behind, ..self }
    }

    /// Sets the number of reader threads.
    #[must_use]
    pub fn readers(self, readers: usize) -> Self {
        Self { readers: readers.max(1), ..self }
    }

    /// Sets the disk that holds the folder. Tests replace it to simulate failures.
    #[must_use]
    pub fn disk(self, disk: Arc<dyn Disk>) -> Self {
        Self { disk, ..self }
    }

    /// Sets a function that is called with each event, on any thread.
    #[must_use]
    pub fn on_event(self, on_event: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self { on_event: Arc::new(on_event), ..self }
    }

    /// Divides the keys into [partitions](nuthatch_cache::Options::partitions), whose records on
    /// disk can be read and made invalid without those of the others. `kept` has the
    /// partitions whose records of earlier processes are valid.
    #[must_use]
    pub fn partitions(self, partition_of: fn(&[u8]) -> u16, kept: KeptPartitions) -> Self {
        Self { partitions: Some((partition_of, kept)), ..self }
    }

    /// Sets a function that returns whether a [compressed](nuthatch_cache::Item::is_compressed)
    /// value can be decompressed. It is called with each such value that is read from disk, on a
    /// thread of the tier. If it returns `false`, the item is removed, counted as
    /// [undecodable](crate::DiskStats::undecodable), and reported.
    #[must_use]
    pub fn can_decompress(
        self,
        can_decompress: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { can_decompress: Arc::new(can_decompress), ..self }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("folder", &self.folder)
            .field("max_bytes", &self.max_bytes)
            .field("when_behind", &self.when_behind)
            .field("readers", &self.readers)
            .finish_non_exhaustive()
    }
}
