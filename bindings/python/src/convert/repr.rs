//! `repr` of plain objects with fields.

use pyo3::prelude::*;

/// Implements `__repr__` for classes, with the listed fields.
macro_rules! repr_fields {
    ($($class:ident: $($field:ident)*;)*) => {$(
        #[pyo3::pymethods]
        impl $class {
            fn __repr__(slf: &pyo3::Bound<'_, Self>) -> pyo3::PyResult<String> {
                $crate::convert::format_fields(slf.as_any(), &[$(stringify!($field)),*])
            }
        }
    )*};
}

pub(crate) use repr_fields;

/// Formats an object with some of its fields, as data classes of Python do.
pub(crate) fn format_fields(object: &Bound<'_, PyAny>, names: &[&str]) -> PyResult<String> {
    let field = |name: &&str| Ok(format!("{name}={}", object.getattr(*name)?.repr()?));
    let (class, fields) = (object.get_type(), names.iter().map(field));
    let fields = fields.collect::<PyResult<Vec<_>>>()?.join(", ");
    Ok(format!("{}.{}({fields})", class.module()?, class.name()?))
}
