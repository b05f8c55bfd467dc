//! Tests of watches whose generations fail to open or open slowly.

use super::*;
use crate::error::Error;
use crate::values::Value;
use crate::writer::Writer;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock, Weak};

type AnyResult<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn write(path: &Path, generation: i64) -> Result<()> {
    let mut writer = Writer::create(path)?;
    writer.insert(b"generation", Value::I64(generation))?;
    writer.finish().map(|_| ())
}

fn generation(reader: &mut WatchReader) -> i64 {
    reader.current().get_i64(b"generation").expect("a good file").expect("the key")
}

/// Starts a watch without a thread that opens files with `open`.
fn watch_with(
    path: &Path,
    open: impl Fn(&Path) -> Result<Snapshot> + Send + Sync + 'static,
) -> Result<Watch> {
    let follower =
        Follower::start(Source::Path(path.to_owned()), Box::new(open), Arc::new(|_| ()))?;
    Watch::start_with(follower, Duration::ZERO)
}

/// Returns the error EMFILE: the process has no free descriptor.
fn too_many_files(path: &Path) -> Error {
    Error::io(path, "open", io::Error::from_raw_os_error(24))
}

#[test]
fn a_generation_that_could_not_be_opened_is_retried_with_back_off() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let opened = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&opened);
    let watch = watch_with(&path, move |path| match counted.fetch_add(1, Ordering::Relaxed) {
        1..=9 => Err(too_many_files(path)),
        _ => Snapshot::open(path),
    })?;
    let mut reader = watch.reader();
    write(&path, 2)?;
    let mut polls_at = Vec::new();
    let mut polls = 0;
    while watch.status().switched == 0 {
        let before = opened.load(Ordering::Relaxed);
        polls += 1;
        watch.follower.poll();
        if opened.load(Ordering::Relaxed) > before {
            polls_at.push(polls);
        }
        assert!(polls < 1000, "the file is tried again");
        assert_eq!(watch.status().error.is_none(), watch.status().switched == 1);
    }
    assert_eq!(polls_at, [1, 2, 4, 8, 16, 32, 64, 128, 192, 256]);
    assert_eq!(generation(&mut reader), 2);
    assert_eq!(watch.status().rejected, 1, "the same error is reported once");
    Ok(())
}

#[test]
fn a_refresh_tries_again_at_once_and_damage_is_not_tried_again_by_polls() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let opened = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&opened);
    let watch = watch_with(&path, move |path| {
        counted.fetch_add(1, Ordering::Relaxed);
        Snapshot::open(path)
    })?;
    std::fs::write(&path, "damaged")?;
    for _ in 0..300 {
        assert!(!watch.follower.poll());
    }
    assert_eq!(opened.load(Ordering::Relaxed), 2);
    assert!(!watch.refresh());
    assert_eq!(opened.load(Ordering::Relaxed), 3);
    write(&path, 3)?;
    assert!(watch.follower.poll(), "another file");
    assert_eq!(watch.status().error, None);
    Ok(())
}

#[test]
fn an_error_that_was_transient_leaves_the_status() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let generations = Generations::of(directory.path().join("users"));
    write(&generations.path(1), 1)?;
    generations.publish(1)?;
    let watch = WatchOptions::new().interval(Duration::ZERO).generations(generations.clone())?;
    std::fs::write(generations.pointer(), "")?;
    assert!(!watch.follower.poll());
    assert!(watch.status().error.is_some());
    generations.publish(1)?;
    assert!(!watch.follower.poll(), "readers have this one");
    assert_eq!(watch.status().error, None);
    // A rejected generation stays rejected, and its error is restored after another one.
    std::fs::write(generations.path(2), "damaged")?;
    generations.publish(2)?;
    assert!(!watch.follower.poll());
    let rejected = watch.status().error;
    std::fs::write(generations.pointer(), "")?;
    assert!(!watch.follower.poll());
    assert_ne!(watch.status().error, rejected);
    generations.publish(2)?;
    assert!(!watch.follower.poll());
    assert_eq!(watch.status().error, rejected);
    Ok(())
}

