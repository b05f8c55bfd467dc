//! Growth of the index.

use crate::{Case, LABEL, bytes, get, name, put, small};
use nuthatch_segments::{Id, Options, Outcome, Part, Record, checksum};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn an_index_of_default_size_loses_none_of_14_000_small_parts() {
    let case = Case::new();
    let segments = case.open(&Options::new().limit(64 << 20));
    let kept = (0..14_000).filter(|number| put(&segments, *number, 4096) == Outcome::Kept).count();
    let stat = segments.stat();
    let found = (0..14_000).filter(|number| get(&segments, *number).is_some()).count();
    // The limit is reached: one segment may be evicted, with fewer than a thousand parts.
    assert_eq!((kept, stat.displaced), (14_000, 0));
    assert!(stat.evicted <= 1 && found as u64 + stat.evicted * 1000 >= 14_000, "{found} {stat:?}");
}

#[test]
fn parts_of_any_size_are_all_found_with_an_index_of_default_size() {
    let limit = 32 << 20;
    let sizes: [&[usize]; 5] =
        [&[100], &[4096], &[64 << 10], &[1 << 20], &[100, 4096, 64 << 10, 1 << 20]];
    for sizes in sizes {
        let case = Case::new();
        let segments = case.open(&Options::new().limit(limit));
        let size_of = |number: u64| sizes[number as usize % sizes.len()];
        let usual = sizes.iter().sum::<usize>() / sizes.len();
        let mut number = 0;
        // As many parts as fit without eviction.
        while segments.stat().used < limit * 8 / 10 {
            for _ in 0..=(128 << 10) / usual {
                assert_eq!(put(&segments, number, size_of(number)), Outcome::Kept);
                number += 1;
            }
        }
        let stat = segments.stat();
        assert_eq!((stat.displaced, stat.evicted, stat.parts), (0, 0, number), "{sizes:?}");
        let missing = (0..number).find(|number| get(&segments, *number) != Some(size_of(*number)));
        assert_eq!(missing, None, "of {number} of {sizes:?}");
        assert!(case.disk_bytes() <= limit);
    }
}

#[test]
fn readers_miss_nothing_while_the_index_grows() {
    let case = Case::new();
    let options = Options::new().limit(16 << 20);
    let (segments, other) = (case.open(&options), case.open(&options));
    for number in 0..500 {
        put(&segments, number, 100);
    }
    let before = segments.stat().max_parts;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for handle in [&segments, &other] {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let missing = (0..500).find(|number| get(handle, *number).is_none());
                    assert_eq!(missing, None);
                }
            });
        }
        // Two handles store parts, so one grows the index under the other.
        let writers = [(&segments, 1000), (&other, 100_000)].map(|(handle, from)| {
            scope.spawn(move || {
                for number in from..from + 12_000 {
                    assert_eq!(put(handle, number, 100), Outcome::Kept);
                }
            })
        });
        for writer in writers {
            writer.join().expect("all were kept");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(segments.stat().max_parts >= before * 8, "it has grown");
    for number in (1000..13_000).chain(100_000..112_000) {
        assert_eq!(get(&segments, number), Some(100), "{number}");
        assert_eq!(get(&other, number), Some(100), "{number}");
    }
    drop((segments, other));
    // A rebuilt index has the same size.
    std::fs::remove_file(case.path().join("index")).expect("deleted");
    let again = case.open(&Options::new());
    assert!(again.stat().max_parts >= before * 8);
    assert!((1000..13_000).all(|number| get(&again, number) == Some(100)));
    assert_eq!(again.stat().displaced, 0);
}

#[test]
fn a_higher_limit_grows_the_index() {
    let case = Case::new();
    let segments = case.small();
    put(&segments, 1, 1000);
    let before = segments.stat().max_parts;
    segments.set_limit(1 << 30).expect("a limit");
    assert!(segments.stat().max_parts >= before * 8);
    assert_eq!(get(&segments, 1), Some(1000));
    assert_eq!(put(&segments, 2, 1000), Outcome::Kept);
}

#[test]
fn a_lower_limit_shrinks_the_index() {
    let case = Case::new();
    let segments = case.open(&Options::new().limit(16 << 30));
    for number in 0..20 {
        put(&segments, number, 100_000);
    }
    drop(segments);
    let segments = case.open(&Options::new().limit(4 << 20));
    assert!(case.disk_bytes() <= 4 << 20, "{} bytes", case.disk_bytes());
    for number in 100..200 {
        assert_eq!(put(&segments, number, 50_000), Outcome::Kept, "{number}");
        assert!(case.disk_bytes() <= 4 << 20, "{} bytes", case.disk_bytes());
    }
    assert_eq!(get(&segments, 199), Some(50_000));
}

#[test]
fn parts_displaced_from_an_index_that_cannot_grow_are_counted() {
    let case = Case::new();
    let segments = case.small();
    let data = bytes(1, 100);
    let parts = [Part { end: 100, checksum: checksum(&data) }];
    // All parts have the same name and number, so the same two sets: growth would not help.
    let put = |label: u8| {
        let label = &[label][..];
        let record =
            Record { name: name(1), first: 0, label, expiry: 0, parts: &parts, data: &data };
        segments.put(&record).expect("a put")
    };
    let outcomes: Vec<_> = (0..40).map(put).collect();
    assert!(outcomes[..30].iter().all(|outcome| *outcome == Outcome::Kept));
    assert!(outcomes[30..].iter().all(|outcome| *outcome == Outcome::Displaced { parts: 1 }));
    assert_eq!(segments.stat().displaced, 10);
    let found = |label: u8| segments.find(&Id::new(name(1), 0), &[label]).is_some();
    assert_eq!((0..40).filter(|label| found(*label)).count(), 30);
    assert!(found(39), "what is put is there");
}

#[test]
fn an_index_with_an_unfinished_copy_is_used_again() {
    let case = Case::new();
    let segments = case.small();
    put(&segments, 1, 1000);
    let path = case.path().join("index");
    let file = OpenOptions::new().write(true).open(&path).expect("an index");
    // As if a process died after it marked the index as being copied.
    file.write_all_at(&1_u64.to_le_bytes(), 64).expect("a mark");
    std::fs::write(case.path().join("index.new"), b"half").expect("a file");
    assert_eq!(put(&segments, 2, 1000), Outcome::Kept);
    let other = case.open(&small());
    for number in [1, 2] {
        assert_eq!(get(&other, number), Some(1000));
        assert!(segments.find(&Id::new(name(number), 0), LABEL).is_some());
    }
    assert_eq!(std::fs::read(&path).expect("an index")[64], 0);
    assert_eq!(segments.stat().rebuilt, 0);
}
