//! Readers return the same values with and without compression.
#![cfg(feature = "zstd")]

use nuthatch_snapshot::{
    Compression, CowValue, Snapshot, StringListBuf, Value, ValueType, WriterOptions,
};
use std::borrow::Cow;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Builds a compressible value of every type that is compressed.
fn snapshot(compression: Compression) -> AnyResult<Snapshot> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("values.nut");
    let mut writer = WriterOptions::new().compression(compression).create(&path)?;
    writer.insert(b"bytes", Value::Bytes(&[7; 500]))?;
    writer.insert(b"string", Value::String(&"nuthatch ".repeat(50)))?;
    writer.insert(b"i64s", Value::I64List(&[-3; 100]))?;
    writer.insert(b"f64s", Value::F64List(&[0.5; 100]))?;
    writer.insert(b"f32s", Value::F32List(&[0.25; 101]))?;
    let mut strings = StringListBuf::from_iter(["tree"; 60]);
    writer.insert(b"strings", Value::StringList(strings.as_list()))?;
    writer.insert(b"none", Value::EmptyList)?;
    writer.insert(b"number", Value::I64(36))?;
    writer.finish()?;
    Ok(Snapshot::open(&path)?)
}

const KEYS: [&[u8]; 9] =
    [b"bytes", b"string", b"i64s", b"f64s", b"f32s", b"strings", b"none", b"number", b"missing"];

#[test]
fn get_and_get_many_read_compressed_values_as_any_other() -> AnyResult {
    let plain = snapshot(Compression::None)?;
    let compressed = snapshot(Compression::Zstd { level: 3 })?;
    assert_eq!(compressed.stats().compressed_entries, 6);
    let (mut of_plain, mut of_compressed) = ([const { None }; 9], [const { None }; 9]);
    plain.get_many(&KEYS, &mut of_plain)?;
    compressed.get_many(&KEYS, &mut of_compressed)?;
    assert_eq!(of_plain, of_compressed);
    for (number, key) in KEYS.into_iter().enumerate() {
        assert_eq!(plain.get(key)?, compressed.get(key)?, "{}", key.escape_ascii());
        assert_eq!(of_compressed[number], compressed.get(key)?, "{}", key.escape_ascii());
        assert!(matches!(plain.get(key)?, None | Some(CowValue::Borrowed(_))));
        let owned = compressed.get(key)?.map(CowValue::into_owned);
        assert_eq!(owned, plain.get(key)?.map(CowValue::into_owned));
    }
    Ok(())
}

#[test]
fn a_clone_of_a_decompressed_value_shares_its_bytes() -> AnyResult {
    let snapshot = snapshot(Compression::Zstd { level: 3 })?;
    let value = snapshot.get(b"bytes")?.ok_or("the key")?;
    let clone = value.clone();
    let (Value::Bytes(bytes), Value::Bytes(cloned)) = (value.as_value(), clone.as_value()) else {
        panic!("{value:?}");
    };
    assert!(std::ptr::eq(bytes, cloned), "a clone has bytes of its own");
    assert_eq!(clone.into_owned(), value.into_owned());
    Ok(())
}

#[test]
fn get_many_replaces_values_of_an_earlier_call() -> AnyResult {
    let plain = snapshot(Compression::None)?;
    let compressed = snapshot(Compression::Zstd { level: 3 })?;
    let mut values = [const { None }; 9];
    compressed.get_many(&KEYS, &mut values)?;
    plain.get_many(&KEYS, &mut values)?;
    assert!(values.iter().all(|value| matches!(value, None | Some(CowValue::Borrowed(_)))));
    compressed.get_many(&[b"missing"; 9], &mut values)?;
    assert_eq!(values, [const { None }; 9]);
    Ok(())
}

#[test]
fn typed_getters_read_compressed_values_as_any_other() -> AnyResult {
    for compression in [Compression::None, Compression::Zstd { level: 3 }] {
        let snapshot = snapshot(compression)?;
        let string = "nuthatch ".repeat(50);
        assert_eq!(snapshot.get_bytes(b"bytes")?.as_deref(), Some(&[7; 500][..]));
        assert_eq!(snapshot.get_string(b"string")?.as_deref(), Some(&string[..]));
        assert_eq!(snapshot.get_i64_list(b"i64s")?.as_deref(), Some(&[-3; 100][..]));
        assert_eq!(snapshot.get_f64_list(b"f64s")?.as_deref(), Some(&[0.5; 100][..]));
        assert_eq!(snapshot.get_f32_list(b"f32s")?.as_deref(), Some(&[0.25; 101][..]));
        let strings = snapshot.get_string_list(b"strings")?.ok_or("the key")?;
        assert!(strings.as_list().iter().eq(["tree"; 60]));
        assert_eq!(snapshot.get_i64_list(b"none")?.as_deref(), Some(&[][..]));
        assert_eq!(snapshot.get_i64(b"number")?, Some(36));
        assert_eq!(snapshot.get_string(b"missing")?, None);
        let error = snapshot.get_string(b"f64s").expect_err("another type");
        assert_eq!(error.code(), "wrong-type");
        let is_owned = compression != Compression::None;
        assert_eq!(matches!(snapshot.get_string(b"string")?, Some(Cow::Owned(_))), is_owned);
    }
    Ok(())
}

#[test]
fn a_stored_value_reports_whether_it_is_compressed() -> AnyResult {
    let compressed = snapshot(Compression::Zstd { level: 3 })?;
    let stored = compressed.find(b"string")?.ok_or("the key")?;
    assert!(stored.is_compressed());
    assert_eq!(stored.in_place()?, None);
    assert_eq!(stored.value()?.as_value().value_type(), ValueType::String);
    let stored = compressed.find(b"number")?.ok_or("the key")?;
    assert_eq!(stored.in_place()?, Some(Value::I64(36)));
    Ok(())
}
