//! Remote objects that are read through the chunk cache, in Python.

mod failure;
mod headers;
mod object;
mod status;

use pyo3::prelude::*;

/// Adds the classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<object::UrlCounts>()?;
    module.add_class::<object::UrlObject>()?;
    module.add_function(wrap_pyfunction!(object::_plain_address, module)?)?;
    module.add_function(wrap_pyfunction!(status::_is_transient, module)?)?;
    module.add_function(wrap_pyfunction!(status::_is_unavailable, module)?)?;
    module.add_function(wrap_pyfunction!(status::_stale_if_error, module)?)
}
