//! Readers switch to new generations while they read.

use nuthatch_snapshot::{Generations, Snapshot, Value, Watch, WatchOptions, Writer};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type AnyResult = Result<(), Box<dyn std::error::Error>>;

const KEYS: i64 = 500;

/// Builds a snapshot in which the value of every key is the number of the generation.
fn write(path: &Path, generation: i64) -> AnyResult {
    let mut writer = Writer::create(path)?;
    for key in 0..KEYS {
        writer.insert(format!("key {key}").as_bytes(), Value::I64(generation))?;
    }
    writer.finish()?;
    Ok(())
}

fn generation(snapshot: &Snapshot) -> i64 {
    let value = snapshot.get_i64(b"key 0").expect("a good file").expect("the key");
    for key in 1..KEYS {
        let other = snapshot.get_i64(format!("key {key}").as_bytes()).expect("a good file");
        assert_eq!(other, Some(value), "a mix of generations");
    }
    value
}

fn manual() -> WatchOptions {
    WatchOptions::new().interval(Duration::ZERO)
}

#[test]
fn a_renamed_file_is_seen_and_its_old_map_is_unmapped_by_the_watch_and_never_by_a_reader()
-> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let watch = manual().path(&path)?;
    let (mut early, mut late) = (watch.reader(), watch.reader());
    assert!(!watch.refresh(), "nothing is new");
    write(&path, 2)?;
    assert_eq!(generation(early.current()), 1, "the watch has not checked the file yet");
    assert!(watch.refresh());
    assert_eq!(generation(early.current()), 2);
    assert!(maps_of(&path)?.contains("(deleted)"), "the other reader still has the old file");
    assert!(!watch.refresh());
    assert!(maps_of(&path)?.contains("(deleted)"), "it is not unmapped under that reader");
    assert_eq!(generation(late.current()), 2);
    assert!(maps_of(&path)?.contains("(deleted)"), "the reader does not unmap it");
    assert!(!watch.refresh());
    assert!(!maps_of(&path)?.contains("(deleted)"), "no reader has the old file any more");
    assert_eq!(watch.status().switched, 1);
    Ok(())
}

/// The watch's own thread unmaps the old file, without a call of [`Watch::refresh`].
#[test]
fn the_thread_of_a_watch_unmaps_an_old_file_after_its_last_reader() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let (sender, switches) = std::sync::mpsc::channel();
    let watch = WatchOptions::new()
        .interval(Duration::from_millis(1))
        .report(move |_| {
            let thread = std::thread::current().name().map(str::to_owned);
            // The test may have ended.
            let _ = sender.send(thread);
        })
        .path(&path)?;
    let (mut reader, mut late) = (watch.reader(), watch.reader());
    write(&path, 2)?;
    assert_eq!(switches.recv()?.as_deref(), Some("nuthatch-watch"));
    assert_eq!(generation(reader.current()), 2);
    assert!(maps_of(&path)?.contains("(deleted)"), "the other reader still has the old file");
    assert_eq!(generation(late.current()), 2);
    // Only polls of the thread are left. If none unmaps the file, the test does not end before its
    // deadline.
    let deadline = Instant::now() + Duration::from_mins(2);
    while maps_of(&path)?.contains("(deleted)") {
        assert!(Instant::now() < deadline, "the old file is still mapped");
        std::thread::yield_now();
    }
    assert_eq!(watch.status().switched, 1);
    Ok(())
}

/// Returns the lines of this process's memory map with the file.
fn maps_of(path: &Path) -> std::io::Result<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let directory = path.parent().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let ours = maps.lines().filter(|line| line.contains(&directory) && line.contains(&name));
    Ok(ours.collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_damaged_generation_is_reported_once_and_the_previous_one_stays_current() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let reports = std::sync::Arc::new(AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&reports);
    let watch = manual()
        .verify(true)
        .report(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .path(&path)?;
    let mut reader = watch.reader();

    let other = directory.path().join("other");
    write(&other, 2)?;
    let mut bytes = std::fs::read(&other)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&other, &bytes)?;
    std::fs::rename(&other, &path)?;
    assert!(!watch.refresh());
    assert!(!watch.refresh());
    assert_eq!(reports.load(Ordering::Relaxed), 1);
    assert_eq!(generation(reader.current()), 1);
    let status = watch.status();
    assert_eq!((status.switched, status.rejected), (0, 1));
    assert!(status.error.is_some_and(|error| error.contains("damaged file")));

    std::fs::remove_file(&path)?;
    assert!(!watch.refresh());
    assert_eq!(generation(reader.current()), 1);
    write(&path, 3)?;
    assert!(watch.refresh());
    assert_eq!(generation(reader.current()), 3);
    assert_eq!(watch.status().error, None);
    Ok(())
}

#[test]
fn the_pointer_decides_between_numbered_generations() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let generations = Generations::of(directory.path().join("users"));
    assert_eq!(generations.latest()?, None);
    assert!(Watch::generations(directory.path().join("users")).is_err(), "nothing is published");
    for number in 1..=4 {
        write(&generations.path(u64::try_from(number)?), number)?;
    }
    generations.publish(2)?;
    let watch = manual().generations(generations.clone())?;
    let mut reader = watch.reader();
    assert_eq!(generation(reader.current()), 2);
    generations.publish(4)?;
    assert!(watch.refresh());
    assert_eq!(generation(reader.current()), 4);
    assert!(generations.publish(5).is_err(), "there is no such generation");
    std::fs::write(generations.pointer(), "five")?;
    assert!(!watch.refresh());
    assert!(watch.status().error.is_some_and(|error| error.contains("\"five\"")));
    generations.publish(3)?;
    assert!(watch.refresh(), "going back is moving too");
    generations.prune(1)?;
    assert_eq!(generations.all()?, [2, 3, 4]);
    Ok(())
}

#[test]
fn threads_read_while_generations_are_swapped_under_them() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("swapped.nut");
    write(&path, 0)?;
    let watch = WatchOptions::new().interval(Duration::from_millis(1)).path(&path)?;
    let done = AtomicBool::new(false);
    let started = Barrier::new(5);
    let last = 60;
    std::thread::scope(|scope| -> AnyResult {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let mut reader = watch.reader();
                let (started, done) = (&started, &done);
                scope.spawn(move || {
                    started.wait();
                    let mut seen = 0;
                    while !done.load(Ordering::Relaxed) {
                        let now = generation(reader.current());
                        assert!(now >= seen, "back from {seen} to {now}");
                        seen = now;
                    }
                    generation(reader.current())
                })
            })
            .collect();
        started.wait();
        for number in 1..=last {
            write(&path, number)?;
            if number % 2 == 0 {
                watch.refresh();
            }
        }
        watch.refresh();
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert_eq!(reader.join().expect("no panic"), last);
        }
        Ok(())
    })?;
    Ok(())
}
