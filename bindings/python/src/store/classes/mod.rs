//! Python classes of the store.
//!
//! | module | content |
//! |---|---|
//! | `open` | functions that open, connect to, compact and verify stores |
//! | `tables` | the classes of stores and tables |
//! | `table_methods`, `store_methods` | their methods |
//! | `read_txn`, `write_txn` | transactions |
//! | `txn_methods` | methods that all transactions have |
//! | `scan`, `row_batch` | scans and their batches |
//! | `batch` | writes that are committed together |
//! | `writer` | batch writers and acknowledgements |
//! | `watch` | watches of committed changes |

mod batch;
mod open;
mod read_txn;
mod row_batch;
mod scan;
mod store_methods;
mod table_methods;
mod tables;
mod txn_methods;
mod watch;
mod write_txn;
mod writer;

use pyo3::prelude::*;

/// Adds the classes and functions of the store to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    open::register(module)?;
    tables::register(module)?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<row_batch::RowBatch>()?;
    module.add_class::<scan::AsyncScan>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<read_txn::AsyncReadTransaction>()?;
    module.add_class::<read_txn::ReadTransaction>()?;
    module.add_class::<write_txn::AsyncTransaction>()?;
    module.add_class::<write_txn::Transaction>()?;
    module.add_class::<watch::AsyncWatch>()?;
    module.add_class::<watch::Watch>()?;
    module.add_class::<writer::Ack>()?;
    module.add_class::<writer::AsyncWriter>()?;
    module.add_class::<writer::Writer>()
}
