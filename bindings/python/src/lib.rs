//! The Python module of Nuthatch: `nuthatch._native`, which the package `nuthatch` shows to users.
//!
//! What all engines share is here: `work` tells how a call is done, `wait` and `event_loop`
//! how callers and asyncio wait for it, `failure` what goes wrong and `octets` what keys and
//! values may be. Each engine has a folder; `store` is the ordered store, `chunks` the cache of
//! remote objects, `origins` reading through it.

#![allow(clippy::needless_pass_by_value, reason = "what Python gives comes by value")]

mod buffer;
mod chunks;
mod event_loop;
mod failure;
mod named;
mod octets;
mod origins;
mod own;
mod runtime;
mod shown;
mod store;
mod times;
mod undelivered;
mod wait;
mod work;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What the package `nuthatch` is made of.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let forked = wrap_pyfunction!(runtime::forked, module)?;
    let hooks = PyDict::new(py);
    hooks.set_item("after_in_child", forked)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    chunks::register(module)?;
    origins::register(module)?;
    store::register(module)?;
    // The package names what is for users.
    module.delattr("__all__")
}
