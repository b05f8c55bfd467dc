//! Lookups.

use super::open::nuthatch_snapshot;
use super::scratch::nuthatch_snapshot_scratch;
use super::value::nuthatch_snapshot_value;
use crate::error::{Result, nuthatch_error};
use crate::memory::{Caller, export_body, nuthatch_snapshot_bytes};
use snapshot_engine::{CowStringList, CowValue, Error, Snapshot, Value, ValueType};
use std::borrow::Cow;

/// Number of keys that `nuthatch_snapshot_get_many` looks up at once.
const GROUP: usize = 64;

/// The parameters of a lookup.
struct Lookup {
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
}

/// The result of a lookup without a scratch buffer.
enum Found<'s> {
    Absent,
    InPlace(Value<'s>),
    /// The value is compressed, although the header counts none.
    Compressed,
}

impl Lookup {
    /// Looks up a key with `find` if the file has no compressed values. `requested` is the type
    /// that the value must have, if there is one.
    #[inline(always)]
    fn run<'c>(
        self,
        caller: &Caller<'c>,
        requested: Option<ValueType>,
        find: impl FnOnce(&'c Snapshot, &[u8]) -> snapshot_engine::Result<Found<'c>>,
    ) -> Result<()> {
        let mut out = caller.out("value", self.value)?;
        let key = caller.bytes("key", self.key, self.key_len)?;
        let open = caller.one("snapshot", self.snapshot)?;
        let snapshot = open.get()?;
        if !open.is_compressed() {
            match find(snapshot, key)? {
                Found::Absent => {
                    out.put(nuthatch_snapshot_value::ABSENT);
                    return Ok(());
                }
                Found::InPlace(value) => {
                    out.put(nuthatch_snapshot_value::new(value, true));
                    return Ok(());
                }
                Found::Compressed => {}
            }
        }
        let scratch = caller.maybe_exclusive("scratch", self.scratch)?;
        out.put(look_up_compressed(snapshot, key, requested, scratch)?);
        Ok(())
    }
}

/// Looks up a key whose value may be compressed.
#[inline(never)]
fn look_up_compressed(
    snapshot: &Snapshot,
    key: &[u8],
    requested: Option<ValueType>,
    scratch: Option<&mut nuthatch_snapshot_scratch>,
) -> Result<nuthatch_snapshot_value> {
    let Some(stored) = snapshot.find(key)? else { return Ok(nuthatch_snapshot_value::ABSENT) };
    let found = stored.value_type();
    let mut value = match requested {
        Some(requested) if !can_read(requested, found) => {
            return Err(Error::WrongType { requested, found }.into());
        }
        _ => nuthatch_snapshot_scratch::read(scratch, &stored)?,
    };
    if let Some(requested) = requested {
        value.r#type = u32::from(requested.code());
    }
    Ok(value)
}

/// Returns whether a typed lookup of `requested` can read a value of type `found`.
fn can_read(requested: ValueType, found: ValueType) -> bool {
    let is_list = matches!(
        requested,
        ValueType::I64List | ValueType::F64List | ValueType::F32List | ValueType::StringList
    );
    requested == found || is_list && found == ValueType::EmptyList
}

/// Looks up a key. Returns the value in `value`; a missing key is not an error. `scratch` receives
/// the value if it is compressed, until the next call with the same buffer. It may be null if the
/// file has no compressed values; otherwise a compressed value is the error `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, None, |snapshot, key| {
            Ok(match snapshot.get(key)? {
                None => Found::Absent,
                Some(CowValue::Borrowed(value)) => Found::InPlace(value),
                Some(CowValue::Owned(_)) => Found::Compressed,
            })
        })
    })
}

/// Looks up bytes, as `nuthatch_snapshot_get`. A value of another type is the error `wrong-type`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_bytes(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::Bytes), |snapshot, key| {
            Ok(match snapshot.get_bytes(key)? {
                None => Found::Absent,
                Some(Cow::Borrowed(value)) => Found::InPlace(Value::Bytes(value)),
                Some(Cow::Owned(_)) => Found::Compressed,
            })
        })
    })
}

/// Looks up a string, as `nuthatch_snapshot_get_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_string(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::String), |snapshot, key| {
            Ok(match snapshot.get_string(key)? {
                None => Found::Absent,
                Some(Cow::Borrowed(value)) => Found::InPlace(Value::String(value)),
                Some(Cow::Owned(_)) => Found::Compressed,
            })
        })
    })
}

/// Looks up a boolean, as `nuthatch_snapshot_get_bytes`: 0 or 1 in `value.data.i64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_bool(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::Bool), |snapshot, key| {
            Ok(match snapshot.get_bool(key)? {
                None => Found::Absent,
                Some(value) => Found::InPlace(Value::Bool(value)),
            })
        })
    })
}

