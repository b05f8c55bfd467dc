//! Snapshots in Python: lookups, batches of lookups, iteration, a watch, and building.
//!
//! | module | content |
//! |---|---|
//! | `failure` | errors of snapshots, and their conversion into exceptions |
//! | `held` | an open snapshot that several Python objects keep open |
//! | `identity` | which file a snapshot was opened from, for pickling |
//! | `keys` | keys from Python |
//! | `numbers` | lists of numbers without a copy, by the buffer protocol |
//! | `objects` | Python objects for values |
//! | `batch` | lookups of many keys: lists, NumPy arrays, Arrow columns |
//! | `snapshot`, `entries`, `stats` | the class `Snapshot`, its iterators and statistics |
//! | `rows` | values from Python for a new snapshot |
//! | `writer`, `watch` | the classes `SnapshotWriter` and `SnapshotWatch` |
//! | `stream`, `frames` | Arrow streams of data frames, and snapshots of them |
//! | `shards` | shards of sets that several processes build |
//!
//! A module imports only those above it.

mod batch;
mod entries;
mod failure;
mod frames;
mod held;
mod identity;
mod keys;
mod numbers;
mod objects;
mod rows;
mod shards;
mod snapshot;
mod stats;
mod stream;
mod typed;
mod watch;
mod writer;

use pyo3::prelude::*;

/// Adds the classes and functions of snapshots to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    held::detect_threading(module.py())?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<stats::SnapshotStats>()?;
    module.add_class::<watch::SnapshotWatch>()?;
    module.add_class::<watch::SnapshotWatchStatus>()?;
    module.add_class::<writer::SnapshotWriter>()?;
    module.add_class::<writer::SnapshotSummary>()?;
    module.add_class::<batch::ArrowColumn>()?;
    module.add_function(wrap_pyfunction!(shards::_write_shards, module)?)?;
    module.add_function(wrap_pyfunction!(shards::_merge_shards, module)?)?;
    module.add_function(wrap_pyfunction!(shards::_join_shards, module)?)?;
    module.add_function(wrap_pyfunction!(frames::_write_snapshot, module)?)?;
    module.add_function(wrap_pyfunction!(snapshot::_open_snapshot, module)?)?;
    module.add_function(wrap_pyfunction!(watch::_watch_snapshot, module)?)
}
