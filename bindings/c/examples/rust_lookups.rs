//! The lookups of `bindings/cpp/bench/lookups.cpp` in Rust, for comparison. An example of the kind
//! `cdylib`, which that program loads.

#![expect(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::missing_safety_doc,
    reason = "for one program, which has the rules"
)]

use nuthatch::nuthatch_snapshot_bytes;
use snapshot_engine::{CowValue, Snapshot, Value};
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;

/// Number of keys in a batch.
const BATCH_KEYS: usize = 1024;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_open(path: *const c_char) -> *const Snapshot {
    // SAFETY: the program passes a string that ends with a zero byte.
    let path = unsafe { CStr::from_ptr(path) };
    let snapshot = Snapshot::open(OsStr::from_bytes(path.to_bytes())).expect("a snapshot");
    Box::leak(Box::new(snapshot))
}

/// Returns the keys in the form of Rust.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rust_keys(
    keys: *const nuthatch_snapshot_bytes,
    count: usize,
) -> *const Keys {
    // SAFETY: the program passes an array.
    let keys = unsafe { std::slice::from_raw_parts(keys, count) };
    // SAFETY: the program keeps the keys until it ends.
    let keys = keys.iter().map(|key| unsafe { std::slice::from_raw_parts(key.data, key.len) });
    Box::leak(Box::new(Keys(keys.collect())))
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_get(snapshot: &Snapshot, keys: &Keys) -> usize {
    let values = keys.0.iter().map(|key| snapshot.get_string(key).expect("no damage"));
    values.flatten().map(|text| text.len() + usize::from(text.as_bytes()[0])).sum()
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_get_many(snapshot: &Snapshot, keys: &Keys) -> usize {
    let mut values = vec![None; BATCH_KEYS];
    let mut sum = 0;
    for keys in keys.0.chunks(BATCH_KEYS) {
        snapshot.get_many(keys, &mut values).expect("no damage");
        for value in &values[..keys.len()] {
            if let Some(CowValue::Borrowed(Value::String(text))) = value {
                sum += text.len() + usize::from(text.as_bytes()[0]);
            }
        }
    }
    sum
}

/// The keys of the program.
pub struct Keys(Vec<&'static [u8]>);
