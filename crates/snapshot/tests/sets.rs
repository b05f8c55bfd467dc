//! Sets of shards: they give the results of one file, keep shards that did not change, and are
//! replaced while they are opened and read.

use nuthatch_snapshot::{
    Error, Generations, OnDuplicate, Snapshot, Value, WatchOptions, WriterOptions, layout,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

type AnyResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const ROWS: i64 = 3000;

fn key(row: i64) -> Vec<u8> {
    format!("key {row}").into_bytes()
}

/// Builds a set of keys with numbers, by rows or by batches.
fn build(path: &Path, shards: u32, rows: impl Iterator<Item = (i64, i64)>) -> AnyResult {
    build_with(&WriterOptions::new().shards(shards).threads(2), path, rows)
}

fn build_with(
    options: &WriterOptions,
    path: &Path,
    rows: impl Iterator<Item = (i64, i64)>,
) -> AnyResult {
    let mut writer = options.create(path)?;
    for (row, value) in rows {
        writer.insert(&key(row), Value::I64(value))?;
    }
    writer.finish()?;
    Ok(())
}

/// Returns the names of all files in a folder.
fn names(folder: &Path) -> AnyResult<BTreeSet<String>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    entries.map(|name| name.map(|name| name.to_string_lossy().into_owned())).collect()
}

#[test]
fn every_read_of_a_set_gives_what_one_file_gives() -> AnyResult {
    let directory = tempfile::tempdir()?;
    for shards in [0, 1, 2, 7, 64] {
        let path = directory.path().join("set.nut");
        build(&path, shards, (0..ROWS).map(|row| (row, row * row)))?;
        let set = Snapshot::open(&path)?;
        set.verify()?;
        assert_eq!((set.len(), set.stats().shards, set.path()), (3000, shards, &*path));
        assert_eq!(set.stats().entries, 3000);
        let keys: Vec<_> = (-50..ROWS).map(key).collect();
        let mut found = vec![None; keys.len()];
        set.find_many(&keys, &mut found)?;
        for ((key, row), found) in keys.iter().zip(-50..).zip(found) {
            let expected = (row >= 0).then_some(row * row);
            assert_eq!(set.get_i64(key)?, expected, "{shards} shards, row {row}");
            assert_eq!(set.contains(key)?, expected.is_some());
            let found = found.map(|found| found.value().expect("a value"));
            assert_eq!(found.is_some(), expected.is_some());
            assert!(found.is_none_or(|found| Some(found) == set.get(key).expect("a value")));
        }
        for entries in [
            set.iter().collect::<Result<Vec<_>, _>>()?,
            set.iter_verified()?.collect::<Result<Vec<_>, _>>()?,
        ] {
            let found: BTreeSet<_> = entries.iter().map(|entry| entry.key.to_vec()).collect();
            assert_eq!((entries.len(), found.len()), (3000, 3000), "each key once");
        }
    }
    Ok(())
}

#[test]
fn a_build_and_the_statistics_count_the_same_bytes() -> AnyResult {
    let directory = tempfile::tempdir()?;
    for shards in [0, 3] {
        let path = directory.path().join(format!("{shards}.nut"));
        let mut writer = WriterOptions::new().shards(shards).create(&path)?;
        writer.insert(b"key", Value::Bool(true))?;
        let summary = writer.finish()?;
        let stats = Snapshot::open(&path)?.stats();
        assert_eq!(summary.file_len, stats.file_len, "{shards} shards");
        assert_eq!(summary.stored_value_bytes, stats.stored_value_bytes, "{shards} shards");
    }
    Ok(())
}

