//! Incomplete records, left by a full disk or a process that died, and words that must not remain
//! in the index.

use crate::{Case, LABEL, bytes, get, name, put, small};
use nuthatch_segments::{
    Disk, Id, ManualClock, NotKeptReason, Options, Outcome, Part, Record, Segments, SystemDisk,
    checksum,
};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

/// Returns the bytes of the incomplete record, which identify its write.
fn torn_bytes() -> Vec<u8> {
    bytes(2, 200_000)
}

/// A disk that calls a function before it writes certain data.
struct HookedDisk {
    data: Vec<u8>,
    hook: Mutex<Option<Hook>>,
}

type Hook = Box<dyn FnMut(&File, &[u8], u64) -> io::Result<()> + Send>;

impl HookedDisk {
    fn new(data: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { data, hook: Mutex::default() })
    }

    fn set(&self, hook: Hook) {
        *self.hook.lock().expect("no panic") = Some(hook);
    }
}

impl Disk for HookedDisk {
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()> {
        if data == self.data
            && let Some(hook) = &mut *self.hook.lock().expect("no panic")
        {
            hook(file, head, offset)?;
        }
        SystemDisk.write(file, head, data, offset)
    }

    fn available(&self, folder: BorrowedFd<'_>) -> io::Result<u64> {
        SystemDisk.available(folder)
    }
}

/// Returns a folder with one segment: record 1 is complete, and of record 2 the disk had space for
/// the head and 5,000 bytes only. The process that wrote it has closed the folder.
fn full_disk() -> Case {
    full_disk_with(None)
}

/// Does the same as [`full_disk`]; the same process then stores another record.
fn full_disk_with(more: Option<u64>) -> Case {
    let case = Case::new();
    let disk = HookedDisk::new(torn_bytes());
    let segments = case.open(&small().disk(disk.clone()));
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
    disk.set(Box::new(|file, head, offset| {
        SystemDisk.write(file, head, &torn_bytes()[..5000], offset)?;
        Err(io::ErrorKind::StorageFull.into())
    }));
    let outcome = put_torn(&segments);
    assert_eq!(outcome, Outcome::NotKept(NotKeptReason::Disk));
    if let Some(number) = more {
        assert_eq!(put(&segments, number, 1000), Outcome::Kept);
    }
    case
}

/// Does the same as [`full_disk`], but the writer died during the write: the record was written
/// with all words, and then the file was truncated.
fn killed_writer() -> Case {
    let case = Case::new();
    let segments = case.small();
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
    assert_eq!(put_torn(&segments), Outcome::Kept);
    segments.remove(&Id::new(name(2), 0));
    drop(segments);
    let [path] = &case.files("seg")[..] else { panic!("one segment") };
    let file = OpenOptions::new().write(true).open(path).expect("a segment");
    file.set_len(6000).expect("truncated");
    case
}

fn put_torn(segments: &Segments) -> Outcome {
    crate::put_bytes(segments, 2, &torn_bytes())
}

fn listed(segments: &Segments) -> usize {
    let mut count = 0;
    assert_eq!(segments.list(|_| count += 1), []);
    count
}

#[test]
fn records_after_an_incomplete_one_are_found_by_every_scan() {
    for case in [full_disk(), killed_writer()] {
        let segments = case.small();
        assert_eq!(put(&segments, 3, 10_000), Outcome::Kept);
        assert_eq!(put(&segments, 4, 10_000), Outcome::Kept);
        assert_eq!(case.files("seg").len(), 1, "the segment is appended to");
        let verified = segments.verify();
        assert_eq!((verified.good, verified.damaged, verified.torn), (3, 0, 0));
        assert_eq!(listed(&segments), 3);
        // Pinned parts are moved when their segment is evicted, and no word points to that segment.
        segments.pin(name(3), true).expect("a pin");
        segments.clear().expect("space");
        assert_eq!((get(&segments, 3), get(&segments, 4)), (Some(10_000), None));
        segments.pin(name(3), false).expect("no pin");
        segments.clear().expect("space");
        assert_eq!(segments.stat().parts, 0, "words lead to a segment that is gone");
    }
}

/// Words that remained for the slot of an evicted segment would count as lost parts of the next
/// segment in the slot.
#[test]
fn verify_reports_no_damage_in_a_folder_on_a_full_disk() {
    let case = full_disk();
    let segments = case.small();
    for number in 3..7 {
        assert_eq!(put(&segments, number, 10_000), Outcome::Kept);
    }
    segments.clear().expect("space");
    drop(segments);
    // The first segment has the slot now, and its disk is full, too.
    let disk = HookedDisk::new(torn_bytes());
    disk.set(Box::new(|_, _, _| Err(io::ErrorKind::StorageFull.into())));
    let segments = case.open(&small().disk(disk));
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
    assert_eq!(put_torn(&segments), Outcome::NotKept(NotKeptReason::Disk));
    assert_eq!(put(&segments, 20, 1000), Outcome::Kept);
    let verified = case.small().verify();
    assert_eq!((verified.good, verified.damaged, verified.torn), (2, 0, 0));
}

