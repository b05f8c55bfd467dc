//! Shards that several writers build, and the set that is made of them.

use nuthatch_snapshot::{Snapshot, Value, WriterOptions, layout};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64_with_seed;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const ROWS: i64 = 3000;

fn key(row: i64) -> Vec<u8> {
    format!("key {row}").into_bytes()
}

fn build(options: &WriterOptions, path: &Path, rows: i64) -> AnyResult {
    let mut writer = options.create(path)?;
    (0..rows).try_for_each(|row| writer.insert(&key(row), Value::I64(row)))?;
    writer.finish()?;
    Ok(())
}

/// Returns the names of all files in a folder.
fn names(folder: &Path) -> AnyResult<BTreeSet<String>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    entries.map(|name| name.map(|name| name.to_string_lossy().into_owned())).collect()
}

/// Returns the number of the shard of a key, as the page of the format specifies it.
fn shard_of(key: &[u8], seed: u64, shards: u64) -> u64 {
    let bits = (xxh3_64_with_seed(key, seed) >> layout::line::SHARD_BIT) & 0xffff;
    (bits * shards) >> 16
}

/// Builds the shards of a set of 8 with several writers, each with the rows of some shards.
fn build_separately(options: &WriterOptions, folder: &Path) -> AnyResult<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for part in 0..3 {
        let mut writer = options.create(folder.join(format!("part-{part}")))?;
        for row in 0..ROWS {
            if shard_of(&key(row), 5, 8) % 3 == part {
                writer.insert(&key(row), Value::I64(row * row))?;
            }
        }
        paths.extend(writer.finish_shards()?.into_iter().map(|shard| shard.path));
    }
    Ok(paths)
}

#[test]
fn shards_that_are_built_separately_make_the_same_set() -> AnyResult {
    let (together, apart) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let options = WriterOptions::new().shards(8).seed(5).threads(2);
    let mut writer = options.create(together.path().join("set.nut"))?;
    (0..ROWS).try_for_each(|row| writer.insert(&key(row), Value::I64(row * row)))?;
    writer.set_metadata("a", b"b")?;
    let expected = writer.finish()?;
    let paths = build_separately(&options, apart.path())?;
    assert_eq!(paths.len(), 8);
    assert_eq!(names(apart.path())?.len(), 8);
    let path = apart.path().join("set.nut");
    let joined = options.join_shards(&path, &paths, &[("a", b"b")])?;
    assert_eq!(joined, expected);
    assert_eq!(names(apart.path())?, names(together.path())?);
    for name in names(apart.path())? {
        assert_eq!(fs::read(apart.path().join(&name))?, fs::read(together.path().join(&name))?);
    }
    Snapshot::open(&path)?.verify()?;
    Ok(())
}

#[test]
fn shards_without_rows_are_written_when_a_set_is_joined() -> AnyResult {
    let (together, apart) = (tempfile::tempdir()?, tempfile::tempdir()?);
    for rows in [0, 2] {
        let options = WriterOptions::new().shards(5);
        build(&options, &together.path().join("set.nut"), rows)?;
        let mut writer = options.create(apart.path().join("part"))?;
        (0..rows).try_for_each(|row| writer.insert(&key(row), Value::I64(row)))?;
        let built = writer.finish_shards()?;
        assert!(built.iter().all(|shard| shard.entries > 0));
        let paths: Vec<_> = built.into_iter().map(|shard| shard.path).collect();
        options.join_shards(apart.path().join("set.nut"), &paths, &[])?;
        assert_eq!(names(apart.path())?, names(together.path())?);
    }
    Ok(())
}

/// Shards that a job had built two days ago were removed before its repetition had joined them.
#[test]
fn shards_that_are_built_again_are_not_old() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let options = WriterOptions::new().shards(8).seed(5);
    let paths = build_separately(&options, directory.path())?;
    let made = |path: &PathBuf| fs::metadata(path)?.modified();
    for path in &paths {
        let old = made(path)? - Duration::from_hours(48);
        fs::File::open(path)?.set_modified(old)?;
    }
    assert_eq!(build_separately(&options, directory.path())?, paths);
    build(&WriterOptions::new().shards(2), &directory.path().join("other.nut"), 9)?;
    options.join_shards(directory.path().join("set.nut"), &paths, &[])?;
    Ok(())
}

#[test]
fn only_shards_of_the_same_set_are_joined() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let folder = directory.path();
    let options = WriterOptions::new().shards(2);
    let built = |options: &WriterOptions, value: i64| -> AnyResult<Vec<PathBuf>> {
        let mut writer = options.create(folder.join("part"))?;
        (0..ROWS).try_for_each(|row| writer.insert(&key(row), Value::I64(row + value)))?;
        Ok(writer.finish_shards()?.into_iter().map(|shard| shard.path).collect())
    };
    let (good, other) = (built(&options, 0)?, built(&options, 1)?);
    let more = built(&WriterOptions::new().shards(3), 0)?;
    let seed = built(&WriterOptions::new().shards(2).seed(1), 0)?;
    build(&WriterOptions::new(), &folder.join("file.nut"), 9)?;
    let (file, renamed) = (folder.join("file.nut"), folder.join("renamed.shard"));
    fs::copy(&good[1], &renamed)?;
    let before = names(folder)?;
    for (second, expected) in [
        (&other[0], "one file of shard 0, found a second one"),
        (&more[1], "expected a shard of 2, found shard 1 of 3"),
        (&seed[1], "expected seed 0, found 1"),
        (&file, "expected a shard of 2, found a file that is not a shard"),
        (&renamed, "beside the manifest"),
        (&folder.join("missing"), "missing"),
    ] {
        let paths = [good[0].clone(), second.clone()];
        let error = options.join_shards(folder.join("set.nut"), &paths, &[]);
        let error = error.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(names(folder)?, before, "{expected}");
    }
    let writer = WriterOptions::new().create(folder.join("other.nut"))?;
    assert!(writer.finish_shards().is_err());
    Ok(())
}