#[test]
fn the_bytes_of_a_set_depend_on_its_entries_and_options_only() -> AnyResult {
    let built = |threads, memory, reversed: bool| -> AnyResult<Vec<(String, Vec<u8>)>> {
        let directory = tempfile::tempdir()?;
        let options = WriterOptions::new().shards(5).threads(threads).memory(memory);
        let mut writer = options.create(directory.path().join("set.nut"))?;
        let mut rows: Vec<_> = (0..100_000).map(|row| (key(row), row / 7)).collect();
        if reversed {
            rows.reverse();
        }
        let (single, batched) = rows.split_at(20_000);
        for (key, value) in single {
            writer.insert(key, Value::I64List(&[*value; 9]))?;
        }
        for rows in batched.chunks(9000) {
            let mut batch = writer.batch();
            for (key, value) in rows {
                batch.push(key, Value::I64List(&[*value; 9]))?;
            }
            assert_eq!(batch.len(), rows.len());
            writer.append(batch)?;
        }
        assert_eq!(writer.finish()?.entries, 100_000);
        let names = names(directory.path())?.into_iter();
        let bytes = |name: &String| fs::read(directory.path().join(name));
        names.map(|name| Ok((name.clone(), bytes(&name)?))).collect()
    };
    let expected = built(2, 1 << 30, false)?;
    assert_eq!(expected.len(), 6, "five shards and the manifest");
    for (threads, memory, reversed) in [(1, 16 << 20, false), (3, 16 << 20, true)] {
        let found = built(threads, memory, reversed)?;
        assert!(found == expected, "{threads} threads, {memory} bytes");
    }
    Ok(())
}

#[test]
fn shards_that_did_not_change_keep_their_files_and_replaced_ones_are_removed() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    build(&path, 8, (0..ROWS).map(|row| (row, 1)))?;
    let before = names(directory.path())?;
    let open = Snapshot::open(&path)?;
    build(&path, 8, (0..ROWS).map(|row| (row, if row == 17 { 2 } else { 1 })))?;
    let after = names(directory.path())?;
    assert_eq!((before.len(), after.len()), (9, 9));
    assert_eq!(before.difference(&after).count(), 1, "one shard has changed");
    assert_eq!(open.get_i64(&key(17))?, Some(1), "a set that is open stays as it was");
    assert_eq!(Snapshot::open(&path)?.get_i64(&key(17))?, Some(2));
    // Another manifest refers to the same shards.
    fs::copy(&path, directory.path().join("other.nut"))?;
    build(&path, 8, (0..ROWS).map(|row| (row, 3)))?;
    assert_eq!(names(directory.path())?.len(), 18, "8 shards of each, and the manifests");
    let other = Snapshot::open(directory.path().join("other.nut"))?;
    other.verify()?;
    assert_eq!(other.get_i64(&key(17))?, Some(2));
    // A file replaces the set.
    build(&path, 0, (0..ROWS).map(|row| (row, 4)))?;
    assert_eq!(Snapshot::open(&path)?.stats().shards, 0);
    assert_eq!(names(directory.path())?.len(), 10, "the file, the manifest `other.nut`, 8 shards");
    other.verify()?;
    Ok(())
}

/// The only copy of a shard must not be lost because its manifest could not be read.
#[test]
fn shards_stay_if_a_file_in_the_folder_may_be_a_manifest_that_refers_to_them() -> AnyResult {
    for problem in ["damaged", "newer version", "not permitted"] {
        let directory = tempfile::tempdir()?;
        let [path, other] = ["set.nut", "other.nut"].map(|name| directory.path().join(name));
        build(&path, 4, (0..ROWS).map(|row| (row, 1)))?;
        fs::copy(&path, &other)?;
        let good = fs::read(&other)?;
        match problem {
            "damaged" => fs::write(&other, &good[..good.len() - 1])?,
            "newer version" => {
                fs::OpenOptions::new().write(true).open(&other)?.write_all_at(&[2], 8)?;
            }
            _ => fs::set_permissions(&other, fs::Permissions::from_mode(0o000))?,
        }
        build(&path, 4, (0..ROWS).map(|row| (row, 2)))?;
        fs::set_permissions(&other, fs::Permissions::from_mode(0o600))?;
        fs::write(&other, good)?;
        Snapshot::open(&other)
            .and_then(|other| other.verify())
            .map_err(|error| format!("{problem}: {error}"))?;
    }
    Ok(())
}

#[test]
fn a_named_pipe_in_the_folder_of_a_set_does_not_block_a_build() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    build(&path, 2, (0..ROWS).map(|row| (row, 1)))?;
    let made = Command::new("mkfifo").arg(directory.path().join("pipe")).status()?;
    assert!(made.success());
    build(&path, 2, (0..ROWS).map(|row| (row, 2)))?;
    assert_eq!(names(directory.path())?.len(), 4, "the manifest, two shards and the pipe");
    Ok(())
}

