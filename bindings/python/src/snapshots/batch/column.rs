//! The Python class of an Arrow column, and its export by the C data interface of Arrow
//! (<https://arrow.apache.org/docs/format/CDataInterface.html>).
//!
//! This file contains unsafe code: structures of the C data interface.

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// Bits, the lowest of each byte first.
#[derive(Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    len: usize,
    zeros: usize,
}

impl Bits {
    pub(super) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if bit {
            self.bytes[self.len / 8] |= 1 << (self.len % 8);
        }
        self.zeros += usize::from(!bit);
        self.len += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of bits that are not set.
    pub(super) fn zeros(&self) -> usize {
        self.zeros
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A buffer of a column.
pub(super) enum Buffer {
    /// No validity bitmap: no value is null.
    None,
    Bytes(Vec<u8>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    F32(Vec<f32>),
}

impl Buffer {
    fn address(&self) -> *const c_void {
        match self {
            Self::None => ptr::null(),
            Self::Bytes(bytes) => bytes.as_ptr().cast(),
            Self::I64(numbers) => numbers.as_ptr().cast(),
            Self::F64(numbers) => numbers.as_ptr().cast(),
            Self::F32(numbers) => numbers.as_ptr().cast(),
        }
    }
}

/// An immutable column.
pub(super) struct Column {
    /// The type, as the C data interface writes it.
    pub(super) format: &'static CStr,
    pub(super) len: usize,
    pub(super) nulls: usize,
    pub(super) buffers: Vec<Buffer>,
    /// The elements of lists.
    pub(super) children: Vec<Column>,
}

/// Values of a batch, for libraries with the Arrow ``PyCapsule`` interface, such as
/// ``pyarrow.array(column)`` and ``polars.Series(column)``.
#[pyclass(frozen, module = "nuthatch")]
pub(crate) struct ArrowColumn(Arc<Column>);

impl ArrowColumn {
    pub(super) fn new(column: Column) -> Self {
        Self(Arc::new(column))
    }
}

#[pymethods]
impl ArrowColumn {
    /// Returns the type of the column as a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, Schema::of(&self.0, c""), c"arrow_schema")
    }

    /// Returns the type and the values of the column as capsules, without a copy. The requested
    /// type is ignored, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let schema = PyCapsule::new_with_value(py, Schema::of(&self.0, c""), c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, Array::of(&self.0, &self.0), c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __len__(&self) -> usize {
        self.0.len
    }

    /// Returns the number of missing keys.
    #[getter]
    fn null_count(&self) -> usize {
        self.0.nulls
    }

    fn __repr__(&self) -> String {
        format!("<nuthatch.ArrowColumn of {} values, {} null>", self.0.len, self.0.nulls)
    }
}

/// The structure `ArrowSchema` of the C data interface.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// The structure `ArrowArray` of the C data interface.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

// SAFETY: a schema owns what it points to, or points to constants.
unsafe impl Send for Schema {}
// SAFETY: an array owns what it points to, or points to a column, which is immutable and shared.
unsafe impl Send for Array {}

/// `ARROW_FLAG_NULLABLE`.
const NULLABLE: i64 = 2;

/// What a schema owns. The children are from `Box::into_raw`.
struct SchemaData {
    children: Vec<*mut Schema>,
}

/// What an array owns. The children are from `Box::into_raw`.
struct ArrayData {
    _column: Arc<Column>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

impl Schema {
    fn of(column: &Column, name: &'static CStr) -> Self {
        let children = column.children.iter().map(|child| {
            let schema: *mut Self = Box::into_raw(Box::new(Self::of(child, c"item")));
            schema
        });
        let mut data = Box::new(SchemaData { children: children.collect() });
        Self {
            format: column.format.as_ptr(),
            name: name.as_ptr(),
            metadata: ptr::null(),
            flags: NULLABLE,
            n_children: data.children.len().cast_signed() as i64,
            children: data.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(data).cast(),
        }
    }
}

impl Array {
    /// Returns the array of `column`, which `root` contains.
    fn of(column: &Column, root: &Arc<Column>) -> Self {
        let children = column.children.iter().map(|child| {
            let array: *mut Self = Box::into_raw(Box::new(Self::of(child, root)));
            array
        });
        let mut data = Box::new(ArrayData {
            _column: Arc::clone(root),
            buffers: column.buffers.iter().map(Buffer::address).collect(),
            children: children.collect(),
        });
        Self {
            length: column.len.cast_signed() as i64,
            null_count: column.nulls.cast_signed() as i64,
            offset: 0,
            n_buffers: data.buffers.len().cast_signed() as i64,
            n_children: data.children.len().cast_signed() as i64,
            buffers: data.buffers.as_mut_ptr(),
            children: data.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(data).cast(),
        }
    }
}

/// Releases what a schema owns.
///
/// # Safety
///
/// `schema` is from [`Schema::of`], possibly moved, and was not released.
unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: the caller passes a schema that no one else uses.
    let schema = unsafe { &mut *schema };
    schema.release = None;
    // SAFETY: the pointer is from `Box::into_raw` in `Schema::of`, and released once.
    let data = unsafe { Box::from_raw(schema.private_data.cast::<SchemaData>()) };
    for child in data.children {
        // SAFETY: the pointer is from `Box::into_raw` in `Schema::of`, and released once.
        drop(unsafe { Box::from_raw(child) });
    }
}

/// Releases what an array owns.
///
/// # Safety
///
/// `array` is from [`Array::of`], possibly moved, and was not released.
unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: the caller passes an array that no one else uses.
    let array = unsafe { &mut *array };
    array.release = None;
    // SAFETY: the pointer is from `Box::into_raw` in `Array::of`, and released once.
    let data = unsafe { Box::from_raw(array.private_data.cast::<ArrayData>()) };
    for child in data.children {
        // SAFETY: the pointer is from `Box::into_raw` in `Array::of`, and released once.
        drop(unsafe { Box::from_raw(child) });
    }
}

impl Drop for Schema {
    /// Releases the schema unless a consumer has moved it, which clears `release`.
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the schema is from `Schema::of` and was not released.
            unsafe { release(self) }
        }
    }
}

impl Drop for Array {
    /// Releases the array unless a consumer has moved it, which clears `release`.
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the array is from `Array::of` and was not released.
            unsafe { release(self) }
        }
    }
}
