//! Options of a build.

use super::duplicates::OnDuplicate;
use super::progress::{Progress, Reporter};
use super::share::HashBits;
use crate::format::header::Shard;

/// Minimum memory budget of a build in bytes.
const MIN_MEMORY: usize = 16 << 20;

/// Minimum memory of each thread in bytes.
const MIN_MEMORY_PER_THREAD: usize = 4 << 20;

/// How values are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// No compression: every value is read in place.
    #[default]
    None,
    /// Each value is compressed by itself with zstd, with a dictionary trained on the values.
    /// Stored uncompressed are booleans, single numbers, values below 32 bytes or above 16 MiB, and
    /// values that would shrink by less than an eighth.
    #[cfg(feature = "zstd")]
    Zstd {
        /// Compression level from 1 to 22. The command `nuthatch build` and the bindings use 3
        /// unless another level is set.
        level: i32,
    },
}

/// Options for building a snapshot.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    pub(super) on_duplicate: OnDuplicate,
    pub(super) compression: Compression,
    pub(super) memory: usize,
    pub(super) threads: usize,
    pub(super) seed: u64,
    pub(super) shards: u32,
    /// The place of the file in a set that others build.
    pub(super) place: Option<Shard>,
    pub(super) value_hash_bits: HashBits,
    pub(super) reporter: Reporter,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            on_duplicate: OnDuplicate::default(),
            compression: Compression::default(),
            memory: 1 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            seed: 0,
            shards: 0,
            place: None,
            value_hash_bits: HashBits::ALL,
            reporter: Reporter::default(),
        }
    }
}

impl WriterOptions {
    /// Returns the default options: duplicates are errors, no compression, 1 GiB of memory, all
    /// cores, seed 0, one file, no progress callback.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how rows with the same key are handled; [`OnDuplicate::Error`] by default.
    #[must_use]
    pub fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = on_duplicate;
        self
    }

    /// Sets how values are compressed; [`Compression::None`] by default.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the memory budget in bytes, 1 GiB by default; a budget below 16 MiB counts as 16 MiB.
    /// Rows beyond it are spilled to temporary files in the folder of the new file. Memory of the
    /// caller, such as the values that it passes, does not count.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes.max(MIN_MEMORY);
        self
    }

    /// Sets the maximum number of threads, all cores by default; 0 counts as 1. Each thread needs 4
    /// MiB of the memory budget: with a smaller budget, fewer threads run. The bytes of the file
    /// depend neither on the number of threads nor on the memory budget.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Sets the seed of the key hash, 0 by default. Set another seed if a build fails because too
    /// many keys, chosen by an attacker, have the same hash.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number of shards, up to 65,536. With 0, the default, the snapshot is one file.
    ///
    /// Otherwise it is a set: that many files, by the hash of the key, and a manifest at the path
    /// of the snapshot. The files of the shards are in the folder of the manifest. Their names
    /// contain a checksum, so a shard whose entries did not change keeps its file. The snapshot is
    /// opened, verified and watched by the path of the manifest, as if it were one file. A set
    /// needs 16 KiB of the memory budget for each shard; with less, `create` fails. Its rows are
    /// written to a temporary file once. Do not build two sets in one folder at the same time.
    #[must_use]
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = shards;
        self
    }

    /// Sets the place in a set, instead of [`shards`](Self::shards): all rows must belong to that
    /// shard.
    pub(crate) fn place(mut self, place: Option<Shard>) -> Self {
        self.place = place;
        self
    }

    /// Sets a callback for progress. The threads of the build call it at the start of each stage
    /// and after each part of the work, several of them at once. For a set, sorting is not
    /// reported.
    #[must_use]
    pub fn progress(mut self, report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.reporter = Reporter::new(report);
        self
    }

    /// Returns the number of threads that the memory budget suffices for, at least one.
    pub(super) fn affordable_threads(&self) -> usize {
        self.threads.min(self.memory / MIN_MEMORY_PER_THREAD).max(1)
    }
}
