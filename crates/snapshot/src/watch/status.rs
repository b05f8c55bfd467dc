//! Events and the status of a watch.

use crate::error::Error;
use crate::reader::Snapshot;
use std::path::PathBuf;

/// An event of a watch.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The watch switched to this generation. Readers get it at their next call.
    Switched(&'a Snapshot),
    /// The newest generation is missing, cannot be opened or does not verify. Readers keep the
    /// generation that they have. Not reported again while the error stays the same.
    Rejected(&'a Error),
}

/// The status of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchStatus {
    /// The file that readers read.
    pub path: PathBuf,
    /// Number of switches to a new generation.
    pub switched: u64,
    /// Number of [`Event::Rejected`] that were reported.
    pub rejected: u64,
    /// The error that prevents a switch to the newest generation, or `None` if there is none.
    pub error: Option<String>,
    /// The message of the last panic of the callback or of a poll, or `None` if there was none.
    pub panic: Option<String>,
}
