//! Operations that wait while a thread of this process reclaims a segment, and their maximum time.

use crate::{Case, LABEL, get, name, put};
use nuthatch_segments::{Disk, Error, Id, NotKeptReason, Options, Outcome, Segments, SystemDisk};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A disk that stops one write of certain data.
struct StoppingDisk {
    /// Channels that report the beginning of the write, and end its pause.
    stop: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    marked: Vec<u8>,
}

impl Disk for StoppingDisk {
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()> {
        if data == self.marked {
            let stop = self.stop.lock().expect("no panic").take();
            if let Some((began, go_on)) = stop {
                began.send(()).expect("a test that waits");
                go_on.recv().expect("a test that goes on");
            }
        }
        SystemDisk.write(file, head, data, offset)
    }

    fn available(&self, folder: BorrowedFd<'_>) -> io::Result<u64> {
        SystemDisk.available(folder)
    }
}

/// If the segment were evicted meanwhile, the words of the record would point to its slot.
#[test]
fn a_segment_is_not_evicted_while_a_record_is_written_to_it() {
    let case = Case::new();
    let disk = Arc::new(StoppingDisk { stop: Mutex::default(), marked: crate::bytes(0, 50_000) });
    let options = Options::new().limit(4 << 20).segment_len(256 << 10).min_free(0);
    let segments = case.open(&options.disk(disk.clone()));
    let (began, has_begun) = channel();
    let (go_on, may_go_on) = channel();
    *disk.stop.lock().expect("no panic") = Some((began, may_go_on));
    thread::scope(|scope| {
        let go_on = go_on;
        let putting = scope.spawn(|| put(&segments, 0, 50_000));
        has_begun.recv().expect("a put");
        for number in 1..300 {
            assert_eq!(put(&segments, number, 50_000), Outcome::Kept);
        }
        assert!(segments.stat().evicted > 30, "the folder was filled several times");
        go_on.send(()).expect("a thread that waits");
        assert_eq!(putting.join().expect("no panic"), Outcome::Kept);
    });
    let is_there = || segments.find(&Id::new(name(0), 0), LABEL).is_some();
    assert!(is_there());
    for number in 300..600 {
        assert_eq!(put(&segments, number, 50_000), Outcome::Kept);
    }
    assert!(!is_there(), "the segment goes when the put has ended");
    assert_eq!(segments.verify().damaged, 0);
}

/// Calls a function while another thread is stopped in the middle of reclaiming a segment, when it
/// moves the record of part 0, which was used.
fn while_a_segment_is_reclaimed(patience: Duration, check: impl FnOnce(&Segments)) {
    let case = Case::new();
    let marked = crate::bytes(0, 50_000);
    let disk = Arc::new(StoppingDisk { stop: Mutex::default(), marked });
    let options = Options::new().limit(4 << 20).segment_len(256 << 10).min_free(0);
    let segments = case.open(&options.patience(patience).disk(disk.clone()));
    // A use of a segment is counted only after newer segments exist.
    for number in 0..20 {
        assert_eq!(put(&segments, number, 50_000), Outcome::Kept);
    }
    let found = segments.find(&Id::new(name(0), 0), LABEL).expect("the part is stored");
    found.count_use(0..1);
    drop(found);
    let (began, has_begun) = channel();
    let (go_on, may_go_on) = channel();
    *disk.stop.lock().expect("no panic") = Some((began, may_go_on));
    thread::scope(|scope| {
        let go_on = go_on;
        let reclaiming = scope.spawn(|| {
            for number in 20..200 {
                assert_eq!(put(&segments, number, 50_000), Outcome::Kept);
            }
            // If no write was stopped, the test fails instead of waiting.
            *disk.stop.lock().expect("no panic") = None;
        });
        has_begun.recv().expect("a segment to be reclaimed");
        check(&segments);
        go_on.send(()).expect("a thread that waits");
        reclaiming.join().expect("all puts");
    });
    assert_eq!(get(&segments, 199), Some(50_000));
}

#[test]
fn reads_do_not_wait_while_a_segment_is_reclaimed() {
    // With unlimited patience, a read that waited for the other thread would wait for ever.
    while_a_segment_is_reclaimed(Duration::MAX, |segments| {
        for number in 0..10 {
            let found = get(segments, number);
            assert!(found.is_none_or(|len| len == 50_000), "part {number}: {found:?}");
        }
        assert_eq!(get(segments, 0), Some(50_000), "what is moved is found meanwhile");
        let found = segments.find(&Id::new(name(0), 0), LABEL).expect("the part is stored");
        found.view(0..50_000).expect("bytes").expect("a map");
        assert!(segments.stat().segments > 0);
        segments.remove(&Id::new(name(5), 0));
        assert!(segments.try_fetch_lock(0..1).expect("a fetch lock").is_some());
        assert!(!segments.is_read_only() && segments.warnings().is_empty());
    });
}

#[test]
fn a_put_waits_for_a_thread_that_reclaims_no_longer_than_its_patience_and_is_counted() {
    while_a_segment_is_reclaimed(Duration::from_millis(20), |segments| {
        let before = segments.stat().not_kept;
        let outcome = put(segments, 1000, 50_000);
        assert_eq!(outcome, Outcome::NotKept(NotKeptReason::Busy));
        assert_eq!(segments.stat().not_kept, before + 1);
        let error = segments.prune(None).expect_err("another thread has the folder");
        assert!(matches!(error, Error::Busy { .. }), "{error}");
        assert!(error.to_string().contains("another process or thread"), "{error}");
        // A put that gave up holds no lock.
        assert_eq!(put(segments, 1001, 50_000), Outcome::NotKept(NotKeptReason::Busy));
    });
}
