//! Lists of numbers without a copy: an exporter of the buffer protocol, and NumPy arrays of it.
//!
//! This file contains unsafe code: addresses of numbers cross the boundary to Python.

use super::held::Held;
use nuthatch_snapshot::{OwnedValue, Value};
use pyo3::exceptions::{PyBufferError, PyImportError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyMemoryView;
use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

/// The type of the numbers of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    I64,
    F64,
    F32,
}

impl Element {
    /// Returns the length in bytes.
    pub(super) fn len(self) -> usize {
        if self == Self::F32 { 4 } else { 8 }
    }

    /// Returns the format of the buffer protocol and of NumPy.
    fn format(self) -> &'static CStr {
        match self {
            Self::I64 => c"q",
            Self::F64 => c"d",
            Self::F32 => c"f",
        }
    }
}

/// The owner of the numbers.
pub(super) enum NumbersOwner {
    /// They are in the file.
    File { _held: Arc<Held> },
    /// They were decompressed.
    Memory { _value: Arc<OwnedValue> },
}

/// A list of numbers, exported to `memoryview` and NumPy without a copy. Keeps the file mapped.
#[pyclass(frozen, module = "nuthatch._native")]
pub(super) struct Numbers {
    address: *const c_void,
    len_bytes: isize,
    element: Element,
    /// The number of elements, and the distance between two of them in bytes, for the buffer
    /// protocol, which takes pointers to them.
    shape: [isize; 1],
    strides: [isize; 1],
    _owner: NumbersOwner,
}

// SAFETY: the numbers are immutable, and `_owner` can be shared and sent.
unsafe impl Send for Numbers {}
// SAFETY: as above.
unsafe impl Sync for Numbers {}

impl Numbers {
    /// Returns the exporter for a value of `owner`; `None` if it is not a list of numbers.
    pub(super) fn of(value: Value<'_>, owner: NumbersOwner) -> Option<Self> {
        let (address, len, element): (*const c_void, usize, Element) = match value {
            Value::I64List(list) => (list.as_ptr().cast(), list.len(), Element::I64),
            Value::F64List(list) => (list.as_ptr().cast(), list.len(), Element::F64),
            Value::F32List(list) => (list.as_ptr().cast(), list.len(), Element::F32),
            _ => return None,
        };
        Some(Self {
            address,
            len_bytes: (len * element.len()).cast_signed(),
            element,
            shape: [len.cast_signed()],
            strides: [element.len().cast_signed()],
            _owner: owner,
        })
    }

    /// Returns a NumPy array of the numbers; a `memoryview` if NumPy is not installed.
    pub(super) fn into_array(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let element = self.element;
        let exporter = Bound::new(py, self)?;
        match NumPy::get(py)? {
            Some(numpy) => numpy.from_buffer.bind(py).call1((exporter, numpy.dtype(element))),
            None => Ok(PyMemoryView::from(exporter.as_any())?.into_any()),
        }
    }
}

#[pymethods]
impl Numbers {
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
        let numbers = slf.get();
        let address = numbers.address.cast_mut();
        // SAFETY: Python passes a `view` to fill, or null, which `PyBuffer_FillInfo` reports as an
        // error. The numbers are immutable and live as long as their owner. `view` holds a
        // reference to `slf`, which is frozen and owns them.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), address, numbers.len_bytes, 1, flags)
        };
        if filled != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        // SAFETY: it is not null, since it was filled, and nothing else has access to it.
        let Some(view) = (unsafe { view.as_mut() }) else {
            return Err(PyBufferError::new_err("no view to fill"));
        };
        view.itemsize = numbers.strides[0];
        if flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
            view.format = numbers.element.format().as_ptr().cast_mut();
        }
        if flags & ffi::PyBUF_ND == ffi::PyBUF_ND {
            view.shape = numbers.shape.as_ptr().cast_mut();
        }
        if flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES {
            view.strides = numbers.strides.as_ptr().cast_mut();
        }
        Ok(())
    }
}

/// The parts of NumPy that this module uses.
pub(super) struct NumPy {
    pub(super) module: Py<PyModule>,
    from_buffer: Py<PyAny>,
    dtypes: [Py<PyAny>; 3],
}

impl NumPy {
    /// Returns NumPy; `None` if it is not installed.
    pub(super) fn get(py: Python<'_>) -> PyResult<Option<&Self>> {
        static NUMPY: PyOnceLock<Option<NumPy>> = PyOnceLock::new();
        Ok(NUMPY.get_or_try_init(py, || Self::import(py))?.as_ref())
    }

    fn import(py: Python<'_>) -> PyResult<Option<Self>> {
        let module = match py.import("numpy") {
            Ok(module) => module,
            Err(error) if error.is_instance_of::<PyImportError>(py) => return Ok(None),
            Err(error) => return Err(error),
        };
        let dtype = |name: &str| Ok::<_, PyErr>(module.call_method1("dtype", (name,))?.unbind());
        let dtypes = [dtype("int64")?, dtype("float64")?, dtype("float32")?];
        let from_buffer = module.getattr("frombuffer")?.unbind();
        Ok(Some(Self { module: module.unbind(), from_buffer, dtypes }))
    }

    pub(super) fn dtype(&self, element: Element) -> &Py<PyAny> {
        &self.dtypes[match element {
            Element::I64 => 0,
            Element::F64 => 1,
            Element::F32 => 2,
        }]
    }
}
