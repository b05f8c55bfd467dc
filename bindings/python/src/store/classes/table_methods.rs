//! Python methods of tables.

use super::batch::Batch;
use super::scan::AnyScan;
use super::tables::AnyData;
use super::{read_txn, watch, write_txn, writer};
use crate::convert::{BytesArg, Value, expiry, keys_of};
use crate::failure::Failure;
use crate::runtime::{CallMode, Work};
use crate::store::engine::{Engine, OwnedCondition, ScanOptions, durability_of, range_of};
use crate::store::results::Written;
use crate::store::scan_state::{ScanState, Source};
use nuthatch_store::Parallel;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;

impl AnyData {
    /// Looks up a key on this thread, if the store is in this process and the call blocks;
    /// otherwise returns `None`.
    fn get_here<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
    ) -> Option<PyResult<Option<Bound<'py, PyBytes>>>> {
        let (Engine::Local(local), CallMode::Sync) = (&self.engine, self.mode) else { return None };
        let found = py.detach(|| local.get(&self.table, key));
        let found = found.map_err(|failure| failure.raise(py));
        Some(found.map(|found| found.map(|value| PyBytes::new(py, &value))))
    }

    pub(super) fn answer_write<'py, T>(
        &self,
        py: Python<'py>,
        work: Work<T>,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        T: Send + 'static + for<'any> IntoPyObject<'any>,
    {
        self.engine.check_not_writing(py, self.mode)?;
        work.answer(py, self.mode)
    }

    fn scanned(&self, py: Python<'_>, source: Source) -> PyResult<Py<PyAny>> {
        let local = match &self.engine {
            Engine::Local(local) => Some(Arc::clone(local)),
            Engine::Remote(_) => None,
        };
        AnyScan::make(py, ScanState::new(local, source), self.mode)
    }
}

#[pymethods]
impl AnyData {
    /// Returns the name of the table; empty for the main table.
    #[getter]
    fn name(&self) -> &str {
        self.table.name()
    }

