//! The Python extension module of Nuthatch, `nuthatch._native`. The package `nuthatch` exports its
//! public names.
//!
//! | module | content |
//! |---|---|
//! | `failure` | errors of calls, and their conversion into exceptions |
//! | `runtime` | execution of calls: threads, waiting, futures of asyncio, `fork` |
//! | `convert` | conversion of arguments and results |
//! | `store` | the ordered store |
//! | `snapshots` | snapshots |
//! | `chunks` | the chunk cache |
//! | `origins` | remote objects, read through the chunk cache |
//! | `delivery` | publication of snapshots, and followers |
//!
//! The store, the chunk cache, remote objects and delivery are for Linux; on other systems the
//! module has snapshots only.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "only snapshots are there")
)]

#[cfg(target_os = "linux")]
mod chunks;
mod convert;
#[cfg(target_os = "linux")]
mod delivery;
mod failure;
#[cfg(target_os = "linux")]
mod origins;
mod runtime;
mod snapshots;
#[cfg(target_os = "linux")]
mod store;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Implements the package `nuthatch`. Its names are private, except those that `nuthatch` and its
/// modules export.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let forked = wrap_pyfunction!(runtime::forked, module)?;
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", forked)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    snapshots::register(module)?;
    #[cfg(target_os = "linux")]
    {
        chunks::register(module)?;
        delivery::register(module)?;
        origins::register(module)?;
        store::register(module)?;
    }
    // The package defines the public names.
    module.delattr("__all__")
}
