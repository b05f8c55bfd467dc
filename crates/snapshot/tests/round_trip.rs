//! Round trips of every type, size and option.
#![cfg(feature = "zstd")]

use nuthatch_snapshot::{
    Batch, Compression, Entry, Error, OnDuplicate, Scratch, Snapshot, StringListBuf, Value,
    ValueType, WriterOptions,
};
use std::path::Path;

type AnyResult = Result<(), Box<dyn std::error::Error>>;

fn build(path: &Path, options: &WriterOptions, rows: &[(Vec<u8>, Value<'_>)]) -> AnyResult {
    let mut writer = options.create(path)?;
    for (key, value) in rows {
        writer.insert(key, *value)?;
    }
    let summary = writer.finish()?;
    assert_eq!(summary.rows, rows.len() as u64);
    Ok(())
}

/// Opens and verifies a file, and compares every entry with the rows by all read operations.
fn check(path: &Path, rows: &[(Vec<u8>, Value<'_>)]) -> AnyResult {
    let snapshot = Snapshot::open(path)?;
    snapshot.verify()?;
    assert_eq!(snapshot.len(), rows.len() as u64);
    let keys: Vec<_> = rows.iter().map(|(key, _)| key).collect();
    let mut many = vec![None; rows.len()];
    snapshot.find_many(&keys, &mut many)?;
    let mut scratch = Scratch::new();
    for ((key, value), many) in rows.iter().zip(many) {
        let found = snapshot.find(key)?.expect("a key that was given");
        assert_eq!(found.decompress(&mut scratch)?, *value, "{}", key.escape_ascii());
        assert_eq!(found.value_type(), value.value_type());
        assert_eq!(many.expect("a key that was given").bytes(), found.bytes());
        let mut other = key.clone();
        other.push(b'!');
        assert!(!snapshot.contains(&other)?);
    }
    let mut seen: Vec<_> = snapshot
        .iter()
        .map(|entry| entry.map(|Entry { key, .. }| key.to_vec()))
        .collect::<Result<_, _>>()?;
    seen.sort();
    let mut given: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
    given.sort();
    assert!(seen == given, "iteration gives every key once");
    Ok(())
}

#[test]
fn every_type_is_read_in_place() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("types.nut");
    let mut strings = StringListBuf::from_iter(["", "größe", "nut"]);
    let rows: Vec<(Vec<u8>, Value<'_>)> = vec![
        (b"".to_vec(), Value::String("the empty key")),
        (vec![b'k'; 65_535], Value::I64(-1)),
        (b"bytes".to_vec(), Value::Bytes(&[0, 255, 1])),
        (b"no bytes".to_vec(), Value::Bytes(&[])),
        (b"string".to_vec(), Value::String("höhle")),
        (b"no string".to_vec(), Value::String("")),
        (b"true".to_vec(), Value::Bool(true)),
        (b"false".to_vec(), Value::Bool(false)),
        (b"i64".to_vec(), Value::I64(i64::MIN)),
        (b"f64".to_vec(), Value::F64(-0.0)),
        (b"i64s".to_vec(), Value::I64List(&[1, i64::MAX])),
        (b"f64s".to_vec(), Value::F64List(&[0.5, f64::INFINITY])),
        (b"f32s".to_vec(), Value::F32List(&[0.25; 128])),
        (b"strings".to_vec(), Value::StringList(strings.as_list())),
        (b"none".to_vec(), Value::EmptyList),
    ];
    build(&path, &WriterOptions::new(), &rows)?;
    check(&path, &rows)?;
    let snapshot = Snapshot::open(&path)?;
    assert_eq!(snapshot.get_f32_list(b"f32s")?.as_deref(), Some(&[0.25; 128][..]));
    assert_eq!(snapshot.get_i64_list(b"none")?.as_deref(), Some(&[][..]));
    assert!(snapshot.get_string_list(b"none")?.is_some_and(|list| list.as_list().is_empty()));
    assert_eq!(snapshot.get_string(b"missing")?, None);
    let Err(Error::WrongType { requested, found }) = snapshot.get_i64(b"string") else {
        panic!("a wrong type is an error")
    };
    assert_eq!((requested, found), (ValueType::I64, ValueType::String));
    assert_eq!(snapshot.stats().entries_of(ValueType::String), 3);
    Ok(())
}

fn numbered(count: usize) -> Vec<(Vec<u8>, String)> {
    (0..count).map(|i| (format!("key_{i}").into_bytes(), format!("val_{i}"))).collect()
}

#[test]
fn many_entries_in_many_partitions() -> AnyResult {
    let directory = tempfile::tempdir()?;
    for count in [0, 1, 13, 14, 15, 16, 200, 9_000, 40_000, 150_000] {
        let path = directory.path().join("many.nut");
        let owned = numbered(count);
        let rows: Vec<_> = owned.iter().map(|(k, v)| (k.clone(), Value::String(v))).collect();
        build(&path, &WriterOptions::new(), &rows)?;
        check(&path, &rows)?;
    }
    Ok(())
}

/// Returns long and short values, some of them repeated.
fn mixed(count: usize) -> Vec<(Vec<u8>, String)> {
    let long = |i: usize| format!("a value that occurs often, number {}", i % 10).repeat(1 + i % 3);
    (0..count)
        .map(|i| {
            let value = match i % 4 {
                0 => long(i),
                1 => format!("a longer value that occurs once, {i}").repeat(1 + i % 20),
                _ => format!("short {i}"),
            };
            (format!("{}/{i}", i % 7).repeat(1 + i % 5).into_bytes(), value)
        })
        .collect()
}

#[test]
fn the_same_entries_give_the_same_bytes() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let owned = mixed(60_000);
    let mut rows: Vec<_> = owned.iter().map(|(k, v)| (k.clone(), Value::String(v))).collect();
    for compression in [Compression::None, Compression::Zstd { level: 1 }] {
        let options = WriterOptions::new().compression(compression);
        let first = directory.path().join("first.nut");
        build(&first, &options.clone().threads(1), &rows)?;
        check(&first, &rows)?;
        let expected = std::fs::read(&first)?;
        rows.reverse();
        for options in [options.clone().threads(3), options.memory(16 << 20).threads(2)] {
            let path = directory.path().join("other.nut");
            build(&path, &options, &rows)?;
            assert!(std::fs::read(&path)? == expected, "{options:?}");
        }
        let stats = Snapshot::open(&first)?.stats();
        assert_eq!(stats.shared_entries, 15_000 - 15, "{stats:?}");
    }
    Ok(())
}

#[test]
fn spilled_rows_give_the_same_bytes() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let owned = mixed(400_000);
    let rows: Vec<_> = owned.iter().map(|(k, v)| (k.clone(), Value::String(v))).collect();
    let in_memory = directory.path().join("memory.nut");
    build(&in_memory, &WriterOptions::new(), &rows)?;
    let spilled = directory.path().join("spilled.nut");
    build(&spilled, &WriterOptions::new().memory(16 << 20), &rows)?;
    check(&spilled, &rows)?;
    assert!(std::fs::read(&in_memory)? == std::fs::read(&spilled)?);
    Ok(())
}

#[test]
fn duplicates_are_rejected_or_resolved() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("duplicates.nut");
    let rows: Vec<_> = [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("a", 5)]
        .map(|(key, value)| (key.as_bytes().to_vec(), Value::I64(value)))
        .into();
    let Err(error) = build(&path, &WriterOptions::new(), &rows) else { panic!("an error") };
    assert_eq!(error.to_string(), "duplicate key \"a\": rows 0 and 2");
    assert!(!path.exists());
    for (policy, expected) in [(OnDuplicate::First, 1), (OnDuplicate::Last, 5)] {
        build(&path, &WriterOptions::new().on_duplicate(policy), &rows)?;
        assert_eq!(Snapshot::open(&path)?.get_i64(b"a")?, Some(expected));
    }
    Ok(())
}