#[test]
fn a_build_replaces_a_shard_that_is_damaged() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    let rows = || (0..ROWS).map(|row| (row, 1));
    build(&path, 4, rows())?;
    let shard = shard(directory.path(), 2)?;
    let mut bytes = fs::read(&shard)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&shard, &bytes)?;
    assert_eq!(Snapshot::open(&path)?.verify().map_err(|error| error.code()), Err("corrupt"));
    build(&path, 4, rows())?;
    Snapshot::open(&path)?.verify()?;
    Ok(())
}

#[test]
fn a_set_that_is_replaced_again_and_again_opens_every_time() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    build(&path, 4, (0..100).map(|row| (row, 0)))?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| -> AnyResult {
        let builder = scope.spawn(|| {
            for generation in 1..60 {
                let rows = (0..100).map(|row| (row, generation));
                // Sometimes a file replaces the set.
                let shards = if generation % 3 == 0 { 0 } else { 4 };
                build(&path, shards, rows).map_err(|error| error.to_string())?;
            }
            done.store(true, Ordering::Release);
            Ok::<_, String>(())
        });
        while !done.load(Ordering::Acquire) && !builder.is_finished() {
            let set = Snapshot::open(&path)?;
            let first = set.get_i64(&key(0))?;
            for row in 0..100 {
                assert_eq!(set.get_i64(&key(row))?, first, "a mix of generations");
            }
        }
        Ok(builder.join().expect("no panic")?)
    })
}

#[test]
fn a_watch_switches_to_a_new_set_as_a_whole() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    build(&path, 3, (0..100).map(|row| (row, 1)))?;
    let watch = WatchOptions::new().interval(Duration::ZERO).verify(true).path(&path)?;
    let mut reader = watch.reader();
    build(&path, 5, (0..100).map(|row| (row, 2)))?;
    assert!((0..100).all(|row| matches!(reader.current().get_i64(&key(row)), Ok(Some(1)))));
    assert!(watch.refresh());
    assert!((0..100).all(|row| matches!(reader.current().get_i64(&key(row)), Ok(Some(2)))));
    assert_eq!(reader.current().stats().shards, 5);
    Ok(())
}

/// Switches a link to another target by the rename of a new link over it.
fn switch(link: &Path, target: &str) -> AnyResult {
    let new = link.with_extension("new");
    symlink(target, &new)?;
    Ok(fs::rename(new, link)?)
}

#[test]
fn a_link_in_another_folder_opens_the_set_of_its_manifest() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("releases/42"))?;
    fs::create_dir(at("live"))?;
    let link = at("live/current.nut");
    symlink("../releases/42/a.nut", &link)?;
    build(&link, 2, (0..100).map(|row| (row, row)))?;
    assert_eq!(names(&at("releases/42"))?.len(), 3, "the build follows the link");
    symlink("live/current.nut", at("link-to-link.nut"))?;
    symlink("releases/42", at("current"))?;
    symlink("a.nut", at("releases/42/same-folder.nut"))?;
    for name in [
        "live/current.nut",
        "link-to-link.nut",
        "current/a.nut",
        "current/same-folder.nut",
        "current/../42/a.nut",
    ] {
        let set = Snapshot::open(at(name)).map_err(|error| format!("{name}: {error}"))?;
        set.verify()?;
        assert_eq!((set.path(), set.get_i64(&key(17))?), (&*at(name), Some(17)));
    }
    // Errors of the manifest name the link, those of a shard name the shard.
    let real_folder = fs::canonicalize(at("releases/42"))?;
    let missing = shard(&real_folder, 1)?;
    fs::remove_file(&missing)?;
    let error = Snapshot::open(&link).err().ok_or("an error")?.to_string();
    assert!(error.starts_with(&format!("{}: open: ", missing.display())), "{error}");
    let manifest = at("releases/42/a.nut");
    let bytes = fs::read(&manifest)?;
    fs::write(&manifest, &bytes[..bytes.len() - 1])?;
    let error = Snapshot::open(&link).err().ok_or("an error")?;
    assert_eq!(error.code(), "corrupt");
    assert!(error.to_string().contains(&format!("{}: at byte", link.display())), "{error}");
    Ok(())
}