#[test]
fn the_status_is_available_while_a_generation_is_opened() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let (entered, in_open) = channel();
    let (go_on, wait) = channel();
    let wait = Mutex::new(wait);
    let calls = AtomicU64::new(0);
    let watch = watch_with(&path, move |path| {
        if calls.fetch_add(1, Ordering::Relaxed) == 1 {
            entered.send(()).expect("the test");
            wait.lock().expect("the test").recv().expect("the test");
        }
        Snapshot::open(path)
    })?;
    write(&path, 2)?;
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| watch.refresh());
        in_open.recv().expect("the other thread opens");
        assert_eq!(watch.status().switched, 0);
        assert_eq!(generation(&mut watch.reader()), 1);
        go_on.send(()).expect("the other thread waits");
        assert!(looking.join().expect("no panic"));
    });
    assert_eq!(watch.status().switched, 1);
    Ok(())
}

/// Starts a watch with a thread, and passes its callback the watch.
fn with_callback(
    path: &Path,
    call: impl Fn(&Mutex<Option<Arc<Watch>>>, &Event<'_>) + Send + Sync + 'static,
) -> Result<Arc<Mutex<Option<Arc<Watch>>>>> {
    let slot = Arc::new(Mutex::new(None));
    let in_callback = Arc::clone(&slot);
    let options = WatchOptions::new().interval(Duration::from_millis(1));
    let watch = options.report(move |event| call(&in_callback, event)).path(path)?;
    *slot.lock().expect("the test") = Some(Arc::new(watch));
    Ok(slot)
}

fn received<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(Duration::from_mins(2)).expect("the watch calls back")
}

#[test]
fn a_callback_may_call_all_methods_of_its_watch() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let (seen, was_seen) = channel();
    let watch: Arc<OnceLock<Weak<Watch>>> = Arc::default();
    let slot = Arc::clone(&watch);
    let replaced = path.clone();
    let options = WatchOptions::new().interval(Duration::from_millis(1)).report(move |event| {
        let Event::Switched(snapshot) = event else { return };
        let number = snapshot.get_i64(b"generation").expect("a good file").expect("the key");
        let watch = slot.wait().upgrade().expect("the watch");
        let switched = watch.status().switched;
        let read = generation(&mut watch.reader());
        if number == 2 {
            write(&replaced, 3).expect("room");
            assert!(watch.refresh(), "the third generation");
        }
        seen.send((number, switched, read)).expect("the test");
    });
    let owned = Arc::new(options.path(&path)?);
    watch.set(Arc::downgrade(&owned)).expect("set once");
    write(&path, 2)?;
    // The event of the refresh within the callback is reported after the callback returns.
    assert_eq!(received(&was_seen), (2, 1, 2));
    assert_eq!(received(&was_seen), (3, 2, 3));
    Ok(())
}

#[test]
fn a_callback_that_panics_is_recorded_and_the_watch_continues() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let (seen, was_seen) = channel();
    let slot = with_callback(&path, move |_, event| {
        let Event::Switched(snapshot) = event else { return };
        seen.send(snapshot.get_i64(b"generation").expect("a good file")).expect("the test");
        panic!("a callback of the test");
    })?;
    for number in 2..5 {
        write(&path, number)?;
        assert_eq!(received(&was_seen), Some(number));
    }
    let watch = slot.lock().expect("no panic here").clone().expect("the watch");
    assert_eq!(watch.status().panic.as_deref(), Some("a callback of the test"));
    Ok(())
}

#[test]
fn a_callback_may_drop_its_watch() -> AnyResult {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("watched.nut");
    write(&path, 1)?;
    let (seen, was_seen) = channel();
    let slot = with_callback(&path, move |slot, _| {
        drop(slot.lock().expect("the test").take());
        seen.send(()).expect("the test");
    })?;
    write(&path, 2)?;
    received(&was_seen);
    assert!(slot.lock().expect("no panic").is_none());
    Ok(())
}