    /// Returns the value of a key; `None` if the key is missing.
    ///
    /// Args:
    ///     `key`: The key.
    fn get<'py>(&self, py: Python<'py>, key: BytesArg<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.get_here(py, &key) {
            Some(found) => found?.into_bound_py_any(py),
            None => self.engine.get(&self.table, &key).answer(py, self.mode),
        }
    }

    /// Returns the values of several keys, all from one read transaction.
    ///
    /// Args:
    ///     `keys`: The keys.
    ///
    /// Returns:
    ///     A list with a value for each key, in the same order; `None` for a missing key.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found: Work<Vec<Option<Value>>> = self.engine.get_many(&self.table, keys_of(keys)?);
        found.answer(py, self.mode)
    }

    /// Returns the value of a key with its version and time of expiry; `None` if the key is
    /// missing.
    ///
    /// Args:
    ///     `key`: The key.
    fn entry<'py>(&self, py: Python<'py>, key: BytesArg<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.engine.entry(&self.table, &key).answer(py, self.mode)
    }

    /// Writes a value. Replaces the value that the key has.
    ///
    /// Args:
    ///     `key`: The key, 1 to 511 bytes.
    ///     `value`: The value.
    ///     `ttl`: Seconds from now until the row expires; stamped tables only.
    ///     `expires_at`: Time of expiry in seconds since 1970, instead of `ttl`.
    ///
    /// Returns:
    ///     A `Written` with the transaction and the sequence number.
    #[pyo3(signature = (key, value, *, ttl=None, expires_at=None))]
    fn put<'py>(
        &self,
        py: Python<'py>,
        key: BytesArg<'py>,
        value: BytesArg<'py>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let expires_at_ms = expiry(py, ttl, expires_at)?;
        let put = self.engine.put(&self.table, &key, &value, expires_at_ms);
        self.answer_write(py, put.map(Written::from))
    }

    /// Writes a value if a condition on its key is met.
    ///
    /// Args:
    ///     `key`: The key, 1 to 511 bytes.
    ///     `value`: The value.
    ///     `ttl`: Seconds from now until the row expires; stamped tables only.
    ///     `expires_at`: Time of expiry in seconds since 1970, instead of `ttl`.
    ///     `condition`: Exactly one of `absent=True`, `present=True`, `equals` and `version`.
    ///
    /// Returns:
    ///     Whether the condition was met, and so the value written.
    #[pyo3(signature = (key, value, *, ttl=None, expires_at=None, **condition))]
    fn put_if<'py>(
        &self,
        py: Python<'py>,
        key: BytesArg<'py>,
        value: BytesArg<'py>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        condition: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let expires_at_ms = expiry(py, ttl, expires_at)?;
        let condition = OwnedCondition::of(py, "put_if", condition)?;
        let put = self.engine.put_if(&self.table, (&key, &value), expires_at_ms, condition);
        self.answer_write(py, put)
    }

    /// Deletes a key.
    ///
    /// Args:
    ///     `key`: The key.
    ///
    /// Returns:
    ///     Whether the key existed.
    fn delete<'py>(&self, py: Python<'py>, key: BytesArg<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answer_write(py, self.engine.delete(&self.table, &key))
    }

    /// Deletes a key if a condition on it is met.
    ///
    /// Args:
    ///     `key`: The key.
    ///     `condition`: Exactly one of `absent=True`, `present=True`, `equals` and `version`.
    ///
    /// Returns:
    ///     Whether the condition was met.
    #[pyo3(signature = (key, **condition))]
    fn delete_if<'py>(
        &self,
        py: Python<'py>,
        key: BytesArg<'py>,
        condition: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let condition = OwnedCondition::of(py, "delete_if", condition)?;
        self.answer_write(py, self.engine.delete_if(&self.table, &key, condition))
    }

    /// Deletes all keys in a range.
    ///
    /// Args:
    ///     `bounds`: The range, as `nuthatch.options.Bounds`; without bounds, all keys.
    ///
    /// Returns:
    ///     The number of keys that were deleted.
    #[pyo3(signature = (**bounds))]
    fn delete_range<'py>(
        &self,
        py: Python<'py>,
        bounds: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let range = range_of(py, "delete_range", bounds)?;
        self.answer_write(py, self.engine.delete_range(&self.table, range))
    }

    /// Commits a batch as a whole or not at all.
    ///
    /// Args:
    ///     `batch`: The batch. It can be used again.
    ///
    /// Returns:
    ///     A `Written` with the transaction and the sequence number.
    ///
    /// Raises:
    ///     `ConditionError`: A condition of the batch was not met; nothing was written.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, Batch>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let written = self.engine.write(&self.table, batch.get().writes());
        self.answer_write(py, written.map(Written::from))
    }

    /// Returns the number of keys in a range.
    ///
    /// Args:
    ///     `bounds`: The range, as `nuthatch.options.Bounds`; without bounds, all keys.
    #[pyo3(signature = (**bounds))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        bounds: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let range = range_of(py, "count", bounds)?;
        self.engine.count(&self.table, range).answer(py, self.mode)
    }

    /// Returns an iterator over the rows of a range, in batches, all from one read transaction.
    ///
    /// Args:
    ///     `options`: Bounds, order, limit and batch size, as `nuthatch.options.ScanOptions`.
    #[pyo3(signature = (**options))]
    fn scan(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let options = ScanOptions::of(py, "scan", options)?;
        self.scanned(py, Source::new(&self.engine, self.mode, &self.table, options))
    }

    /// Returns an iterator over the rows of a range, in batches, all from one read transaction that
    /// several threads read. A server uses one thread.
    ///
    /// Args:
    ///     `threads`: Number of threads.
    ///     `ordered`: Whether batches are returned in key order; by default in the order in which
    ///         threads read them.
    ///     `options`: Bounds, order and batch size, as `nuthatch.options.ParallelScanOptions`.
    #[pyo3(signature = (threads=2, *, ordered=false, **options))]
    fn scan_parallel(
        &self,
        py: Python<'_>,
        threads: usize,
        ordered: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let options = ScanOptions::of(py, "scan_parallel", options)?;
        if options.limit.is_some() {
            let message = "limit: expected none in a parallel scan";
            return Err(Failure::argument(message).raise(py));
        }
        let Engine::Local(local) = &self.engine else {
            return self.scanned(py, Source::new(&self.engine, self.mode, &self.table, options));
        };
        let mut parallel = Parallel::split(threads);
        if ordered {
            parallel = parallel.ordered();
        }
        let (local, table) = (Arc::clone(local), self.table.clone());
        self.scanned(py, Source::ParallelUnopened(local, table, Box::new(options), parallel))
    }

    /// Begins a read transaction: one state of the store, which does not change with later writes.
    fn read(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        read_txn::make(py, self)
    }

    /// Begins a write transaction. A store in this process has one at a time, in all processes; the
    /// call waits until no other one is open.
    ///
    /// Args:
    ///     `durability`: `sync`, `group` or `none`; by default the durability of the store.
    ///
    /// Raises:
    ///     `ArgumentError`: `durability` is given for a store behind a server.
    #[pyo3(signature = (*, durability=None))]
    fn write(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<Py<PyAny>> {
        let options = durability.map(durability_of).transpose()?;
        let default = match &self.engine {
            Engine::Local(local) => local.durability(),
            Engine::Remote(_) if options.is_some() => {
                let refused = self.engine.local("durability").map(drop);
                return refused.map(|()| py.None()).map_err(|failure| failure.raise(py));
            }
            Engine::Remote(_) => nuthatch_store::Durability::Sync,
        };
        write_txn::make(py, self, options.unwrap_or(default))
    }

    /// Starts a batch writer, which commits writes in groups and acknowledges each one.
    ///
    /// Args:
    ///     `options`: Queue length and grouping, as `nuthatch.options.WriterOptions`.
    #[pyo3(signature = (**options))]
    fn writer(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        writer::make(py, self, options)
    }

    /// Watches committed changes within a range of keys.
    ///
    /// Args:
    ///     `since`: Where the watch begins: `"now"`, `"oldest"`, or after the change with a
    ///         sequence number; by default `"now"`.
    ///     `all_tables`: Whether to watch all tables of the store instead of this one.
    ///     `bounds`: The range, as `nuthatch.options.Bounds`; without bounds, all keys.
    #[pyo3(signature = (*, since=None, all_tables=false, **bounds))]
    fn watch(
        &self,
        py: Python<'_>,
        since: Option<&Bound<'_, PyAny>>,
        all_tables: bool,
        bounds: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let range = range_of(py, "watch", bounds)?;
        watch::make(py, self, since, (!all_tables).then_some(&self.table), range)
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch table {:?} of {}>", self.table.name(), self.engine.place())
    }
}
