//! Python methods of stores, beyond those of their table `default`.

use super::tables::{AnyData, AnyStore, AsyncStore, Store, make_table};
use crate::runtime::{CallMode, Work};
use crate::store::engine::{Local, TableRef};
use nuthatch_store::Kind;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeMap;
use std::path::PathBuf;

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
        let (table, engine, mode) = (TableRef::new(name, kind), base.engine.clone(), base.mode);
        let opened = base.engine.table(&table, create);
        opened.answer_with(slf.py(), mode, move |py, ()| make_table(py, engine, table, mode))
    }

    /// Returns the main table, which every LMDB environment has. Other programs often store all
    /// their rows in it.
    fn main_table(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let AnyData { engine, mode, .. } = slf.as_super().get();
        make_table(slf.py(), engine.clone(), TableRef::new(String::new(), None), *mode)
    }

    /// Returns a dictionary of the tables without the main one: their names, and whether they are
    /// stamped.
    fn tables<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let tables = base.engine.tables();
        tables.map(BTreeMap::from_iter).answer(slf.py(), base.mode)
    }

    /// Returns sizes and counters of the store and of its tables.
    fn stat<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.engine.stat().answer(slf.py(), base.mode)
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
        let verified = base.engine.run_local("verify", Local::verify);
        verified.answer(slf.py(), base.mode)
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
        base.engine.backup(folder, compact).answer(slf.py(), base.mode)
    }

    /// Keeps the newest changes of all tables for watches, from now on and for all processes.
    /// Requires a store in this process.
    ///
    /// Args:
    ///     `max_changes`: Maximum number of changes.
    ///     `max_bytes`: Maximum size of all kept changes together in bytes; 64 MiB by default.
    #[pyo3(signature = (max_changes, max_bytes=67_108_864))]
    fn keep_changes<'py>(
        slf: &Bound<'py, Self>,
        max_changes: u64,
        max_bytes: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let kept = base.engine.run_local("keep_changes", move |local| {
            local.keep_changes(Some((max_changes, max_bytes)))
        });
        base.answer_write(slf.py(), kept)
    }

    /// Stops keeping changes, and drops those that are kept. Requires a store in this process.
    fn keep_no_changes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let kept = base.engine.run_local("keep_no_changes", |local| local.keep_changes(None));
        base.answer_write(slf.py(), kept)
    }

    /// Makes all commits durable, regardless of the durability they were made with. Requires a
    /// store in this process.
    fn sync<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.engine.run_local("sync", Local::sync).answer(slf.py(), base.mode)
    }

    /// Removes expired rows. Requires a store in this process.
    ///
    /// Returns:
    ///     The number of processed entries of the expiry table.
    fn sweep<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        let swept = base.engine.run_local("sweep", Local::sweep);
        base.answer_write(slf.py(), swept)
    }

    /// Closes the store: commits submitted writes, ends all scans, transactions and watches, and
    /// closes the files or the connection. Files stay open while a `memoryview` refers to them.
    fn close<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let base = slf.as_super().get();
        base.engine.close().answer(slf.py(), base.mode)
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
        Work::Done(Ok(())).answer_with(py, CallMode::Async, |_, ()| Ok(this))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        AnyStore::close(slf.as_super())
    }
}
