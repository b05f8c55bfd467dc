//! What a caller sees of a run.

use crate::error::Error;
use std::time::Duration;

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Rows of the sources are read.
    Reading {
        /// Rows read so far.
        rows: u64,
        /// The number of rows that the sources expect; 0 if it is not known.
        total_rows: u64,
        /// Bytes read so far.
        bytes: u64,
    },
    /// The snapshot is built.
    Building(nuthatch_snapshot::Progress),
    /// Gates check the snapshot.
    Checking,
    /// The snapshot is published.
    Publishing {
        /// Bytes uploaded so far.
        bytes: u64,
        /// Bytes to upload.
        total_bytes: u64,
    },
}

/// A receiver of what happens during a run.
pub trait Observer: Send + Sync {
    /// Takes the progress. Several threads call it.
    fn progress(&self, progress: Progress);

    /// Takes the failure of an attempt. The next one begins after the wait.
    fn attempt_failed(&self, attempt: u32, error: &Error, wait: Duration);

    /// Takes a message about a condition that does not end the run, and its effect.
    fn warning(&self, message: &str);
}
