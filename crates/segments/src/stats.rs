//! What happened, counted, and how things stand.

use std::sync::atomic::{AtomicU64, Ordering};

/// What happened in this process.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    damaged: AtomicU64,
    not_kept: AtomicU64,
    written: AtomicU64,
    rebuilt: AtomicU64,
}

impl Counts {
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

/// How a folder stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// How many bytes all files may have together.
    pub limit: u64,
    /// How many bytes of the file system stay free.
    pub least_free: u64,
    /// How many bytes are in use or reserved, over all processes.
    pub used: u64,
    /// Of these, in segments.
    pub segment_bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Of these, those that some process appends to.
    pub writing: u64,
    /// Words of the index that lead somewhere: about as many parts are there.
    pub parts: u64,
    /// Words of the index.
    pub parts_most: u64,
    /// Segments that were evicted since the index was made.
    pub evicted: u64,
    /// Bytes that were saved from eviction since the index was made.
    pub moved_bytes: u64,
    /// Parts displaced from the index, because it could not grow, since the index was created.
    pub displaced: u64,
    /// Whether this process can only read the folder.
    pub read_only: bool,
    /// Parts, heads and files that this process found damaged.
    pub damaged: u64,
    /// Records that this process could not keep.
    pub not_kept: u64,
    /// Bytes that this process has written.
    pub written_bytes: u64,
    /// Indexes that this process has made from segments.
    pub rebuilt: u64,
}
