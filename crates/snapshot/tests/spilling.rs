//! Tests of spilling: rows beyond the memory budget are spilled, and the file is the same.
#![cfg(feature = "zstd")]

use nuthatch_snapshot::{
    Compression, Duplicate, Error, OnDuplicate, Scratch, Snapshot, Value, WriterOptions,
};
use std::path::Path;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Number of rows of a hundred bytes that are spilled several times with the minimum memory.
const ROWS: u64 = 200_000;

/// Returns options with which rows stay in memory, and options with which they are spilled.
fn in_memory_and_spilled() -> impl Iterator<Item = WriterOptions> {
    let both = [WriterOptions::new(), WriterOptions::new().memory(16 << 20)];
    both.into_iter().flat_map(|options| [1, 2, 3, 4].map(|n| options.clone().threads(n)))
}

/// Builds `count` rows with the keys of `key_of` and their numbers as values.
fn build(
    path: &Path,
    options: &WriterOptions,
    key_of: impl Fn(u64) -> u64,
) -> nuthatch_snapshot::Result<()> {
    let mut writer = options.create(path)?;
    for row in 0..ROWS {
        let value = format!("{row:0100}");
        writer.insert(&key_of(row).to_le_bytes(), Value::String(&value))?;
    }
    writer.finish()?;
    Ok(())
}

#[test]
fn the_first_or_the_last_row_of_a_key_counts() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("duplicates.nut");
    // Each key occurs three or four times, far apart.
    let keys = 60_013;
    for policy in [OnDuplicate::First, OnDuplicate::Last] {
        for options in in_memory_and_spilled() {
            build(&path, &options.on_duplicate(policy), |row| row % keys)?;
            let snapshot = Snapshot::open(&path)?;
            assert_eq!(snapshot.len(), keys);
            for key in 0..keys {
                let last = ROWS - 1 - (ROWS - 1 - key) % keys;
                let row = if policy == OnDuplicate::First { key } else { last };
                let found = snapshot.get_string(&key.to_le_bytes())?.ok_or("a key")?;
                assert_eq!(found.parse::<u64>()?, row, "key {key}, {policy:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_earliest_duplicate_is_the_one_reported() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("refused.nut");
    // Two neighbouring rows have the same key.
    let pairs = [(10, 150_000), (100_000, 140_001), (99, ROWS - 1), (10, 150_001)];
    let key_of = |row| pairs.iter().find(|pair| pair.1 == row).map_or(row, |pair| pair.0);
    for options in in_memory_and_spilled() {
        let Err(Error::Duplicate(found)) = build(&path, &options, key_of) else {
            panic!("a duplicate")
        };
        let key = 100_000_u64.to_le_bytes().to_vec();
        assert_eq!(*found, Duplicate { key, first: 100_000, second: 140_001 });
        assert_eq!(std::fs::read_dir(directory.path())?.count(), 0, "nothing is left");
    }
    Ok(())
}

#[test]
fn the_error_of_a_duplicate_contains_the_inputs_of_both_rows() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("origins.nut");
    for options in in_memory_and_spilled() {
        let mut writer = options.create(&path)?;
        for file in 0..200 {
            let mut batch = writer.batch();
            for line in 0..ROWS / 200 {
                let key = if (file, line) == (150, 7) { 5003 } else { file * 1000 + line };
                let value = format!("{key:0100}");
                batch.push_with_position(
                    file << 32 | line,
                    &key.to_le_bytes(),
                    Value::String(&value),
                )?;
            }
            writer.append(batch)?;
        }
        let Err(Error::Duplicate(found)) = writer.finish() else { panic!("a duplicate") };
        assert_eq!((found.first, found.second), (5 << 32 | 3, 150 << 32 | 7));
    }
    Ok(())
}

/// Returns values with lengths around those of blobs. Some are repeated, some compressible.
fn long_values() -> Vec<Vec<u8>> {
    let lens = [4095, 4096, 4097, 100_000, (1 << 17) + 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1];
    let noise = |i: usize, n: usize| (i.wrapping_mul(0x9e37_79b9) >> (n % 20)) as u8;
    (0..1500)
        .map(|n| {
            let (number, len) = (n % 1000, 4000 + n % 1000);
            let len = if n % 100 == 0 { lens[n / 100 % lens.len()] } else { len };
            let flat = number % 3 == 0;
            (0..len).map(|i| if flat { number as u8 } else { noise(i, number) }).collect()
        })
        .collect()
}

#[test]
fn values_set_aside_give_the_same_bytes() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let values = long_values();
    for compression in [Compression::None, Compression::Zstd { level: 1 }] {
        let mut expected = None;
        for options in in_memory_and_spilled() {
            let path = directory.path().join("long.nut");
            let mut writer = options.clone().compression(compression).create(&path)?;
            for (number, value) in values.iter().enumerate() {
                writer.insert(format!("key {number}").as_bytes(), Value::Bytes(value))?;
            }
            writer.finish()?;
            let bytes = std::fs::read(&path)?;
            let expected = expected.get_or_insert_with(|| bytes.clone());
            assert!(*expected == bytes, "{options:?}");
        }
        let snapshot = Snapshot::open(directory.path().join("long.nut"))?;
        snapshot.verify()?;
        let mut scratch = Scratch::new();
        for (number, value) in values.iter().enumerate() {
            let found = snapshot.find(format!("key {number}").as_bytes())?.ok_or("a key")?;
            assert!(found.decompress(&mut scratch)? == Value::Bytes(value), "key {number}");
        }
        assert!(snapshot.stats().shared_entries > 0);
    }
    Ok(())
}
