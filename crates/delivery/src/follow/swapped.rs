//! What a check has done.

use crate::manifest::Generation;
use std::path::PathBuf;
use std::time::SystemTime;

/// The progress of fetching a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes of this generation that are in the folder, reused files included.
    pub bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
}

/// A generation that was swapped in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swapped {
    /// The number of the generation.
    pub generation: u64,
    /// The time of its publication.
    pub created: SystemTime,
    /// The path that programs open.
    pub path: PathBuf,
    /// Bytes that were fetched, deltas included. Files of the generation before are not fetched
    /// again.
    pub fetched_bytes: u64,
    /// Number of files that were built from deltas.
    pub built_files: u64,
    /// Why files were fetched although there was a delta.
    pub delta_failures: Vec<String>,
}

impl Swapped {
    pub(super) fn new(generation: &Generation, path: PathBuf, fetched: FetchResult) -> Self {
        Self {
            generation: generation.id,
            created: generation.created,
            path,
            fetched_bytes: fetched.bytes,
            built_files: fetched.built_files,
            delta_failures: fetched.delta_failures,
        }
    }
}

/// What a fetch has done.
#[derive(Debug, Default)]
pub(super) struct FetchResult {
    pub(super) bytes: u64,
    pub(super) built_files: u64,
    pub(super) delta_failures: Vec<String>,
}
