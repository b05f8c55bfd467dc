//! Python classes for stores and tables. A store is also its table `default`.

use super::batch::Batch;
use super::bounds::{Wanted, range_of};
use super::condition::Wanted as Condition;
use super::engine::Engine;
use super::figures::Written;
use super::opening::durability_of;
use super::scan::{AnyScan, Course, Source};
use super::tables::TableRef;
use super::txn::keys_of;
use super::{snapshot, transaction, watch, writer};
use crate::failure::Failure;
use crate::octets::{Octets, Value};
use crate::times::expiry;
use crate::work::{Face, Work};
use nuthatch_store::{Kind, Parallel};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Methods that all stores and tables have, blocking and asynchronous.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyData {
    pub(crate) engine: Engine,
    pub(crate) table: TableRef,
    pub(crate) face: Face,
}

/// A table of a store: ordered keys of 1 to 511 bytes, each with a value. Calls block until they
/// are done.
#[pyclass(frozen, extends = AnyData, module = "nuthatch")]
pub(crate) struct Table;

/// A table of a store: ordered keys of 1 to 511 bytes, each with a value. Calls return awaitables.
#[pyclass(frozen, extends = AnyData, module = "nuthatch")]
pub(crate) struct AsyncTable;

/// Methods that all stores have, blocking and asynchronous.
#[pyclass(frozen, subclass, extends = AnyData, module = "nuthatch._native")]
pub(crate) struct AnyStore;

/// A store in this process or behind a server, and its table `default`. Calls block until they are
/// done. `with` closes the store at its end.
#[pyclass(frozen, extends = AnyStore, module = "nuthatch")]
pub(crate) struct Store;

/// A store in this process or behind a server, and its table `default`. Calls return awaitables.
/// `async with` closes the store at its end.
#[pyclass(frozen, extends = AnyStore, module = "nuthatch")]
pub(crate) struct AsyncStore;

/// Converts a table argument: a table, or a store, which means its default table.
pub(crate) fn table_of(named: Option<&Bound<'_, PyAny>>) -> PyResult<Option<TableRef>> {
    let Some(named) = named else { return Ok(None) };
    if let Ok(data) = named.cast::<AnyData>() {
        Ok(Some(data.get().table.clone()))
    } else {
        let found = named.get_type().name()?;
        Err(PyTypeError::new_err(format!("table: expected a table, found {found}")))
    }
}

