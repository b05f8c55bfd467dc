//! Lookups.

use super::open::nuthatch_snapshot;
use super::scratch::nuthatch_snapshot_scratch;
use super::value::nuthatch_snapshot_value;
use crate::error::{Result, nuthatch_error};
use crate::memory::{Caller, export_body, nuthatch_snapshot_bytes};
use snapshot_engine::{CowStringList, CowValue, Error, Snapshot, Value, ValueType};
use std::borrow::Cow;

/// Number of keys that `nuthatch_snapshot_get_many` looks up at once.
const GROUP: usize = 256;

/// The parameters of a lookup.
#[derive(Clone, Copy)]
struct Lookup {
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    /// The type that the value must have, if there is one.
    requested: Option<ValueType>,
}

impl Lookup {
    /// Looks up a key with the shortest code, without any call. Returns `None` if that cannot
    /// decide, or if a parameter is unusual: [`run`](Self::run) then does all, out of line. The
    /// shorter this code is, the more lookups a processor overlaps.
    #[inline(always)]
    fn try_usual(&self, caller: &Caller<'_>) -> Option<()> {
        let (snapshot, key, mut out) =
            caller.usual_lookup(self.snapshot, self.key, self.key_len, self.value)?;
        let file = caller.usual(snapshot.usual_file())?;
        let found = file.get_usual(key, self.requested)?;
        out.put(found.map_or(nuthatch_snapshot_value::ABSENT, in_file));
        Some(())
    }

    /// Looks up a key with `find`, in a file without compressed values. Returns `None` after an
    /// error, or if a parameter is unusual.
    #[inline(always)]
    fn try_in_place<'c, T>(
        &self,
        caller: &Caller<'c>,
        find: impl FnOnce(&'c Snapshot, &[u8]) -> snapshot_engine::Result<Option<T>>,
        in_place: impl FnOnce(T) -> Option<Value<'c>>,
    ) -> Option<()> {
        let mut out = caller.usual_out(self.value)?;
        let key = caller.usual_bytes(self.key, self.key_len)?;
        let snapshot = caller.usual(self.snapshot)?.without_compression()?;
        let found = match find(snapshot, key).ok()? {
            Some(found) => Some(in_place(found)?),
            None => None,
        };
        out.put(found.map_or(nuthatch_snapshot_value::ABSENT, in_file));
        Some(())
    }

    /// Looks up any key with `find`, or with [`read`](Self::read) if its value may be compressed or
    /// the lookup fails.
    #[inline(always)]
    fn run<'c, T>(
        self,
        caller: &Caller<'c>,
        find: impl FnOnce(&'c Snapshot, &[u8]) -> snapshot_engine::Result<Option<T>>,
        in_place: impl FnOnce(T) -> Option<Value<'c>>,
    ) -> Result<()> {
        match self.try_in_place(caller, find, in_place) {
            Some(()) => Ok(()),
            None => self.read(caller),
        }
    }

    /// Looks up a key whose value may be compressed, or for which a lookup fails.
    #[inline(never)]
    fn read(self, caller: &Caller<'_>) -> Result<()> {
        let mut out = caller.out("value", self.value)?;
        let key = caller.bytes("key", self.key, self.key_len)?;
        let snapshot = caller.one("snapshot", self.snapshot)?.get()?;
        let scratch = caller.maybe_exclusive("scratch", self.scratch)?;
        let Some(stored) = snapshot.find(key)? else {
            out.put(nuthatch_snapshot_value::ABSENT);
            return Ok(());
        };
        let found = stored.value_type();
        if let Some(requested) = self.requested.filter(|requested| !can_read(*requested, found)) {
            return Err(Error::WrongType { requested, found }.into());
        }
        let mut value = nuthatch_snapshot_scratch::read(scratch, &stored)?;
        if let Some(requested) = self.requested {
            value.r#type = u32::from(requested.code());
        }
        out.put(value);
        Ok(())
    }
}

/// Returns the struct of a value that is in the file.
#[inline(always)]
fn in_file(value: Value<'_>) -> nuthatch_snapshot_value {
    nuthatch_snapshot_value::new(value, true)
}

