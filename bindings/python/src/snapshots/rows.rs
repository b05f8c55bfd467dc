//! Values from Python for a new snapshot. Types are inferred strictly: values are never converted,
//! unless the caller requests a type.

use nuthatch_snapshot::{StringListBuf, Value, ValueType};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple,
};

/// The largest integer up to which all integers are floats of 64 bits.
const MAX_EXACT: u64 = 1 << 53;

/// Why an object is not a value: what was expected, and what was found.
pub(super) struct Mismatch {
    pub(super) expected: String,
    pub(super) found: String,
}

type Converted<T> = Result<T, Mismatch>;

/// Memory for the values of rows, reused for each.
#[derive(Default)]
pub(super) struct RowBuffer {
    i64s: Vec<i64>,
    f64s: Vec<f64>,
    f32s: Vec<f32>,
    bytes: Vec<u8>,
    strings: StringListBuf,
}

const ANY: &str = "a bool, an int, a float, a str, bytes, or a list of ints, floats or strings";

fn mismatch<T>(expected: impl Into<String>, found: impl Into<String>) -> Converted<T> {
    Err(Mismatch { expected: expected.into(), found: found.into() })
}

/// Describes an object: its class, or the object itself if that is short.
fn describe(object: &Bound<'_, PyAny>) -> String {
    if object.is_none() {
        return "None".to_owned();
    }
    object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// Calls `insert` with the value of an object, as the requested type if there is one.
pub(super) fn with_value<R>(
    object: &Bound<'_, PyAny>,
    requested: Option<ValueType>,
    buffer: &mut RowBuffer,
    insert: impl FnOnce(Value<'_>) -> R,
) -> Converted<R> {
    if let Ok(text) = object.cast::<PyString>() {
        let text = text.to_str().or_else(|_| mismatch("text", "an unpaired surrogate"))?;
        return Ok(insert(as_requested(Value::String(text), requested)?));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(insert(as_requested(Value::Bytes(bytes.as_bytes()), requested)?));
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(insert(as_requested(Value::Bool(truth.is_true()), requested)?));
    }
    if object.is_instance_of::<PyInt>() {
        return Ok(insert(as_requested(Value::I64(int(object)?), requested)?));
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(insert(as_requested(Value::F64(number.value()), requested)?));
    }
    if let Ok(list) = object.cast::<PyList>() {
        return read_list(&list.to_tuple(), requested, buffer).map(insert);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return read_list(tuple, requested, buffer).map(insert);
    }
    read_other(object, requested, buffer, insert)
}

fn int(object: &Bound<'_, PyAny>) -> Converted<i64> {
    let number = object.extract::<i64>();
    number.or_else(|_| mismatch("an int of 64 bits", "an int outside -2^63 to 2^63 - 1"))
}

/// Returns an integer as a float; `None` if not all integers of its size are floats.
fn exact_float(number: i64) -> Option<f64> {
    (number.unsigned_abs() <= MAX_EXACT).then_some(number as f64)
}

/// Returns a value that is not a list of numbers as the requested type.
fn as_requested(value: Value<'_>, requested: Option<ValueType>) -> Converted<Value<'_>> {
    let found = value.value_type();
    match (requested, value) {
        (None, value) => Ok(value),
        (Some(requested), value) if super::typed::reads_as(found, requested) => Ok(value),
        (Some(ValueType::F64), Value::I64(number)) if number.unsigned_abs() <= MAX_EXACT => {
            Ok(Value::F64(number as f64))
        }
        (Some(requested), _) => {
            mismatch(format!("a value of type {requested}"), format!("one of type {found}"))
        }
    }
}

/// Reads a list of ints, floats or strings, all of the class of the first.
fn read_list<'a>(
    list: &Bound<'_, PyTuple>,
    requested: Option<ValueType>,
    buffer: &'a mut RowBuffer,
) -> Converted<Value<'a>> {
    let Ok(first) = list.get_item(0) else { return as_requested(Value::EmptyList, requested) };
    if first.is_instance_of::<PyString>() {
        buffer.strings.clear();
        each(list, "str", |element| {
            let text = element.cast::<PyString>().ok().and_then(|text| text.to_str().ok())?;
            buffer.strings.push(text);
            Some(())
        })?;
        return as_requested(Value::StringList(buffer.strings.as_list()), requested);
    }
    let is_int = |element: &Bound<'_, PyAny>| {
        element.is_instance_of::<PyInt>() && !element.is_instance_of::<PyBool>()
    };
    buffer.f64s.clear();
    if let Some(ValueType::F64List | ValueType::F32List) = requested {
        each(list, "float, or int from -2^53 to 2^53", |element| {
            let number = match element.cast::<PyFloat>() {
                Ok(number) => number.value(),
                Err(_) if is_int(element) => exact_float(element.extract().ok()?)?,
                Err(_) => return None,
            };
            buffer.f64s.push(number);
            Some(())
        })?;
        return as_floats(requested, buffer);
    }
    if is_int(&first) {
        buffer.i64s.clear();
        each(list, "int of 64 bits", |element| {
            buffer.i64s.push(is_int(element).then(|| element.extract().ok())??);
            Some(())
        })?;
        return as_requested(Value::I64List(&buffer.i64s), requested);
    }
    if first.is_instance_of::<PyFloat>() {
        each(list, "float", |element| {
            buffer.f64s.push(element.cast::<PyFloat>().ok()?.value());
            Some(())
        })?;
        return as_requested(Value::F64List(&buffer.f64s), requested);
    }
    mismatch("a list of ints, floats or strings", format!("a list of {}", describe(&first)))
}