#[test]
fn a_watch_switches_when_a_link_is_switched_to_another_set() -> AnyResult {
    let directory = tempfile::tempdir()?;
    for (release, shards) in [(1, 3), (2, 5)] {
        let folder = directory.path().join(release.to_string());
        fs::create_dir(&folder)?;
        build(&folder.join("set.nut"), shards, (0..100).map(|row| (row, release)))?;
    }
    let link = directory.path().join("current.nut");
    symlink("1/set.nut", &link)?;
    let watch = WatchOptions::new().interval(Duration::ZERO).verify(true).path(&link)?;
    let mut reader = watch.reader();
    for (release, shards) in [(2, 5), (1, 3), (2, 5)] {
        assert!(!watch.refresh(), "nothing is new");
        switch(&link, &format!("{release}/set.nut"))?;
        assert!(watch.refresh(), "release {release}");
        let set = reader.current();
        assert_eq!((set.stats().shards, set.path()), (shards, &*link));
        assert!((0..100).all(|row| matches!(set.get_i64(&key(row)), Ok(Some(n)) if n == release)));
    }
    assert_eq!(watch.status().error, None);
    Ok(())
}

/// Each manifest is the same in two releases, and the shards of the older release are removed.
#[test]
fn a_link_that_is_switched_again_and_again_opens_every_time() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let link = directory.path().join("current.nut");
    let publish = |release: i64| -> AnyResult {
        let folder = directory.path().join(release.to_string());
        fs::create_dir(&folder)?;
        build(&folder.join("set.nut"), 4, (0..100).map(|row| (row, release / 2)))?;
        switch(&link, &format!("{release}/set.nut"))?;
        if release > 0 {
            let before = directory.path().join((release - 1).to_string());
            for number in 0..4 {
                fs::remove_file(shard(&before, number)?)?;
            }
        }
        Ok(())
    };
    publish(0)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| -> AnyResult {
        let publisher = scope.spawn(|| {
            let published = (1..40).try_for_each(publish);
            done.store(true, Ordering::Release);
            published.map_err(|error| error.to_string())
        });
        while !done.load(Ordering::Acquire) && !publisher.is_finished() {
            let set = Snapshot::open(&link)?;
            let first = set.get_i64(&key(0))?;
            for row in 0..100 {
                assert_eq!(set.get_i64(&key(row))?, first, "a mix of releases");
            }
        }
        Ok(publisher.join().expect("no panic")?)
    })
}

/// Returns the path of a shard of a set.
fn shard(folder: &Path, number: u32) -> AnyResult<std::path::PathBuf> {
    let prefix = format!("{number:05}-");
    let name = names(folder)?.into_iter().find(|name| name.starts_with(&prefix));
    Ok(folder.join(name.ok_or("a shard")?))
}

#[test]
fn missing_and_foreign_shards_are_errors_that_name_them() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    build(&path, 3, (0..100).map(|row| (row, 1)))?;
    let (first, second) = (shard(directory.path(), 0)?, shard(directory.path(), 1)?);
    let (first_bytes, second_bytes) = (fs::read(&first)?, fs::read(&second)?);
    let error = |expected: &str| -> AnyResult<String> {
        let error = Snapshot::open(&path).err().ok_or("an error")?;
        let second = second.display().to_string();
        assert_eq!(error.code(), expected, "{error}");
        assert!(error.to_string().contains(&second), "{error}");
        Ok(error.to_string())
    };
    fs::remove_file(&second)?;
    error("io")?;
    fs::write(&second, &first_bytes)?;
    assert!(error("corrupt")?.contains("the checksum in the manifest"));
    fs::write(&second, b"something else")?;
    error("not-a-snapshot")?;
    fs::write(&second, &second_bytes)?;
    Snapshot::open(&path)?.verify()?;
    // A shard is a snapshot by itself.
    let alone = Snapshot::open(&second)?;
    alone.verify()?;
    assert!(alone.len() < 100 && alone.stats().shards == 0);
    let manifest = Snapshot::from_bytes(&fs::read(&path)?).err().ok_or("an error")?;
    assert_eq!(manifest.code(), "unsupported");
    assert!(manifest.to_string().contains("open it by its path"), "{manifest}");
    Ok(())
}

