//! Python classes of stores and tables. A store is also its table `default`.

use crate::runtime::CallMode;
use crate::store::engine::{Engine, TableRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Methods that all stores and tables have, blocking and asynchronous.
#[pyclass(frozen, subclass, module = "nuthatch._native")]
pub(crate) struct AnyData {
    pub(crate) engine: Engine,
    pub(crate) table: TableRef,
    pub(crate) mode: CallMode,
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

/// Creates the Python object of a table.
pub(super) fn make_table(
    py: Python<'_>,
    engine: Engine,
    table: TableRef,
    mode: CallMode,
) -> PyResult<Py<PyAny>> {
    let base = PyClassInitializer::from(AnyData { engine, table, mode });
    Ok(match mode {
        CallMode::Sync => Py::new(py, base.add_subclass(Table))?.into_any(),
        CallMode::Async => Py::new(py, base.add_subclass(AsyncTable))?.into_any(),
    })
}

impl AnyStore {
    /// Creates the Python object of a store.
    pub(super) fn make(py: Python<'_>, engine: Engine, mode: CallMode) -> PyResult<Py<PyAny>> {
        let table = engine.default_table();
        let base = PyClassInitializer::from(AnyData { engine, table, mode });
        let base = base.add_subclass(Self);
        Ok(match mode {
            CallMode::Sync => Py::new(py, base.add_subclass(Store))?.into_any(),
            CallMode::Async => Py::new(py, base.add_subclass(AsyncStore))?.into_any(),
        })
    }
}

/// Adds the classes of stores and tables to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AsyncStore>()?;
    module.add_class::<AsyncTable>()?;
    module.add_class::<Store>()?;
    module.add_class::<Table>()
}