/// Looks up an integer, as `nuthatch_snapshot_get_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_i64(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::I64), |snapshot, key| {
            Ok(match snapshot.get_i64(key)? {
                None => Found::Absent,
                Some(value) => Found::InPlace(Value::I64(value)),
            })
        })
    })
}

/// Looks up a float, as `nuthatch_snapshot_get_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_f64(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::F64), |snapshot, key| {
            Ok(match snapshot.get_f64(key)? {
                None => Found::Absent,
                Some(value) => Found::InPlace(Value::F64(value)),
            })
        })
    })
}

/// Looks up a list of integers, as `nuthatch_snapshot_get_bytes`. An empty list can be read as a
/// list of any type: its length is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_i64_list(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::I64List), |snapshot, key| {
            Ok(match snapshot.get_i64_list(key)? {
                None => Found::Absent,
                Some(Cow::Borrowed(value)) => Found::InPlace(Value::I64List(value)),
                Some(Cow::Owned(_)) => Found::Compressed,
            })
        })
    })
}

/// Looks up a list of floats of 64 bits, as `nuthatch_snapshot_get_i64_list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_f64_list(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::F64List), |snapshot, key| {
            Ok(match snapshot.get_f64_list(key)? {
                None => Found::Absent,
                Some(Cow::Borrowed(value)) => Found::InPlace(Value::F64List(value)),
                Some(Cow::Owned(_)) => Found::Compressed,
            })
        })
    })
}

/// Looks up a list of floats of 32 bits, as `nuthatch_snapshot_get_i64_list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_f32_list(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::F32List), |snapshot, key| {
            Ok(match snapshot.get_f32_list(key)? {
                None => Found::Absent,
                Some(Cow::Borrowed(value)) => Found::InPlace(Value::F32List(value)),
                Some(Cow::Owned(_)) => Found::Compressed,
            })
        })
    })
}

/// Looks up a list of strings, as `nuthatch_snapshot_get_i64_list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_string_list(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let lookup = Lookup { snapshot, key, key_len, scratch, value };
        lookup.run(caller, Some(ValueType::StringList), |snapshot, key| {
            Ok(match snapshot.get_string_list(key)? {
                None => Found::Absent,
                Some(CowStringList::Borrowed(value)) => Found::InPlace(Value::StringList(value)),
                Some(CowStringList::Owned(_)) => Found::Compressed,
            })
        })
    })
}

/// Looks up whether a key exists, and returns 1 or 0 in `found`. Does not read the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_contains(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    found: *mut u32,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("found", found)?;
        let key = caller.bytes("key", key, key_len)?;
        let open = caller.one("snapshot", snapshot)?;
        out.put(u32::from(open.get()?.contains(key)?));
        Ok(())
    })
}

/// Looks up the type of a key, and returns it in `type`: `NUTHATCH_SNAPSHOT_ABSENT` for a missing
/// key, otherwise `NUTHATCH_SNAPSHOT_BYTES` to `_EMPTY_LIST`. Does not read the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_type_of(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    r#type: *mut u32,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let mut out = caller.out("type", r#type)?;
        let key = caller.bytes("key", key, key_len)?;
        let open = caller.one("snapshot", snapshot)?;
        out.put(open.get()?.value_type(key)?.map_or(0, |found| u32::from(found.code())));
        Ok(())
    })
}

/// Looks up `count` keys. Writes the value of `keys[i]` to `values[i]`, as `nuthatch_snapshot_get`.
/// Faster than single lookups in large files, because the memory accesses of several keys overlap.
/// All compressed values are kept in `scratch` until the next call with it. `values` need not be
/// initialized. Fails with the error of the first key for which a lookup fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get_many(
    snapshot: *const nuthatch_snapshot,
    keys: *const nuthatch_snapshot_bytes,
    count: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    values: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(error, |caller| {
        let keys = caller.byte_lists("keys", keys, count)?;
        let values = caller.blank("values", values, count)?;
        let mut scratch = caller.maybe_exclusive("scratch", scratch)?;
        if let Some(scratch) = &mut scratch {
            scratch.clear();
        }
        let snapshot = caller.one("snapshot", snapshot)?.get()?;
        let mut found = [None; GROUP];
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            snapshot.find_many(keys, &mut found)?;
            for (value, stored) in values.iter_mut().zip(&found) {
                value.write(match stored {
                    Some(stored) => {
                        nuthatch_snapshot_scratch::read_also(scratch.as_deref_mut(), stored)?
                    }
                    None => nuthatch_snapshot_value::ABSENT,
                });
            }
        }
        Ok(())
    })
}
