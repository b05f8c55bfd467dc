//! The ordered store in Python, in this process and behind a server, with blocking and asynchronous
//! calls.
//!
//! The classes (`data`, `txn`, `transaction`, `writer`, `scan`, `watch`) call `engine`, which
//! returns each call as [`Work`](crate::work::Work) of either `local` or `remote`. Closing a store
//! releases the references of Python objects through `held`.

mod batch;
mod bounds;
mod condition;
mod data;
mod engine;
mod figures;
mod held;
mod local;
mod opening;
mod reading;
mod remote;
mod rows;
mod scan;
mod slot;
mod snapshot;
mod tables;
mod transaction;
mod txn;
mod watch;
mod writer;
mod writes;
mod writing;

use pyo3::prelude::*;

/// Adds the classes and functions of the store to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    opening::register(module)?;
    data::register(module)?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<figures::Change>()?;
    module.add_class::<figures::Compacted>()?;
    module.add_class::<figures::Entry>()?;
    module.add_class::<figures::Stat>()?;
    module.add_class::<figures::TableStat>()?;
    module.add_class::<figures::Verified>()?;
    module.add_class::<figures::Written>()?;
    module.add_class::<rows::RowBatch>()?;
    module.add_class::<scan::AsyncScan>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<snapshot::AsyncSnapshot>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<transaction::AsyncTransaction>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<watch::AsyncWatch>()?;
    module.add_class::<watch::Watch>()?;
    module.add_class::<writer::Ack>()?;
    module.add_class::<writer::AsyncWriter>()?;
    module.add_class::<writer::Writer>()
}