#[test]
fn records_after_an_incomplete_one_are_found_when_the_index_is_rebuilt() {
    let case = full_disk();
    assert_eq!(put(&case.small(), 3, 10_000), Outcome::Kept);
    std::fs::remove_file(case.path().join("index")).expect("deleted");
    let segments = case.small();
    put(&segments, 4, 1000);
    assert_eq!((get(&segments, 1), get(&segments, 3)), (Some(1000), Some(10_000)));
}

#[test]
fn an_incomplete_record_is_no_damage_when_the_index_is_rebuilt() {
    let continued = |case: Case| {
        assert_eq!(put(&case.small(), 3, 10_000), Outcome::Kept);
        case
    };
    let cases = [
        ("full disk", full_disk(), 1),
        ("full disk, then room", full_disk_with(Some(5)), 2),
        ("full disk, another process", continued(full_disk()), 2),
        ("killed", killed_writer(), 1),
        ("killed, another process", continued(killed_writer()), 2),
    ];
    for (what, case, good) in cases {
        std::fs::remove_file(case.path().join("index")).expect("deleted");
        let segments = case.small();
        // Rebuilds the index.
        segments.prune(None).expect("exclusive access");
        let verified = segments.verify();
        assert_eq!((verified.good, verified.damaged), (good, 0), "{what}");
        assert_eq!(segments.stat().parts, good, "{what}");
    }
}

#[test]
fn parts_of_a_truncated_file_are_reported_as_damaged_after_another_put() {
    let case = Case::new();
    let segments = case.small();
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
    assert_eq!(put_torn(&segments), Outcome::Kept);
    drop(segments);
    let [path] = &case.files("seg")[..] else { panic!("one segment") };
    let file = OpenOptions::new().write(true).open(path).expect("a segment");
    file.set_len(6000).expect("truncated");
    let segments = case.small();
    assert_eq!(put(&segments, 3, 10_000), Outcome::Kept);
    let verified = segments.verify();
    assert_eq!((verified.good, verified.damaged), (2, 1));
}

#[test]
fn no_word_points_to_a_segment_evicted_while_another_process_grows_the_index() {
    let case = Case::new();
    let options = Options::new().limit(4 << 20).segment_len(256 << 10).min_free(0);
    let disk = HookedDisk::new(bytes(0, 50_000));
    let segments = case.open(&options.clone().disk(disk.clone()));
    for number in 0..20 {
        assert_eq!(put(&segments, number, 50_000), Outcome::Kept);
    }
    // Part 0 is used, so it is moved when its segment is reclaimed.
    segments.find(&Id::new(name(0), 0), LABEL).expect("the part is stored").count_use(0..1);
    let other = case.open(&options);
    let before = other.stat().max_parts;
    let other = Arc::new(other);
    let growing = other.clone();
    disk.set(Box::new(move |_, _, _| {
        let grows = |number| {
            assert_eq!(put(&growing, number, 100), Outcome::Kept);
            growing.stat().max_parts > before
        };
        assert!((100_000..110_000).any(grows));
        Ok(())
    }));
    let has_grown = |number| {
        assert_eq!(put(&segments, number, 50_000), Outcome::Kept);
        other.stat().max_parts > before
    };
    assert!((20..200).any(has_grown), "a record was moved, and the index has grown meanwhile");
    let verified = other.verify();
    assert_eq!((verified.damaged, verified.torn), (0, 0));
    assert_eq!(other.stat().parts, verified.good, "every word leads to a part");
}

#[test]
fn no_word_points_to_a_pruned_segment_of_expired_parts() {
    let case = Case::new();
    let clock = Arc::new(ManualClock::new(100));
    let segments = case.open(&small().clock(clock.clone()));
    let (parts, data) = ([Part { end: 1000, checksum: checksum(&bytes(1, 1000)) }], bytes(1, 1000));
    for number in 0..5 {
        let name = name(number);
        let record =
            Record { name, first: 0, label: LABEL, expiry: 200, parts: &parts, data: &data };
        assert_eq!(segments.put(&record).expect("a put"), Outcome::Kept);
    }
    clock.set(200);
    segments.prune(None).expect("space");
    assert_eq!((segments.stat().segments, segments.stat().parts), (0, 0));
}
