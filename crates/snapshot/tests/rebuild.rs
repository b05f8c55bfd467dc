//! The parameters of a build are found in its file, and a build with them has the same bytes.

use nuthatch_snapshot::{
    BuildParameters, Compression, Difference, OnDuplicate, Scratch, Snapshot, Value, WriterOptions,
};
use std::fs;
use std::path::Path;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Builds a file with values of several types, some of them compressible, some shared.
fn build(options: &WriterOptions, path: &Path) -> AnyResult {
    let mut writer = options.create(path)?;
    for number in 0..3_000_i64 {
        let key = format!("key {number}");
        let text = format!("{{\"id\":{number},\"text\":\"one of the texts, by {}\"}}", number % 29);
        let list = [number, number * number, 7];
        let value = match number % 5 {
            0 => Value::I64(number),
            1 => Value::I64List(&list),
            2 => Value::String("a text that several entries have, stored once"),
            _ => Value::String(&text),
        };
        writer.insert(key.as_bytes(), value)?;
    }
    writer.set_metadata("source", b"a test")?;
    writer.finish()?;
    Ok(())
}

/// Builds a file from the entries and the metadata of another one.
fn build_again(from: &Path, to: &Path) -> AnyResult<BuildParameters> {
    let snapshot = Snapshot::open(from)?;
    let parameters = BuildParameters::of(&snapshot)?.ok_or("parameters")?;
    let mut writer = parameters.options().on_duplicate(OnDuplicate::First).create(to)?;
    let metadata = snapshot.metadata()?;
    metadata.iter().try_for_each(|(name, value)| writer.set_metadata(name, value))?;
    let mut scratch = Scratch::new();
    for _ in 0..2 {
        for entry in &snapshot {
            let entry = entry?;
            writer.insert(entry.key, entry.value.decompress(&mut scratch)?)?;
        }
    }
    writer.finish()?;
    Ok(parameters)
}

/// Returns options of all compression levels.
fn compressed() -> Vec<WriterOptions> {
    #[cfg(feature = "zstd")]
    let levels = 1..=22;
    #[cfg(feature = "zstd")]
    return levels
        .map(|level| WriterOptions::new().compression(Compression::Zstd { level }))
        .collect();
    #[cfg(not(feature = "zstd"))]
    Vec::new()
}

#[test]
fn a_build_with_the_parameters_of_a_file_has_its_bytes() -> AnyResult {
    let folder = tempfile::tempdir()?;
    let (path, again) = (folder.path().join("a.nut"), folder.path().join("b.nut"));
    let uncompressed = [WriterOptions::new(), WriterOptions::new().seed(99)];
    for options in uncompressed.into_iter().chain(compressed()) {
        build(&options, &path)?;
        let parameters = build_again(&path, &again)?;
        assert!(fs::read(&path)? == fs::read(&again)?, "{options:?} and {parameters:?}");
    }
    Ok(())
}

#[test]
fn a_shard_is_built_again_by_itself() -> AnyResult {
    let folder = tempfile::tempdir()?;
    let (path, again) = (folder.path().join("a.nut"), folder.path().join("again"));
    build(&WriterOptions::new().shards(3), &path)?;
    let set = Snapshot::open(&path)?;
    assert_eq!(BuildParameters::of(&set)?, None, "a set is several files");
    for (number, shard) in (0..).zip(set.shard_paths()) {
        let parameters = build_again(shard, &again)?;
        assert_eq!(parameters.shard, Some((number, 3)));
        assert!(fs::read(shard)? == fs::read(&again)?, "shard {number}");
    }
    Ok(())
}

/// Followers build files from deltas if the revision of their writer is that of the publisher.
#[test]
fn the_bytes_are_those_of_revision_1() -> AnyResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.nut");
    build(&WriterOptions::new(), &path)?;
    let parameters = BuildParameters::of(&Snapshot::open(&path)?)?.ok_or("parameters")?;
    assert_eq!(parameters.compression, Compression::None);
    let checksum = xxhash_rust::xxh3::xxh3_64(&fs::read(&path)?);
    assert_eq!(
        (parameters.revision() >> 32, checksum),
        (1, 17_943_001_317_884_843_089),
        "the bytes have changed: raise LAYOUT_REVISION, then change both numbers here"
    );
    Ok(())
}

#[test]
fn differences_are_removed_changed_and_added_entries() -> AnyResult {
    let folder = tempfile::tempdir()?;
    let files = [
        ("old", [("same", Value::I64(1)), ("other", Value::I64(2)), ("type", Value::I64(3))]),
        ("new", [("same", Value::I64(1)), ("type", Value::F64(3.0)), ("added", Value::I64(4))]),
    ];
    let snapshots = files.map(|(name, rows)| -> AnyResult<Snapshot> {
        let path = folder.path().join(name);
        let mut writer = WriterOptions::new().create(&path)?;
        rows.iter().try_for_each(|(key, value)| writer.insert(key.as_bytes(), *value))?;
        writer.finish()?;
        Ok(Snapshot::open(path)?)
    });
    let [old, new] = snapshots;
    let (old, new) = (old?, new?);
    let mut found = Vec::new();
    for difference in old.differences(&new) {
        found.push(match difference? {
            Difference::Removed(entry) => ("removed", entry.key),
            Difference::Changed { old, .. } => ("changed", old.key),
            Difference::Added(entry) => ("added", entry.key),
        });
    }
    found.sort_unstable();
    let expected: [(&str, &[u8]); 3] =
        [("added", b"added"), ("changed", b"type"), ("removed", b"other")];
    assert_eq!(found, expected);
    assert_eq!(old.differences(&old).count(), 0);
    Ok(())
}
