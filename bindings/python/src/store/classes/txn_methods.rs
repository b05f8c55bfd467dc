//! Python methods that read transactions and write transactions share.

use super::scan::AnyScan;
use super::tables::table_of;
use crate::convert::{BytesArg, Value, keys_of};
use crate::runtime::{CallMode, Work};
use crate::store::engine::{ScanOptions, TableRef, range_of};
use crate::store::scan_state::{ScanState, Source};
use crate::store::transactions::{OpenTxn, TxnState};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;

/// Lookups and scans of a transaction.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyTxn {
    pub(crate) state: Arc<TxnState>,
    pub(crate) mode: CallMode,
}

impl AnyTxn {
    /// Returns the named table, or the default one.
    fn table(&self, named: Option<&Bound<'_, PyAny>>) -> PyResult<TableRef> {
        Ok(table_of(named)?.unwrap_or_else(|| self.state.table.clone()))
    }

    /// Looks up a key on this thread in a read transaction of this process, if the call blocks;
    /// otherwise returns `None`.
    fn get_here<'py>(
        &self,
        py: Python<'py>,
        table: &TableRef,
        key: &[u8],
    ) -> Option<PyResult<Option<Bound<'py, PyBytes>>>> {
        let CallMode::Sync = self.mode else { return None };
        let Ok(OpenTxn::LocalRead(txn)) = self.state.open_txn() else { return None };
        let get = || {
            txn.with(|txn| {
                let found = nuthatch_store::Read::get(txn, &table.opened()?, key)?;
                Ok(found.map(<[u8]>::to_vec))
            })
        };
        let found = py.detach(get).map_err(|failure| failure.raise(py));
        Some(found.map(|found| found.map(|value| PyBytes::new(py, &value))))
    }
}

#[pymethods]
impl AnyTxn {
    /// Returns the value of a key; `None` if the key is missing.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (key, *, table=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: BytesArg<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = self.table(table)?;
        if let Some(found) = self.get_here(py, &table, &key) {
            found?.into_bound_py_any(py)
        } else {
            let key = key.to_vec();
            self.state.after_writes(|txn| txn.get(&table, key)).answer(py, self.mode)
        }
    }

    /// Returns the values of several keys.
    ///
    /// Args:
    ///     `keys`: The keys.
    ///     `table`: The table; by default that of the transaction.
    ///
    /// Returns:
    ///     A list with a value for each key, in the same order; `None` for a missing key.
    #[pyo3(signature = (keys, *, table=None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, keys) = (self.table(table)?, keys_of(keys)?);
        let work: Work<Vec<Option<Value>>> =
            self.state.after_writes(|txn| txn.get_many(&table, keys));
        work.answer(py, self.mode)
    }

    /// Returns the value of a key with its version and time of expiry; `None` if the key is
    /// missing.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `table`: The table; by default that of the transaction.
    #[pyo3(signature = (key, *, table=None))]
    fn entry<'py>(
        &self,
        py: Python<'py>,
        key: BytesArg<'py>,
        table: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, key) = (self.table(table)?, key.to_vec());
        self.state.after_writes(|txn| txn.entry(&table, key)).answer(py, self.mode)
    }

    /// Returns the number of keys in a range.
    ///
    /// Args:
    ///     `table`: The table; by default that of the transaction.
    ///     `bounds`: The range, as `nuthatch.options.Bounds`; without bounds, all keys.
    #[pyo3(signature = (*, table=None, **bounds))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        table: Option<&Bound<'py, PyAny>>,
        bounds: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (table, range) = (self.table(table)?, range_of(py, "count", bounds)?);
        self.state.after_writes(|txn| txn.count(&table, range)).answer(py, self.mode)
    }

    /// Returns an iterator over the rows of a range, in batches, as the transaction sees them.
    ///
    /// Args:
    ///     `table`: The table; by default that of the transaction.
    ///     `options`: Bounds, order, limit and batch size, as `nuthatch.options.ScanOptions`.
    #[pyo3(signature = (*, table=None, **options))]
    fn scan(
        &self,
        py: Python<'_>,
        table: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let table = self.table(table)?;
        let options = Box::new(ScanOptions::of(py, "scan", options)?);
        self.state.open_txn().map_err(|failure| failure.raise(py))?;
        let source = Source::Transaction(Arc::clone(&self.state), table, options);
        let scan = ScanState::new(None, source);
        AnyScan::make(py, scan, self.mode)
    }

    /// Returns the sequence number of the last change that the transaction sees. A watch can
    /// continue after it.
    fn sequence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.state.after_writes(OpenTxn::sequence).answer(py, self.mode)
    }
}
