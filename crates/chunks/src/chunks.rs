//! The cache: a folder of segments, and the fetches that are under way in this process.

use crate::error::Result;
use crate::flights::Fills;
use nuthatch_segments::{Options, Segments, Warning};
use std::path::Path;

/// A cache of chunks in a folder. Shared by all threads of a process, as the folder is by
/// processes.
#[derive(Debug)]
pub struct Chunks {
    pub(crate) segments: Segments,
    pub(crate) fills: Fills,
}

impl Chunks {
    /// Opens a folder, and creates it if it is missing. If this process may not write to the
    /// folder, opens it read-only: chunks are found, and none are stored.
    ///
    /// # Errors
    /// Fails if the folder cannot be opened, if an option is out of range, or if an option would
    /// change a setting of a folder that can only be read.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let segments = Segments::open(path, options)?;
        Ok(Self { segments, fills: Fills::default() })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.segments.path()
    }

    /// Returns whether this process can only read the folder now. What is there is found then, and
    /// each put is refused and counted, until the folder can be written again.
    pub fn read_only(&self) -> bool {
        self.segments.read_only()
    }

    /// Returns what is not as it should be with the folder now. Each is worth one line of a log.
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

    /// Returns options that make the folder again as it is now, after it was removed: those that it
    /// was opened with, with the limits and the sharing that it has.
    pub fn options_to_make_again(&self) -> Options {
        self.segments.options_to_make_again()
    }

    /// Returns the limit of the folder, which any process can change. `None` while another process
    /// makes the index again.
    pub fn limit(&self) -> Option<u64> {
        self.segments.limit()
    }

    /// How many bytes one put may have: half the limit.
    pub fn put_most(&self) -> u64 {
        self.segments.part_most() * 4
    }

    /// How many bytes one chunk may have.
    pub fn chunk_most(&self) -> u64 {
        self.segments.part_most()
    }
}