impl AnyData {
    /// Looks up a key on this thread, if the store is in this process and the call blocks;
    /// otherwise returns `None`.
    fn get_here<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
    ) -> Option<PyResult<Option<Bound<'py, PyBytes>>>> {
        let (Engine::Local(local), Face::Sync) = (&self.engine, self.face) else { return None };
        let found = py.detach(|| local.get(&self.table, key));
        let found = found.map_err(|failure| failure.raise(py));
        Some(found.map(|found| found.map(|value| PyBytes::new(py, &value))))
    }

    fn writing<'py, T>(&self, py: Python<'py>, work: Work<T>) -> PyResult<Bound<'py, PyAny>>
    where
        T: Send + 'static + for<'any> IntoPyObject<'any>,
    {
        self.engine.check_not_writing(py, self.face)?;
        work.answer(py, self.face)
    }

    fn scanned(&self, py: Python<'_>, source: Source) -> PyResult<Py<PyAny>> {
        let local = match &self.engine {
            Engine::Local(local) => Some(Arc::clone(local)),
            Engine::Remote(_) => None,
        };
        AnyScan::make(py, Course::new(local, source), self.face)
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
    fn get<'py>(&self, py: Python<'py>, key: Octets<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.get_here(py, &key) {
            Some(found) => found?.into_bound_py_any(py),
            None => self.engine.get(&self.table, &key).answer(py, self.face),
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
        found.answer(py, self.face)
    }

    /// Returns the value of a key with its version and time of expiry; `None` if the key is
    /// missing.
    ///
    /// Args:
    ///     `key`: The key.
    fn entry<'py>(&self, py: Python<'py>, key: Octets<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.engine.entry(&self.table, &key).answer(py, self.face)
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
        key: Octets<'py>,
        value: Octets<'py>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let expires_at_ms = expiry(py, ttl, expires_at)?;
        let put = self.engine.put(&self.table, &key, &value, expires_at_ms);
        self.writing(py, put.map(Written::from))
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
        key: Octets<'py>,
        value: Octets<'py>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        condition: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let expires_at_ms = expiry(py, ttl, expires_at)?;
        let condition = Condition::of(py, "put_if", condition)?;
        let put = self.engine.put_if(&self.table, (&key, &value), expires_at_ms, condition);
        self.writing(py, put)
    }

    /// Deletes a key.
    ///
    /// Args:
    ///     `key`: The key.
    ///
    /// Returns:
    ///     Whether the key existed.
    fn delete<'py>(&self, py: Python<'py>, key: Octets<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.writing(py, self.engine.delete(&self.table, &key))
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
        key: Octets<'py>,
        condition: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let condition = Condition::of(py, "delete_if", condition)?;
        self.writing(py, self.engine.delete_if(&self.table, &key, condition))
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
        self.writing(py, self.engine.delete_range(&self.table, range))
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
        self.writing(py, written.map(Written::from))
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
        self.engine.count(&self.table, range).answer(py, self.face)
    }

    /// Returns an iterator over the rows of a range, in batches, all from one read transaction.
    ///
    /// Args:
    ///     `options`: Bounds, order, limit and batch size, as `nuthatch.options.ScanOptions`.
    #[pyo3(signature = (**options))]
    fn scan(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        let wanted = Wanted::of(py, "scan", options)?;
        self.scanned(py, self.engine.scan(self.face, &self.table, wanted))
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
        let wanted = Wanted::of(py, "scan_parallel", options)?;
        if wanted.limit.is_some() {
            let message = "limit: expected none in a parallel scan";
            return Err(Failure::argument(message).raise(py));
        }
        let Engine::Local(local) = &self.engine else {
            return self.scanned(py, self.engine.scan(self.face, &self.table, wanted));
        };
        let mut parallel = Parallel::split(threads);
        if ordered {
            parallel = parallel.ordered();
        }
        let (local, table) = (Arc::clone(local), self.table.clone());
        self.scanned(py, Source::Unshared(local, table, Box::new(wanted), parallel))
    }

    /// Begins a read transaction: one state of the store, which does not change with later writes.
    fn read(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        snapshot::make(py, self)
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
        let wanted = durability.map(durability_of).transpose()?;
        let default = match &self.engine {
            Engine::Local(local) => local.durability(),
            Engine::Remote(_) if wanted.is_some() => {
                let refused = self.engine.local("durability").map(drop);
                return refused.map(|()| py.None()).map_err(|failure| failure.raise(py));
            }
            Engine::Remote(_) => nuthatch_store::Durability::Sync,
        };
        transaction::make(py, self, wanted.unwrap_or(default))
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

fn make_table(py: Python<'_>, engine: Engine, table: TableRef, face: Face) -> PyResult<Py<PyAny>> {
    let base = PyClassInitializer::from(AnyData { engine, table, face });
    Ok(match face {
        Face::Sync => Py::new(py, base.add_subclass(Table))?.into_any(),
        Face::Async => Py::new(py, base.add_subclass(AsyncTable))?.into_any(),
    })
}

impl AnyStore {
    pub(crate) fn make(py: Python<'_>, engine: Engine, face: Face) -> PyResult<Py<PyAny>> {
        let table = engine.default_table();
        let base = PyClassInitializer::from(AnyData { engine, table, face });
        let base = base.add_subclass(Self);
        Ok(match face {
            Face::Sync => Py::new(py, base.add_subclass(Store))?.into_any(),
            Face::Async => Py::new(py, base.add_subclass(AsyncStore))?.into_any(),
        })
    }
}

#[pymethods]
impl AnyStore {
    /// Returns the folder of the store, or the address of its server.
    #[getter]
    fn place(slf: &Bound<'_, Self>) -> String {
        slf.as_super().get().engine.place()
    }

    /// Opens a table.
    ///
    /// Args:
    ///     `name`: The name of the table.
    ///     `stamped`: Whether rows have a version and a time of expiry. By default an existing
    ///         table of either kind is opened, and a new one is plain.
    ///     `create`: Whether to create the table if it does not exist.
    ///
    /// Returns:
    ///     The table.
    ///
    /// Raises:
    ///     `ArgumentError`: With `create`, the existing table is of the other kind. Without it, a
    ///         store in this process has no such table; behind a server, the first call that uses
    ///         the table reports this.
    #[pyo3(signature = (name, *, stamped=None, create=true))]
    fn table<'py>(
        slf: &Bound<'py, Self>,
        name: String,
        stamped: Option<bool>,
        create: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let kind = stamped.map(|stamped| if stamped { Kind::Stamped } else { Kind::Plain });
        let (table, engine, face) = (TableRef::new(name, kind), base.engine.clone(), base.face);
        let opened = base.engine.table(&table, create);
        opened.answer_with(slf.py(), face, move |py, ()| make_table(py, engine, table, face))
    }

    /// Returns the main table, which every LMDB environment has. Other programs often store all
    /// their rows in it.
    fn main_table(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let AnyData { engine, face, .. } = slf.as_super().get();
        make_table(slf.py(), engine.clone(), TableRef::new(String::new(), None), *face)
    }

    /// Returns a dictionary of the tables without the main one: their names, and whether they are
    /// stamped.
    fn tables<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let tables = base.engine.tables();
        tables.map(BTreeMap::from_iter).answer(slf.py(), base.face)
    }

    /// Returns sizes and counters of the store and of its tables.
    fn stat<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.engine.stat().answer(slf.py(), base.face)
    }

    /// Checks all pages of the store. Reads and writes can continue. Requires a store in this
    /// process.
    ///
    /// Returns:
    ///     A `Verified` with the number of pages and rows.
    ///
    /// Raises:
    ///     `DamagedError`: The file is damaged.
    fn verify<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let verified = base.engine.on_files("verify", super::local::Local::verify);
        verified.answer(slf.py(), base.face)
    }

    /// Copies the store to a folder. Reads and writes can continue.
    ///
    /// Args:
    ///     `folder`: The folder of the copy. It is created if it does not exist, and must not
    ///         contain a store.
    ///     `compact`: Whether to leave out free pages.
    #[pyo3(signature = (folder, *, compact=false))]
    fn backup<'py>(
        slf: &Bound<'py, Self>,
        folder: PathBuf,
        compact: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.engine.backup(folder, compact).answer(slf.py(), base.face)
    }

    /// Keeps the newest changes of all tables for watches, from now on and for all processes.
    /// Requires a store in this process.
    ///
    /// Args:
    ///     `most`: Maximum number of changes.
    ///     `most_bytes`: Maximum size of all kept changes together in bytes; 64 MiB by default.
    #[pyo3(signature = (most, most_bytes=67_108_864))]
    fn keep_changes<'py>(
        slf: &Bound<'py, Self>,
        most: u64,
        most_bytes: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let kept = base
            .engine
            .on_files("keep_changes", move |local| local.keep_changes(Some((most, most_bytes))));
        base.writing(slf.py(), kept)
    }

    /// Stops keeping changes, and drops those that are kept. Requires a store in this process.
    fn keep_no_changes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let kept = base.engine.on_files("keep_no_changes", |local| local.keep_changes(None));
        base.writing(slf.py(), kept)
    }

    /// Makes all commits durable, regardless of the durability they were made with. Requires a
    /// store in this process.
    fn sync<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.engine.on_files("sync", super::local::Local::sync).answer(slf.py(), base.face)
    }

    /// Removes expired rows. Requires a store in this process.
    ///
    /// Returns:
    ///     The number of rows that were removed.
    fn sweep<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let swept = base.engine.on_files("sweep", super::local::Local::sweep);
        base.writing(slf.py(), swept)
    }

    /// Closes the store: commits submitted writes, ends all scans, transactions and watches, and
    /// closes the files or the connection. Files stay open while a `memoryview` refers to them.
    fn close<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.engine.close().answer(slf.py(), base.face)
    }
}

#[pymethods]
impl Store {
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        slf.as_super().as_super().get().engine.close().wait(slf.py())
    }
}

#[pymethods]
impl AsyncStore {
    fn __aenter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let (py, this) = (slf.py(), slf.into_any().unbind());
        Work::Done(Ok(())).answer_with(py, Face::Async, |_, ()| Ok(this))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        AnyStore::close(slf.as_super())
    }
}

/// Adds the classes of stores and tables to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AsyncStore>()?;
    module.add_class::<AsyncTable>()?;
    module.add_class::<Store>()?;
    module.add_class::<Table>()
}