#[test]
fn batches_from_other_threads_count_in_the_order_they_are_given() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("batches.nut");
    let mut writer = WriterOptions::new().on_duplicate(OnDuplicate::Last).create(&path)?;
    let filled: Vec<Batch> = std::thread::scope(|scope| {
        let fill = |(number, mut batch): (i64, Batch)| {
            move || {
                batch.push(b"same", Value::I64(number)).expect("a short row");
                batch
            }
        };
        let threads: Vec<_> =
            (0..4).map(|number| scope.spawn(fill((number, writer.batch())))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for batch in filled {
        writer.append(batch)?;
    }
    writer.finish()?;
    assert_eq!(Snapshot::open(&path)?.get_i64(b"same")?, Some(3));
    Ok(())
}

#[test]
fn large_values_wait_outside_memory_and_are_shared() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("large.nut");
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| (i / 7) as u8).collect();
    let other: Vec<i64> = (0..200_000).collect();
    let rows = vec![
        (b"one".to_vec(), Value::Bytes(&large)),
        (b"two".to_vec(), Value::Bytes(&large)),
        (b"three".to_vec(), Value::I64List(&other)),
        (b"four".to_vec(), Value::Bool(true)),
    ];
    for compression in [Compression::None, Compression::Zstd { level: 3 }] {
        build(&path, &WriterOptions::new().compression(compression), &rows)?;
        check(&path, &rows)?;
        let stats = Snapshot::open(&path)?.stats();
        assert_eq!(stats.shared_entries, 1);
        assert!(stats.file_len < 4_700_000, "{}", stats.file_len);
    }
    Ok(())
}

