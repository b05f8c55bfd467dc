//! Arrow C streams of other libraries, by the `PyCapsule` interface.

use super::failure::argument;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Name of the capsule of a stream.
const CAPSULE: &std::ffi::CStr = c"arrow_array_stream";

/// Returns the record batches of a table.
///
/// # Errors
///
/// Raises `TypeError` for an object without a stream, and `ArgumentError` for a stream of something
/// else than rows with columns.
pub(super) fn record_batches(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let py = table.py();
    if !table.hasattr("__arrow_c_stream__")? {
        let found = table.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "table: expected a table with the Arrow C stream interface, such as one of pandas, \
             Polars or PyArrow, found {found}"
        )));
    }
    let stream = table.call_method0("__arrow_c_stream__")?;
    let capsule = stream.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(CAPSULE))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the name of the capsule says that it has a stream, which it keeps alive. The stream
    // is moved out, and what remains needs no release.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    RecordBatchStreamReader::try_new(stream)
        .map_err(|error| argument(py, format!("table: expected rows with columns: {error}")))
}
