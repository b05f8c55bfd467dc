//! Measurements that `nuthatch bench` runs.

mod eviction;
mod fill;

pub(crate) use eviction::{Equal, EvictionBench, FILE_MOST, Rival, trace_names};
pub(crate) use fill::FillBench;

use crate::commands::Failure;
use nuthatch_bench::Options;

/// Vectors are large: so many at most, whatever the number of keys.
const MOST_VECTORS: u32 = 100_000;

/// What `nuthatch bench snapshot` is asked for.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotBench {
    /// Numbers of keys, each measured for itself.
    pub(crate) keys: Vec<u32>,
    /// Whether to print an array of rows in JSON instead of a table.
    pub(crate) json: bool,
}

impl SnapshotBench {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { keys, json } = self;
        let vectors = keys.iter().copied().min().unwrap_or(0).min(MOST_VECTORS);
        let options = Options { keys, vectors, json, ..Options::default() };
        nuthatch_bench::run(&options, &mut std::io::stdout().lock())
            .map_err(|error| Failure::Error(error.to_string()))
    }
}