/// Returns a value that is borrowed from the file.
#[inline(always)]
#[expect(clippy::needless_pass_by_value, reason = "a function of a lookup's result")]
fn in_place(value: CowValue<'_>) -> Option<Value<'_>> {
    match value {
        CowValue::Borrowed(value) => Some(value),
        CowValue::Owned(_) => None,
    }
}

/// Returns a list of strings that is borrowed from the file.
#[inline(always)]
#[expect(clippy::needless_pass_by_value, reason = "a function of a lookup's result")]
fn strings_in_place(list: CowStringList<'_>) -> Option<Value<'_>> {
    match list {
        CowStringList::Borrowed(list) => Some(Value::StringList(list)),
        CowStringList::Owned(_) => None,
    }
}

/// Returns bytes, text or numbers that are borrowed from the file.
#[inline(always)]
#[expect(clippy::needless_pass_by_value, reason = "a function of a lookup's result")]
fn borrowed<T: ToOwned + ?Sized>(value: Cow<'_, T>) -> Option<&T> {
    match value {
        Cow::Borrowed(value) => Some(value),
        Cow::Owned(_) => None,
    }
}

/// Returns whether a typed lookup of `requested` can read a value of type `found`.
fn can_read(requested: ValueType, found: ValueType) -> bool {
    let is_list = matches!(
        requested,
        ValueType::I64List | ValueType::F64List | ValueType::F32List | ValueType::StringList
    );
    requested == found || is_list && found == ValueType::EmptyList
}

/// Looks up a key. Returns the value in `value`. A missing key is not an error: the type of the
/// value is then `NUTHATCH_SNAPSHOT_ABSENT`. A compressed value is decompressed into `scratch`, and
/// is valid until the next call with the same buffer. If `scratch` is null, a compressed value is
/// the error `compressed`. Takes no lock, and allocates memory only to decompress a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_snapshot_get(
    snapshot: *const nuthatch_snapshot,
    key: *const u8,
    key_len: usize,
    scratch: *mut nuthatch_snapshot_scratch,
    value: *mut nuthatch_snapshot_value,
    error: *mut nuthatch_error,
) -> i32 {
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: None },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(caller, |snapshot, key| snapshot.get(key), in_place)
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::Bytes) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(
            caller,
            |snapshot, key| snapshot.get_bytes(key),
            |value| borrowed(value).map(Value::Bytes)
        )
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::String) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(
            caller,
            |snapshot, key| snapshot.get_string(key),
            |value| borrowed(value).map(Value::String)
        )
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::Bool) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(caller, Snapshot::get_bool, |value| Some(Value::Bool(value)))
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::I64) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(caller, Snapshot::get_i64, |value| Some(Value::I64(value)))
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::F64) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(caller, Snapshot::get_f64, |value| Some(Value::F64(value)))
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::I64List) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(
            caller,
            |snapshot, key| snapshot.get_i64_list(key),
            |value| borrowed(value).map(Value::I64List)
        )
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::F64List) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(
            caller,
            |snapshot, key| snapshot.get_f64_list(key),
            |value| borrowed(value).map(Value::F64List)
        )
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::F32List) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(
            caller,
            |snapshot, key| snapshot.get_f32_list(key),
            |value| borrowed(value).map(Value::F32List)
        )
    )
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
    export_body!(
        error,
        Lookup { snapshot, key, key_len, scratch, value, requested: Some(ValueType::StringList) },
        |caller, lookup| lookup.try_usual(caller),
        |caller, lookup| lookup.run(
            caller,
            |snapshot, key| snapshot.get_string_list(key),
            strings_in_place
        )
    )
}

/// Looks up whether a key exists, and returns 1 or 0 in `found`. Does not decode the value.
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
/// key, otherwise `NUTHATCH_SNAPSHOT_BYTES` to `_EMPTY_LIST`. Does not decode the value.
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
/// `scratch` keeps all values that were compressed until the next call with it. `values` need not
/// be initialized. Fails with the error of the first key for which a lookup fails.
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
        let mut found = [const { None }; GROUP];
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            snapshot.get_many(keys, &mut found)?;
            for (value, found) in values.iter_mut().zip(&mut found) {
                value.write(match found {
                    Some(CowValue::Borrowed(value)) => nuthatch_snapshot_value::new(*value, true),
                    Some(CowValue::Owned(value)) => {
                        nuthatch_snapshot_scratch::keep(scratch.as_deref_mut(), value)?
                    }
                    None => nuthatch_snapshot_value::ABSENT,
                });
            }
        }
        Ok(())
    })
}
