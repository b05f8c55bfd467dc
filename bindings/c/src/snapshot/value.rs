//! Values of lookups.

use super::types::{
    NUTHATCH_SNAPSHOT_ABSENT, NUTHATCH_SNAPSHOT_BOOL, NUTHATCH_SNAPSHOT_BYTES,
    NUTHATCH_SNAPSHOT_EMPTY_LIST, NUTHATCH_SNAPSHOT_F32_LIST, NUTHATCH_SNAPSHOT_F64,
    NUTHATCH_SNAPSHOT_F64_LIST, NUTHATCH_SNAPSHOT_I64, NUTHATCH_SNAPSHOT_I64_LIST,
    NUTHATCH_SNAPSHOT_STRING, NUTHATCH_SNAPSHOT_STRING_LIST,
};
use crate::error::{Failure, nuthatch_error};
use crate::memory::{export_body, nuthatch_snapshot_bytes};
use snapshot_engine::Value;

/// The value of a key. If `in_place` is 1, its pointers refer to the file, and are valid until the
/// last reference to the snapshot is released. Otherwise the value was compressed, and its pointers
/// refer to the scratch buffer of the call, or to the iterator, and are valid until the next call
/// with that.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nuthatch_snapshot_value {
    /// The type: `NUTHATCH_SNAPSHOT_BYTES` to `_EMPTY_LIST`, or `NUTHATCH_SNAPSHOT_ABSENT` if the
    /// key does not exist; then the other fields have no meaning.
    pub r#type: u32,
    /// 1 if the value is in the file, 0 if it was decompressed.
    pub in_place: u32,
    /// Length of bytes or of a string in bytes; number of elements of a list, 0 for an empty list;
    /// otherwise 1.
    pub len: usize,
    /// The value. The type determines the member. If `len` is 0, its pointer has no meaning.
    pub data: nuthatch_snapshot_data,
}

/// The data of a value.
#[repr(C)]
#[derive(Clone, Copy)]
pub union nuthatch_snapshot_data {
    /// Bytes, or a string in UTF-8, which no zero byte terminates.
    pub bytes: *const u8,
    /// An integer; 0 or 1 for a boolean.
    pub i64: i64,
    /// A float.
    pub f64: f64,
    /// The elements of a list of integers.
    pub i64_list: *const i64,
    /// The elements of a list of floats of 64 bits.
    pub f64_list: *const f64,
    /// The elements of a list of floats of 32 bits.
    pub f32_list: *const f32,
    /// The stored form of a list of strings, without alignment. `nuthatch_snapshot_string_at`
    /// returns the strings.
    pub string_list: *const u8,
}

impl nuthatch_snapshot_value {
    /// The value of a missing key.
    pub(crate) const ABSENT: Self = Self {
        r#type: NUTHATCH_SNAPSHOT_ABSENT,
        in_place: 0,
        len: 0,
        data: nuthatch_snapshot_data { bytes: std::ptr::null() },
    };

    /// Returns the struct of a value that is in the file or in a buffer.
    #[inline(always)]
    pub(crate) fn new(value: Value<'_>, in_place: bool) -> Self {
        type Data = nuthatch_snapshot_data;
        let (code, len, data) = match value {
            Value::Bytes(bytes) => {
                (NUTHATCH_SNAPSHOT_BYTES, bytes.len(), Data { bytes: bytes.as_ptr() })
            }
            Value::String(text) => {
                (NUTHATCH_SNAPSHOT_STRING, text.len(), Data { bytes: text.as_ptr() })
            }
            Value::Bool(truth) => (NUTHATCH_SNAPSHOT_BOOL, 1, Data { i64: i64::from(truth) }),
            Value::I64(number) => (NUTHATCH_SNAPSHOT_I64, 1, Data { i64: number }),
            Value::F64(number) => (NUTHATCH_SNAPSHOT_F64, 1, Data { f64: number }),
            Value::I64List(list) => {
                (NUTHATCH_SNAPSHOT_I64_LIST, list.len(), Data { i64_list: list.as_ptr() })
            }
            Value::F64List(list) => {
                (NUTHATCH_SNAPSHOT_F64_LIST, list.len(), Data { f64_list: list.as_ptr() })
            }
            Value::F32List(list) => {
                (NUTHATCH_SNAPSHOT_F32_LIST, list.len(), Data { f32_list: list.as_ptr() })
            }
            Value::StringList(list) => {
                let data = Data { string_list: list.as_bytes().as_ptr() };
                (NUTHATCH_SNAPSHOT_STRING_LIST, list.len(), data)
            }
            Value::EmptyList => (NUTHATCH_SNAPSHOT_EMPTY_LIST, 0, Data { bytes: std::ptr::null() }),
            // A type that a later version of the reader adds: this header has no name for it.
            other => (other.value_type().code().into(), 0, Data { bytes: std::ptr::null() }),
        };
        Self { r#type: code, in_place: u32::from(in_place), len, data }
    }
}

/// Returns the string at an index below `value.len` of a list of strings in `string`. A function of
/// this library must have written `value`. The string is valid as long as the value. An index that
/// is too large, and a value of another type, are the error `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_string_at(
    value: *const nuthatch_snapshot_value,
    index: usize,
    string: *mut nuthatch_snapshot_bytes,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("string", string)?;
        let value = caller.one("value", value)?;
        if value.r#type != NUTHATCH_SNAPSHOT_STRING_LIST {
            return Err(Failure::argument("value", "a list of strings", value.r#type));
        }
        if index >= value.len {
            return Err(Failure::argument("index", &format!("below {}", value.len), index));
        }
        // SAFETY: a list of strings has this member.
        let stored = unsafe { value.data.string_list };
        let ends = caller.bytes("value", stored, 4 + 4 * value.len)?;
        let end =
            |at: usize| ends[4 * at..].first_chunk().map_or(0, |end| u32::from_le_bytes(*end));
        let start = if index == 0 { 0 } else { end(index) as usize };
        let data = stored.wrapping_add(ends.len() + start);
        out.put(nuthatch_snapshot_bytes { data, len: end(index + 1) as usize - start });
        Ok(())
    })
}
