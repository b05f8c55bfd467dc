//! Measurements that `nuthatch bench` runs.

use crate::commands::Failure;

/// What `nuthatch bench snapshot` is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotBench {
    /// Number of keys.
    pub(crate) keys: u64,
    /// Whether to print an array of rows in JSON instead of a table.
    pub(crate) json: bool,
}

impl SnapshotBench {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { keys, json } = self;
        Err(Failure::Error(format!("no measurements yet (keys {keys}, json {json})")))
    }
}
