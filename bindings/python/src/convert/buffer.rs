//! Buffers that Rust and Python share without a copy.
//!
//! This file contains unsafe code: addresses of buffers cross the boundary to Python in both
//! directions.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::{c_int, c_void};

/// Immutable bytes that stay valid as long as the value that owns them.
pub(crate) trait BufferSource: Send + Sync + 'static {
    /// Returns the bytes; `None` if they are no longer available.
    fn bytes(&self) -> Option<&[u8]>;
}

/// A buffer exporter for `memoryview`. It keeps the owner of the bytes alive.
#[pyclass(frozen, module = "nuthatch._native")]
pub(crate) struct BufferExporter(Box<dyn BufferSource>);

impl BufferExporter {
    /// Returns a read-only `memoryview` of the bytes.
    pub(crate) fn view(
        py: Python<'_>,
        source: impl BufferSource,
    ) -> PyResult<Bound<'_, PyMemoryView>> {
        let exporter = Bound::new(py, Self(Box::new(source)))?;
        PyMemoryView::from(exporter.as_any())
    }
}

#[pymethods]
impl BufferExporter {
    /// Fills `view` for the buffer protocol, read-only.
    ///
    /// # Safety
    ///
    /// `view` is null or points to a `Py_buffer` that Python wants filled.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let Some(bytes) = slf.get().0.bytes() else {
            return Err(PyBufferError::new_err("the bytes are gone"));
        };
        let (address, len) =
            (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len().cast_signed());
        // SAFETY: Python passes a `view` to fill, or null, which `PyBuffer_FillInfo` reports as an
        // error. The bytes are immutable, live as long as their owner, and are exported as
        // read-only. `view` holds a reference to `slf`, which is frozen and owns them.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, len, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// Runs `work` on the memory of a writable Python buffer, without the interpreter's lock, as
/// `readinto` of files does. A thread that reads the buffer meanwhile can see a part of the new
/// bytes.
pub(crate) fn write_into<T: Send>(
    py: Python<'_>,
    buffer: &PyBuffer<u8>,
    work: impl FnOnce(&mut [u8]) -> T + Send,
) -> PyResult<T> {
    if buffer.readonly() || !buffer.is_c_contiguous() {
        let found = if buffer.readonly() { "one to read from" } else { "one with gaps" };
        let message = format!("a buffer: expected one to write to, without gaps, found {found}");
        return Err(PyBufferError::new_err(message));
    }
    let (address, len) = (buffer.buf_ptr().cast::<u8>(), buffer.len_bytes());
    if len == 0 {
        return Ok(py.detach(|| work(&mut [])));
    }
    // SAFETY: the buffer has `len` contiguous, writable bytes at `address` until it is released,
    // which happens after this call. This is the only Rust slice of them. Python code may access
    // them at the same time, as with any `readinto`.
    let bytes = unsafe { std::slice::from_raw_parts_mut(address, len) };
    Ok(py.detach(|| work(bytes)))
}