#[test]
fn nothing_appears_before_finish_and_nothing_is_left_after_a_drop() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("dropped.nut");
    let mut writer = WriterOptions::new().create(&path)?;
    writer.insert(b"key", Value::Bool(true))?;
    assert!(!path.exists());
    drop(writer);
    assert_eq!(std::fs::read_dir(directory.path())?.count(), 0);
    Ok(())
}

#[test]
fn bytes_in_memory_are_read_as_the_file_is() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bytes.nut");
    let owned = mixed(20_000);
    let mut rows: Vec<_> = owned.iter().map(|(k, v)| (k.clone(), Value::String(v))).collect();
    rows.push((b"floats".to_vec(), Value::F64List(&[0.5; 100])));
    build(&path, &WriterOptions::new(), &rows)?;
    // At an address that is not aligned for numbers.
    let bytes = [&[0], &std::fs::read(&path)?[..]].concat();
    let snapshot = Snapshot::from_bytes(&bytes[1..])?;
    drop(bytes);
    snapshot.verify()?;
    for (key, value) in &rows {
        assert_eq!(snapshot.get(key)?, Some((*value).into()));
    }
    assert_eq!(snapshot.get_f64_list(b"floats")?.as_deref(), Some(&[0.5; 100][..]));
    assert_eq!(snapshot.path(), Path::new("(memory)"));
    Ok(())
}

/// Regression: an empty file cannot be mapped, and was read as one zero byte.
#[test]
fn an_empty_file_is_no_snapshot() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("empty.nut");
    std::fs::write(&path, "")?;
    for opened in [Snapshot::open(&path), Snapshot::from_bytes(&[])] {
        let Err(Error::NotASnapshot(damage)) = opened else { panic!("an error") };
        assert_eq!((damage.offset, &damage.found[..]), (0, "\"\""));
    }
    Ok(())
}

#[test]
fn every_lookup_of_a_damaged_value_is_an_error() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("damaged.nut");
    let rows = [(b"a key".to_vec(), Value::String("unmistakable"))];
    build(&path, &WriterOptions::new(), &rows)?;
    let mut bytes = std::fs::read(&path)?;
    let at = bytes.windows(12).position(|part| part == b"unmistakable").ok_or("the value")?;
    bytes[at] = 0xff;
    let snapshot = Snapshot::from_bytes(&bytes)?;
    let stored = snapshot.find(b"a key")?.ok_or("the key")?;
    let errors = [
        snapshot.get(b"a key").err(),
        snapshot.get_many(&[b"a key"], &mut [None]).err(),
        snapshot.get_string(b"a key").err(),
        stored.value().err(),
        stored.in_place().err(),
    ];
    for error in errors {
        let error = error.ok_or("an error")?.to_string();
        let place = format!("at byte {at}: expected a string in UTF-8");
        assert!(error.contains(&place), "{error}");
    }
    Ok(())
}
