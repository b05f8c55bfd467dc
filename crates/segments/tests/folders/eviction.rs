use crate::{Case, get, name, put, small};
use nuthatch_segments::{Disk, NotKeptReason, Options, Outcome, SystemDisk};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LIMIT: u64 = 4 << 20;

#[test]
fn the_limit_holds_after_every_put() {
    let case = Case::new();
    let (first, second) = (case.small(), case.small());
    for number in 0..400 {
        let segments = if number % 3 == 0 { &first } else { &second };
        assert_eq!(put(segments, number, 50_000), Outcome::Kept, "{number}");
        assert!(case.disk_bytes() <= LIMIT, "{} bytes after {number}", case.disk_bytes());
    }
    let there = (0..400).filter(|number| get(&first, *number).is_some()).count();
    assert!(there * 50_000 > LIMIT as usize / 2, "only {there} are there");
    assert_eq!(get(&first, 399), Some(50_000));
}

#[test]
fn used_parts_outlive_unused_ones() {
    let case = Case::new();
    let segments = case.small();
    let hot = 0..10;
    for number in hot.clone() {
        put(&segments, number, 50_000);
    }
    let mut lost = 0;
    for passing in 100..1000 {
        put(&segments, passing, 50_000);
        if passing % 5 == 0 {
            lost += hot.clone().filter(|number| get(&segments, *number).is_none()).count();
        }
    }
    assert_eq!(lost, 0, "what was used all the time went");
    // The same after a restart: unused parts displace unused parts.
    drop(segments);
    let segments = case.small();
    for passing in 1000..1040 {
        put(&segments, passing, 50_000);
    }
    let there = hot.filter(|number| get(&segments, *number).is_some()).count();
    assert_eq!(there, 10);
}

#[test]
fn pinned_parts_are_not_evicted_and_the_limit_holds() {
    let case = Case::new();
    let segments = case.small();
    for number in 0..5 {
        put(&segments, number, 100_000);
        put(&segments, 50 + number, 100_000);
        segments.pin(name(number), true).expect("a pin");
    }
    for passing in 100..300 {
        put(&segments, passing, 100_000);
        assert!(case.disk_bytes() <= LIMIT, "{} bytes after {passing}", case.disk_bytes());
    }
    for number in 0..5 {
        assert_eq!(get(&segments, number), Some(100_000), "{number} is pinned");
    }
    assert_eq!(get(&segments, 50), None);
    segments.clear().expect("space");
    assert_eq!(get(&segments, 0), Some(100_000), "still pinned");
    for number in 0..5 {
        segments.pin(name(number), false).expect("a pin");
    }
    segments.clear().expect("space");
    assert_eq!((get(&segments, 0), segments.stat().segments), (None, 0));
}

#[test]
fn a_folder_full_of_pins_keeps_nothing_more() {
    let case = Case::new();
    let segments = case.small();
    let mut kept = Vec::new();
    let refused = (0..200).find(|number| {
        segments.pin(name(*number), true).expect("a pin");
        let outcome = put(&segments, *number, 100_000);
        kept.extend((outcome == Outcome::Kept).then_some(*number));
        outcome == Outcome::NotKept(NotKeptReason::NoRoom)
    });
    assert!(refused.is_some_and(|number| number > 10), "{refused:?}");
    assert!(case.disk_bytes() <= LIMIT, "{} bytes", case.disk_bytes());
    for number in kept {
        assert_eq!(get(&segments, number), Some(100_000), "{number} is pinned");
    }
}

#[test]
fn a_lower_limit_holds_at_once_in_all_handles() {
    let case = Case::new();
    let segments = case.open(&Options::new().limit(16 << 20));
    for number in 0..200 {
        put(&segments, number, 60_000);
    }
    assert!(case.disk_bytes() > 8 << 20);
    segments.prune(None).expect("space");
    case.small();
    assert!(case.disk_bytes() <= LIMIT, "{} bytes", case.disk_bytes());
    for number in 0..200 {
        put(&segments, number, 60_000);
        assert!(case.disk_bytes() <= LIMIT, "{} bytes", case.disk_bytes());
    }
}

/// A disk with limited space, which counts writes. Removing files frees no space.
struct SmallDisk {
    room: AtomicU64,
    writes: AtomicU64,
}

impl Disk for SmallDisk {
    fn write(&self, file: &File, head: &[u8], data: &[u8], offset: u64) -> io::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let len = (head.len() + data.len()) as u64;
        let room = self.room.load(Ordering::Relaxed);
        if len > room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room.store(room - len, Ordering::Relaxed);
        SystemDisk.write(file, head, data, offset)
    }

    fn available(&self, _: BorrowedFd<'_>) -> io::Result<u64> {
        Ok(self.room.load(Ordering::Relaxed))
    }
}

#[test]
fn a_full_disk_evicts_and_then_keeps_nothing() {
    let case = Case::new();
    let disk = Arc::new(SmallDisk { room: AtomicU64::new(2_000_000), writes: AtomicU64::new(0) });
    let segments = case.open(&small().disk(disk.clone()));
    let put_all = |numbers: std::ops::Range<u64>| {
        numbers.map(|number| put(&segments, number, 100_000)).collect::<Vec<_>>()
    };
    assert!(put_all(0..19).iter().all(|outcome| *outcome == Outcome::Kept));
    let before = segments.stat().evicted;
    let refused = put_all(100..101);
    assert_eq!(refused, [Outcome::NotKept(NotKeptReason::Disk)]);
    assert!(segments.stat().evicted > before, "room was made, though the disk did not give it");
    assert!(disk.writes.load(Ordering::Relaxed) < 60, "it gives up");
    // The disk has space again.
    disk.room.store(1_000_000, Ordering::Relaxed);
    assert_eq!(put_all(200..201), [Outcome::Kept]);
    assert_eq!(get(&segments, 200), Some(100_000));
}

#[test]
fn eviction_keeps_the_minimum_free_space() {
    let case = Case::new();
    let disk = Arc::new(SmallDisk { room: AtomicU64::new(50_000_000), writes: AtomicU64::new(0) });
    let options = small().disk(disk.clone()).min_free(10_000_000);
    let segments = case.open(&options);
    for number in 0..30 {
        assert_eq!(put(&segments, number, 100_000), Outcome::Kept);
    }
    disk.room.store(9_500_000, Ordering::Relaxed);
    let before = case.disk_bytes();
    for number in 30..34 {
        put(&segments, number, 100_000);
    }
    assert!(
        case.disk_bytes() < before - 500_000,
        "{} of {before} bytes are left",
        case.disk_bytes()
    );
    disk.room.store(0, Ordering::Relaxed);
    for number in 40..80 {
        put(&segments, number, 100_000);
    }
    assert!(case.disk_bytes() < 1_000_000, "{} bytes are left", case.disk_bytes());
}

#[test]
fn a_view_outlives_the_eviction_of_its_segment() {
    let case = Case::new();
    let segments = case.small();
    put(&segments, 1, 200_000);
    let found = segments.find(&nuthatch_segments::Id::new(name(1), 0), crate::LABEL);
    let view = found.expect("the part is stored").view(0..200_000).expect("bytes").expect("a map");
    for number in 100..300 {
        put(&segments, number, 100_000);
    }
    assert_eq!(get(&segments, 1), None, "it went");
    assert_eq!(*view, crate::bytes(1, 200_000));
    assert!(view.is_intact());
}