/// A file whose header says that it is the other of two shards.
#[test]
fn verification_finds_a_key_of_another_shard() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    build(&path, 2, (0..20).map(|row| (row, row)))?;
    let first = shard(directory.path(), 0)?;
    let mut header = fs::read(&first)?[..layout::header::LEN].to_vec();
    header[layout::header::SHARD] = 1;
    let hash = xxh3_64(&header[..layout::header::HASH]);
    header[layout::header::HASH..].copy_from_slice(&hash.to_le_bytes());
    fs::OpenOptions::new().write(true).open(&first)?.write_all_at(&header, 0)?;
    let Err(Error::Corrupt(damage)) = Snapshot::open(&first)?.verify() else {
        return Err("an error".into());
    };
    assert_eq!(damage.expected, "a key of shard 1");
    assert_eq!(damage.found, "one of shard 0");
    Ok(())
}

#[test]
fn pruned_generations_leave_no_shards() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let generations = Generations::of(directory.path().join("users"));
    for number in 1..=3_u64 {
        // One key changes, so three of the four shards are those of the generation before.
        let rows = (0..200).map(|row| (row, if row == 0 { number.cast_signed() } else { row }));
        build(&generations.path(number), 4, rows)?;
        generations.publish(number)?;
    }
    let count = || names(directory.path()).map(|names| names.len());
    assert_eq!(count()?, 3 + (4 + 1 + 1) + 1, "manifests, shards, and the pointer file");
    let old = Snapshot::open(generations.path(1))?;
    generations.prune(1)?;
    assert_eq!((generations.all()?, count()?), (vec![2, 3], 2 + (4 + 1) + 1));
    generations.prune(0)?;
    assert_eq!((generations.all()?, count()?), (vec![3], 1 + 4 + 1));
    Snapshot::open(generations.path(3))?.verify()?;
    assert_eq!(old.get_i64(&key(0))?, Some(1), "an open snapshot keeps its files");
    Ok(())
}

#[test]
fn a_failed_build_publishes_nothing_and_leaves_nothing() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    let options = WriterOptions::new().shards(4);
    let twice = || (0..50).chain(0..1).map(|row| (row, row));
    let error = build_with(&options, &path, twice()).expect_err("a duplicate").to_string();
    assert!(error.contains("duplicate key \"key 0\": rows 0 and 50"), "{error}");
    assert_eq!(names(directory.path())?, BTreeSet::new());
    build_with(&options.clone().on_duplicate(OnDuplicate::Last), &path, twice())?;
    assert_eq!(Snapshot::open(&path)?.len(), 50);
    let before = names(directory.path())?;
    build_with(&options, &path, twice()).expect_err("a duplicate");
    assert_eq!(names(directory.path())?, before, "the old set stays");
    drop(options.create(directory.path().join("dropped.nut"))?);
    assert!(names(directory.path())?.iter().all(|name| !name.contains("dropped")));
    Ok(())
}

#[test]
fn limits_of_sets_are_errors() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    for options in
        [WriterOptions::new().shards(65_537), WriterOptions::new().shards(1025).memory(16 << 20)]
    {
        let error = options.create(&path).expect_err("a limit");
        assert_eq!(error.code(), "limit", "{error}");
    }
    WriterOptions::new().shards(1024).memory(16 << 20).create(&path)?;
    let unnamed = WriterOptions::new().shards(2).create_unnamed(directory.path())?;
    let error = unnamed.finish_file().expect_err("several files").to_string();
    assert!(error.contains("write a set to one file"), "{error}");
    assert!(names(directory.path())?.is_empty());
    Ok(())
}

#[test]
fn a_set_takes_the_mode_of_the_manifest_that_it_replaces() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    build(&path, 2, (0..20).map(|row| (row, 1)))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640))?;
    build(&path, 2, (0..20).map(|row| (row, 2)))?;
    for file in [path, shard(directory.path(), 0)?, shard(directory.path(), 1)?] {
        let mode = fs::metadata(&file)?.permissions().mode() & 0o777;
        assert_eq!(mode, 0o640, "{}", file.display());
    }
    Ok(())
}

