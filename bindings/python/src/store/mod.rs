//! The ordered store in Python, in this process and behind a server, with blocking and asynchronous
//! calls.
//!
//! | module | content |
//! |---|---|
//! | `engine` | stores of both kinds, without Python classes |
//! | `rows`, `source_slot` | rows of batches, and exclusive access to their source |
//! | `transactions` | the state of transactions |
//! | `scan_state` | the state of scans |
//! | `results` | Python classes for results: plain objects with fields |
//! | `classes` | the other Python classes |
//!
//! A module imports only those above it. `results` is imported by all.

mod classes;
mod engine;
mod failure;
mod results;
mod rows;
mod scan_state;
mod source_slot;
mod transactions;

use pyo3::prelude::*;

/// Adds the classes and functions of the store to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    classes::register(module)?;
    module.add_class::<results::Change>()?;
    module.add_class::<results::Compacted>()?;
    module.add_class::<results::Entry>()?;
    module.add_class::<results::Stat>()?;
    module.add_class::<results::TableStat>()?;
    module.add_class::<results::Verified>()?;
    module.add_class::<results::Written>()
}
