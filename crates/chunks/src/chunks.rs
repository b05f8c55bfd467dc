//! The cache: a folder of segments, and the fetches in progress in this process.

use crate::error::Result;
use crate::flights::Flights;
use nuthatch_segments::{Options, Segments, Warning};
use std::path::Path;

/// A cache of chunks in a folder. Threads of a process share it, and processes share the folder.
#[derive(Debug)]
pub struct Chunks {
    pub(crate) segments: Segments,
    pub(crate) flights: Flights,
}

impl Chunks {
    /// Opens a folder, and creates it if it is missing. If this process may not write to the
    /// folder, opens it read-only: chunks are found, and none are stored.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Folder`](crate::Error::Folder) if the folder cannot be opened, an option is
    /// out of range, or an option would change a setting of a folder that can only be read.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let segments = Segments::open(path, options)?;
        Ok(Self { segments, flights: Flights::default() })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.segments.path()
    }

    /// Returns whether this process can only read the folder now. Then stored chunks are found, and
    /// each put is refused and counted, until the folder becomes writable.
    pub fn is_read_only(&self) -> bool {
        self.segments.is_read_only()
    }

    /// Returns the current problems of the folder, each as a message for a log or for the user.
    pub fn warnings(&self) -> Vec<Warning> {
        self.segments.warnings()
    }

    /// Returns whether the folder was removed since it was opened. Opening it again creates it.
    pub fn is_removed(&self) -> bool {
        self.segments.is_removed()
    }

    /// Returns the options that the folder was opened with.
    pub fn options(&self) -> &Options {
        self.segments.options()
    }

    /// Returns options that create the folder as it is now, after it was removed: the options that
    /// it was opened with, with its current limits and sharing.
    pub fn options_to_recreate(&self) -> Options {
        self.segments.options_to_recreate()
    }

    /// Returns the limit of the folder, which any process can change. `None` while another process
    /// rebuilds the index.
    pub fn limit(&self) -> Option<u64> {
        self.segments.limit()
    }

    /// Returns the maximum length of one put in bytes: half the limit, at most 16 GiB.
    pub fn max_put_len(&self) -> u64 {
        self.segments.max_part_len() * 4
    }

    /// Returns the maximum length of one chunk in bytes: an eighth of the limit, at most 4 GiB.
    pub fn max_chunk_len(&self) -> u64 {
        self.segments.max_part_len()
    }
}
