//! The bytes of a file depend on its entries and options only: not on threads, memory, the order of
//! rows, or the snapshot that the rows were read from.

use nuthatch_snapshot::{Snapshot, Value, WriterOptions};
#[cfg(feature = "zstd")]
use nuthatch_testing::random::Random;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const MIB: usize = 1 << 20;

/// Threads and memory budgets with which rows are spilled several times, once, and never.
const RESOURCES: [(usize, usize); 7] = [
    (1, 16 * MIB),
    (2, 16 * MIB),
    (4, 16 * MIB),
    (3, 24 * MIB),
    (2, 48 * MIB),
    (1, 1024 * MIB),
    (4, 1024 * MIB),
];

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Builds the rows and returns the bytes of the file.
fn build(options: &WriterOptions, rows: &Rows) -> AnyResult<Vec<u8>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("canonical.nut");
    let mut writer = options.create(&path)?;
    for (key, value) in rows {
        writer.insert(key, Value::Bytes(value))?;
    }
    writer.finish()?;
    Snapshot::open(&path)?.verify()?;
    Ok(std::fs::read(&path)?)
}

/// Builds with every pair of threads and memory, with the rows in order and shuffled, and from the
/// entries of the first file. Checks that all files are equal. Returns the number of shared
/// entries.
fn assert_one_file(options: &WriterOptions, rows: &Rows) -> AnyResult<u64> {
    let expected = build(options, rows)?;
    for (threads, memory) in RESOURCES {
        let options = options.clone().threads(threads).memory(memory);
        assert!(build(&options, rows)? == expected, "{threads} threads, {memory} bytes");
    }
    let little = options.clone().threads(2).memory(16 * MIB);
    let mut shuffled = rows.clone();
    shuffled.sort_by_key(|(key, _)| key.iter().rev().copied().collect::<Vec<_>>());
    assert!(build(&little, &shuffled)? == expected, "the rows in another order");
    let snapshot = Snapshot::from_bytes(&expected)?;
    let entries = entries_of(&snapshot)?;
    assert!(build(&little, &entries)? == expected, "the entries of the file");
    Ok(snapshot.stats().shared_entries)
}

fn entries_of(snapshot: &Snapshot) -> AnyResult<Rows> {
    let mut scratch = nuthatch_snapshot::Scratch::new();
    let mut rows = Vec::new();
    for entry in snapshot {
        let entry = entry?;
        let Value::Bytes(value) = entry.value.decompress(&mut scratch)? else {
            return Err("a value of another type".into());
        };
        rows.push((entry.key.to_vec(), value.to_vec()));
    }
    Ok(rows)
}

/// Returns a value of this many bytes that is different for each number.
fn value(number: usize, len: usize) -> Vec<u8> {
    let mut value = format!("{number:016x}").into_bytes();
    value.resize(len, b'.');
    value
}

fn rows(count: usize, value_of: impl Fn(usize) -> Vec<u8>) -> Rows {
    (0..count).map(|row| (format!("key {row}").into_bytes(), value_of(row))).collect()
}

#[test]
fn repeated_values_are_shared_alike_with_any_threads_and_memory() -> AnyResult {
    let rows = rows(280_000, |row| value(row % 140_000, 40));
    assert_eq!(assert_one_file(&WriterOptions::new(), &rows)?, 140_000);
    Ok(())
}

/// Returns text that is different for each value and long enough for all match finders of zstd.
#[cfg(feature = "zstd")]
fn text(number: usize, len: usize) -> Vec<u8> {
    let mut random = Random::new(number as u64);
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        let word = random.below(900);
        text.extend(format!("{:x} ", word * word).bytes());
    }
    text.truncate(len);
    text
}

#[cfg(feature = "zstd")]
#[test]
fn compressed_values_have_the_same_bytes_with_any_threads_and_memory() -> AnyResult {
    for level in [3, 7] {
        // Too few values for a dictionary.
        let rows = rows(50, |row| text(row % 40, 20_000 + row % 7 * 10_000));
        let compression = nuthatch_snapshot::Compression::Zstd { level };
        let options = WriterOptions::new().compression(compression);
        let expected = build(&options.clone().threads(1), &rows)?;
        let mut shuffled = rows.clone();
        shuffled.reverse();
        assert!(build(&options.clone().threads(1), &shuffled)? == expected, "level {level}");
        assert!(build(&options.clone().threads(4), &rows)? == expected, "level {level}, 4 threads");
        let little = options.threads(2).memory(16 * MIB);
        assert!(build(&little, &rows)? == expected, "level {level}, little memory");
    }
    Ok(())
}
