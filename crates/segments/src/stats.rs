//! Counters, and the state of a folder in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of this process.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    damaged: AtomicU64,
    not_kept: AtomicU64,
    written: AtomicU64,
    rebuilt: AtomicU64,
}

impl Counters {
    pub(crate) fn damaged(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn not_kept(&self) {
        self.not_kept.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn rebuilt(&self) {
        self.rebuilt.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> [u64; 4] {
        [&self.damaged, &self.not_kept, &self.written, &self.rebuilt]
            .map(|count| count.load(Ordering::Relaxed))
    }
}

/// The state of a folder in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Maximum size of all files together, in bytes.
    pub limit: u64,
    /// Bytes of the filesystem that stay free.
    pub min_free: u64,
    /// Bytes in use or reserved, by all processes.
    pub used: u64,
    /// The bytes of `used` that segments take.
    pub segment_bytes: u64,
    /// Number of segments.
    pub segments: u64,
    /// Number of segments that a process appends to.
    pub writing: u64,
    /// Used words of the index: about as many parts are stored.
    pub parts: u64,
    /// Number of words of the index: the parts that it has room for without growing.
    pub max_parts: u64,
    /// Segments evicted since the index was created.
    pub evicted: u64,
    /// Bytes that eviction moved to another segment since the index was created.
    pub moved_bytes: u64,
    /// Parts displaced from the index, because it could not grow, since the index was created.
    pub displaced: u64,
    /// Whether this process can only read the folder.
    pub read_only: bool,
    /// Damaged parts, heads and files that this process found.
    pub damaged: u64,
    /// Records that this process could not keep.
    pub not_kept: u64,
    /// Bytes that this process wrote.
    pub written_bytes: u64,
    /// Number of times this process rebuilt the index.
    pub rebuilt: u64,
}
