//! Keys and values as buffers, where they lie. This file holds unsafe code: Python is given an
//! address.

use super::rows::Kept;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::{c_int, c_void};

/// A key or a value of a batch, for `memoryview`. It keeps the batch, and with it the bytes.
#[pyclass(frozen, module = "nuthatch._native")]
pub(crate) struct Octets {
    kept: Kept,
    row: usize,
    of_value: bool,
}

impl Octets {
    /// A `memoryview` of the key or the value of a row that is there.
    pub(crate) fn view(
        py: Python<'_>,
        kept: Kept,
        row: usize,
        of_value: bool,
    ) -> PyResult<Bound<'_, PyMemoryView>> {
        let octets = Bound::new(py, Self { kept, row, of_value })?;
        PyMemoryView::from(octets.as_any())
    }
}

#[pymethods]
impl Octets {
    /// # Safety
    ///
    /// `view` is null or one that Python wants filled.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let Self { kept, row, of_value } = slf.get();
        let Some((key, value)) = kept.row(*row) else {
            return Err(PyBufferError::new_err("the row is gone"));
        };
        let bytes = if *of_value { value } else { key };
        // Lengths in a store have 32 bits.
        let (address, len) =
            (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len().cast_signed());
        // SAFETY: Python asks for `view` to be filled, or gave null, which is answered with an
        // error. The bytes stay where they are as long as `kept` does, and nobody writes to them;
        // `view` keeps a reference to `slf`, which is frozen and has it. Read-only is asked for.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, len, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
