//! Tests of collisions of value hashes, which need access to private options.

use super::share::HashBits;
use super::{Compression, WriterOptions};
use crate::error::Result;
use crate::reader::{Scratch, Snapshot};
use crate::values::Value;

type AnyResult = std::result::Result<(), Box<dyn std::error::Error>>;

/// Returns rows with values of 40 to 400 bytes, each for three keys. Some values are compressible.
fn long_values(count: usize) -> Vec<(String, Vec<u8>)> {
    let noise = |number: usize, i: usize| (number * 31 + i * i * 7919) as u8;
    (0..count)
        .map(|i| {
            let number = i % (count / 3);
            let len = 40 + number % 10 * 40;
            let flat = number.is_multiple_of(2);
            let value = (0..len).map(|i| if flat { number as u8 } else { noise(number, i) });
            (format!("key {i}"), value.collect())
        })
        .collect()
}

/// Builds a file and checks every row. Returns the bytes of the file.
fn build(options: &WriterOptions, rows: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("collide.nut");
    let mut writer = options.create(&path)?;
    for (key, value) in rows {
        writer.insert(key.as_bytes(), Value::Bytes(value))?;
    }
    writer.finish()?;
    let snapshot = Snapshot::open(&path)?;
    let mut scratch = Scratch::new();
    for (key, value) in rows {
        let found = snapshot.find(key.as_bytes())?.expect("a key that was added");
        assert_eq!(found.decompress(&mut scratch)?, Value::Bytes(value), "{key}");
    }
    snapshot.verify()?;
    Ok(std::fs::read(&path).expect("the file that was built"))
}

/// Builds with value hashes of 0 and 8 bits, in memory and spilled.
fn build_with_colliding_values(compression: Compression) -> AnyResult {
    let rows = long_values(45_000);
    for bits in [0, 0xff] {
        let options = WriterOptions { value_hash_bits: HashBits(bits), ..WriterOptions::new() };
        let options = options.compression(compression);
        let expected = build(&options.clone().threads(1), &rows)?;
        for options in [options.clone().threads(3), options.threads(2).memory(16 << 20)] {
            assert!(build(&options, &rows)? == expected, "{bits:#x}, {options:?}");
        }
    }
    Ok(())
}

#[test]
fn values_with_equal_hashes_are_distinguished() -> AnyResult {
    build_with_colliding_values(Compression::None)
}

#[cfg(feature = "zstd")]
#[test]
fn compressed_values_with_equal_hashes_are_distinguished() -> AnyResult {
    build_with_colliding_values(Compression::Zstd { level: 1 })
}

/// Large values are kept in the blob file before they are written.
#[cfg(feature = "zstd")]
#[test]
fn large_values_with_equal_hashes_are_distinguished() -> AnyResult {
    let value = |i: usize| (0..1_100_000 + i % 2).map(move |at| (at >> 12) as u8 ^ (i / 2) as u8);
    let rows: Vec<_> = (0..12).map(|i| (format!("key {i}"), value(i % 8).collect())).collect();
    for compression in [Compression::None, Compression::Zstd { level: 1 }] {
        let options = WriterOptions { value_hash_bits: HashBits(0), ..WriterOptions::new() };
        let options = options.compression(compression);
        let expected = build(&options.clone().threads(1), &rows)?;
        assert!(build(&options.threads(3), &rows)? == expected);
    }
    Ok(())
}