/// Calls `push` with each element; fails for the first for which it returns `None`.
fn each(
    list: &Bound<'_, PyTuple>,
    expected: &str,
    mut push: impl FnMut(&Bound<'_, PyAny>) -> Option<()>,
) -> Converted<()> {
    for (index, element) in list.iter().enumerate() {
        if push(&element).is_none() {
            let found = format!("{} as element {index}", describe(&element));
            return mismatch(format!("a list of elements of class {expected}"), found);
        }
    }
    Ok(())
}

/// Returns the floats of the buffer as the requested list. With 32 bits, fails for the first finite
/// float that rounding would make infinite.
fn as_floats(requested: Option<ValueType>, buffer: &mut RowBuffer) -> Converted<Value<'_>> {
    if requested != Some(ValueType::F32List) {
        return Ok(Value::F64List(&buffer.f64s));
    }
    buffer.f32s.clear();
    for (index, number) in buffer.f64s.iter().enumerate() {
        let rounded = *number as f32;
        if rounded.is_infinite() && number.is_finite() {
            let expected = "floats in the range of 32 bits, -3.4028235e38 to 3.4028235e38";
            return mismatch(expected, format!("{number:e} as element {index}"));
        }
        buffer.f32s.push(rounded);
    }
    Ok(Value::F32List(&buffer.f32s))
}

/// Reads bytes of other classes, arrays of numbers, and scalars of NumPy.
fn read_other<R>(
    object: &Bound<'_, PyAny>,
    requested: Option<ValueType>,
    buffer: &mut RowBuffer,
    insert: impl FnOnce(Value<'_>) -> R,
) -> Converted<R> {
    let is_bytes =
        object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>();
    if is_bytes && let Ok(bytes) = PyBuffer::<u8>::get(object) {
        if bytes.dimensions() != 1 {
            return mismatch("bytes of one dimension", "a memoryview of several");
        }
        buffer.bytes = copied(&bytes, object)?;
        return Ok(insert(as_requested(Value::Bytes(&buffer.bytes), requested)?));
    }
    if is_masked(object) {
        let expected = "an array without a mask, such as array.filled(0) returns";
        return mismatch(expected, describe(object));
    }
    // Scalars and arrays of NumPy without a dimension.
    let is_scalar = object.hasattr("dtype").unwrap_or(false)
        && object.getattr("ndim").is_ok_and(|dimensions| dimensions.eq(0).unwrap_or(false));
    if is_scalar && let Ok(item) = object.call_method0("item") {
        if item.hasattr("dtype").unwrap_or(true) {
            return mismatch(ANY, describe(object));
        }
        return with_value(&item, requested, buffer, insert);
    }
    match read_array(object, requested, buffer)? {
        Some(value) => Ok(insert(value)),
        None => mismatch(ANY, describe(object)),
    }
}

/// Returns whether an object is a masked array of NumPy. Its buffer has the masked elements, too.
fn is_masked(object: &Bound<'_, PyAny>) -> bool {
    let has = |name: &Bound<'_, PyString>| object.hasattr(name).unwrap_or(false);
    has(intern!(object.py(), "mask")) && has(intern!(object.py(), "filled"))
}

/// Reads an array of numbers of one dimension. Smaller integers become integers of 64 bits. Returns
/// `None` for an object that is none.
fn read_array<'a>(
    object: &Bound<'_, PyAny>,
    requested: Option<ValueType>,
    buffer: &'a mut RowBuffer,
) -> Converted<Option<Value<'a>>> {
    if let Some(numbers) = numbers::<f32>(object)? {
        buffer.f32s = numbers;
        return as_requested(Value::F32List(&buffer.f32s), requested).map(Some);
    }
    if let Some(numbers) = numbers::<f64>(object)? {
        buffer.f64s = numbers;
        if requested == Some(ValueType::F32List) {
            return as_floats(requested, buffer).map(Some);
        }
        return as_requested(Value::F64List(&buffer.f64s), requested).map(Some);
    }
    let Some(integers) = integers(object)? else { return Ok(None) };
    buffer.i64s = integers;
    as_requested(Value::I64List(&buffer.i64s), requested).map(Some)
}

fn integers(object: &Bound<'_, PyAny>) -> Converted<Option<Vec<i64>>> {
    macro_rules! try_types {
        ($($type:ty)*) => {$(
            if let Some(numbers) = numbers::<$type>(object)? {
                return Ok(Some(numbers.into_iter().map(i64::from).collect()));
            }
        )*};
    }
    try_types!(i64 i32 i16 i8 u32 u16 u8);
    Ok(None)
}

/// Returns the elements of an array whose elements have this type.
fn numbers<T: Element>(object: &Bound<'_, PyAny>) -> Converted<Option<Vec<T>>> {
    let Ok(array) = PyBuffer::<T>::get(object) else { return Ok(None) };
    if array.dimensions() != 1 {
        let found = format!("an array of {} dimensions", array.dimensions());
        return mismatch("an array of one dimension", found);
    }
    // Checked here, because `PyBuffer` accepts elements whose bytes are in the reverse order.
    if matches!(array.format().to_bytes(), [b'>' | b'!', ..]) {
        let expected = "an array in the byte order of the machine, such as array.astype(\"=i8\")";
        return mismatch(expected, "one in big-endian byte order");
    }
    copied(&array, object).map(Some)
}

fn copied<T: Element>(array: &PyBuffer<T>, object: &Bound<'_, PyAny>) -> Converted<Vec<T>> {
    array.to_vec(object.py()).or_else(|_| mismatch("an array that can be copied", describe(object)))
}