#[test]
fn progress_of_a_set_counts_the_rows_of_all_shards() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let (sender, reports) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    let options = WriterOptions::new().shards(3).threads(1).progress(move |progress| {
        sender.lock().expect("no panic").send(progress).expect("a receiver");
    });
    build_with(&options, &directory.path().join("set.nut"), (0..ROWS).map(|row| (row, row)))?;
    drop(options);
    let writing = reports.into_iter().filter(|progress| progress.total > 0);
    let done: Vec<_> = writing.map(|progress| (progress.done, progress.total)).collect();
    assert!(done.is_sorted(), "{done:?}");
    assert_eq!(done.last(), Some(&(3000, 3000)));
    Ok(())
}

/// Shards of killed builds stay until a later build of a set in the folder removes them.
#[test]
fn shards_of_killed_builds_are_removed_after_a_day_unless_a_build_runs() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let [path, other] = ["set.nut", "other.nut"].map(|name| directory.path().join(name));
    let left = |name: &str, hours: u64| -> AnyResult<std::path::PathBuf> {
        let path = directory.path().join(name);
        let file = fs::File::create(&path)?;
        file.set_modified(file.metadata()?.modified()? - Duration::from_hours(hours))?;
        Ok(path)
    };
    let old = left("00000-0123456789abcdef.shard", 25)?;
    let young = left("00001-0123456789abcdef.shard", 23)?;
    let foreign = left("00000-notes.shard", 25)?;
    build(&other, 2, (0..ROWS).map(|row| (row, 5)))?;
    assert!(!old.exists() && young.exists() && foreign.exists());
    Snapshot::open(&other)?.verify()?;

    let old = left("00000-0123456789abcdef.shard", 25)?;
    let mut running = WriterOptions::new().shards(2).create(&other)?;
    running.insert(b"key", Value::I64(1))?;
    let running = running.stage()?;
    build(&path, 2, (0..ROWS).map(|row| (row, 1)))?;
    assert!(old.exists(), "a build runs, which could rely on it");
    drop(running);
    build(&path, 2, (0..ROWS).map(|row| (row, 2)))?;
    assert!(!old.exists() && young.exists());
    Snapshot::open(&path)?.verify()?;
    Snapshot::open(&other)?.verify()?;
    Ok(())
}

/// Another process may be able to lock a file that this one cannot open.
#[test]
fn a_build_that_cannot_lock_the_shards_removes_none() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("set.nut");
    let lock = directory.path().join(".nuthatch-shards.lock");
    std::os::unix::fs::symlink(".nuthatch-shards.lock", &lock)?;
    for value in [1, 2] {
        build(&path, 2, (0..ROWS).map(|row| (row, value)))?;
    }
    Snapshot::open(&path)?.verify()?;
    assert_eq!(fs::read_dir(directory.path())?.count(), 6, "the manifest, the link, four shards");
    fs::remove_file(&lock)?;
    build(&path, 2, (0..ROWS).map(|row| (row, 3)))?;
    assert_eq!(fs::read_dir(directory.path())?.count(), 5, "the replaced shards are removed");
    Ok(())
}

/// A build uses shards that are there already. Another build must not remove them meanwhile.
#[test]
fn a_build_keeps_shards_that_another_set_drops_while_it_runs() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let [path, other] = ["set.nut", "other.nut"].map(|name| directory.path().join(name));
    build(&path, 2, (0..ROWS).map(|row| (row, 1)))?;
    let mut same = WriterOptions::new().shards(2).create(&other)?;
    for row in 0..ROWS {
        same.insert(&key(row), Value::I64(1))?;
    }
    // Its manifest is complete, and another process cannot read it.
    let same = same.stage()?;
    let content = fs::read(same.path())?;
    fs::remove_file(same.path())?;
    build(&path, 2, (0..ROWS).map(|row| (row, 2)))?;
    fs::write(same.path(), content)?;
    same.publish()?;
    Snapshot::open(&other)?.verify()?;
    Ok(())
}
