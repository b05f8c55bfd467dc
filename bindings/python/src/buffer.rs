//! Memory that Python and Rust show each other, where it lies. This file holds unsafe code: Python
//! is given an address, or gives one.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::{c_int, c_void};

/// Bytes that stay where they are as long as this does, and that nobody writes to.
pub(crate) trait Shown: Send + Sync + 'static {
    /// The bytes; `None` if there are none any more.
    fn bytes(&self) -> Option<&[u8]>;
}

/// Bytes for `memoryview`. It keeps what they belong to.
#[pyclass(frozen, module = "nuthatch._native")]
pub(crate) struct Octets(Box<dyn Shown>);

impl Octets {
    /// A `memoryview` of bytes.
    pub(crate) fn view(py: Python<'_>, shown: impl Shown) -> PyResult<Bound<'_, PyMemoryView>> {
        let octets = Bound::new(py, Self(Box::new(shown)))?;
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
        let Some(bytes) = slf.get().0.bytes() else {
            return Err(PyBufferError::new_err("the bytes are gone"));
        };
        let (address, len) =
            (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len().cast_signed());
        // SAFETY: Python asks for `view` to be filled, or gave null, which is answered with an
        // error. The bytes stay as long as what is shown does, nobody writes to them, and it is
        // asked for read-only; `view` keeps a reference to `slf`, which is frozen and has it.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, len, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// Has some work write to a buffer of Python's, without the interpreter's lock, as files do in
/// their `readinto`. A thread that looks into the buffer meanwhile finds some of the bytes.
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
    // SAFETY: the buffer has so many bytes here, one after the other, to be written to, as long as
    // it is not released, which outlives this call. It is the one slice of them in Rust; Python may
    // look at them at the same time, as with any `readinto`.
    let bytes = unsafe { std::slice::from_raw_parts_mut(address, len) };
    Ok(py.detach(|| work(bytes)))
}
