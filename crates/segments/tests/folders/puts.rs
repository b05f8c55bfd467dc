use crate::{Case, LABEL, bytes, get, name, put, put_bytes, small};
use nuthatch_segments::{Error, Id, Options, Outcome, Part, Record, Segments, checksum};

#[test]
fn stored_parts_are_found_by_every_handle_and_after_a_restart() {
    let case = Case::new();
    let first = case.small();
    let second = case.small();
    assert_eq!(put(&first, 1, 1000), Outcome::Kept);
    assert_eq!(get(&first, 1), Some(1000));
    assert_eq!(get(&second, 1), Some(1000));
    assert_eq!(get(&second, 2), None);
    assert_eq!(put(&second, 2, 5), Outcome::Kept);
    assert_eq!(get(&first, 2), Some(5));
    drop((first, second));
    let third = case.small();
    assert_eq!((get(&third, 1), get(&third, 2)), (Some(1000), Some(5)));
    assert_eq!(third.stat().writing, 0, "what was closed is sealed");
}

#[test]
fn parts_of_a_record_are_read_alone_and_together() {
    let case = Case::new();
    let segments = case.small();
    let data = bytes(3, 1000);
    let ends = [1, 64, 700, 1000];
    let mut start = 0;
    let parts = ends.map(|end| {
        let sum = checksum(&data[start..end]);
        start = end;
        Part { end: end as u64, checksum: sum }
    });
    let name = name(3);
    let record = Record { name, first: 10, label: LABEL, expiry: 0, parts: &parts, data: &data };
    segments.put(&record).expect("a put");
    assert!(segments.find(&Id::new(name, 9), LABEL).is_none());
    assert!(segments.find(&Id::new(name, 14), LABEL).is_none());
    assert!(segments.find(&Id::new(name, 10), b"another label").is_none());
    let found = segments.find(&Id::new(name, 12), LABEL).expect("the part is stored");
    assert_eq!((found.numbers(), found.part_len(12), found.part_start(12)), (10..14, 636, 64));
    for (from, to) in [(0, 1000), (0, 1), (63, 65), (64, 700), (65, 66), (999, 1000)] {
        let mut out = vec![0; to - from];
        found.read(from as u64, &mut out).expect("bytes");
        assert_eq!(out, data[from..to], "{from}..{to}");
        let view = found.view(from as u64..to as u64).expect("bytes").expect("a map");
        assert_eq!(*view, data[from..to], "{from}..{to}, view");
    }
    assert!(found.read(999, &mut [0; 2]).is_err(), "beyond the end");
    assert!(found.view(999..1001).is_err(), "beyond the end");
}

#[test]
fn lengths_beyond_the_limits_are_refused() {
    let case = Case::new();
    let segments = case.small();
    let max_len = segments.max_part_len() as usize;
    assert_eq!(put(&segments, 1, max_len), Outcome::Kept);
    let refused = |data: &[u8], label: &[u8], ends: &[u64]| {
        let parts: Vec<_> = ends.iter().map(|end| Part { end: *end, checksum: 0 }).collect();
        let record = Record { name: name(1), first: 0, label, expiry: 0, parts: &parts, data };
        matches!(segments.put(&record), Err(Error::Length { .. }))
    };
    assert!(refused(&vec![0; max_len + 1], LABEL, &[max_len as u64 + 1]), "a part too long");
    assert!(refused(&[], LABEL, &[]), "no parts");
    assert!(refused(&[], LABEL, &[0]), "an empty part");
    assert!(refused(&[1, 2], LABEL, &[1, 1]), "an empty part");
    assert!(refused(&[1, 2], LABEL, &[2, 1]), "ends that go back");
    assert!(refused(&[1, 2], LABEL, &[1]), "too much data");
    assert!(refused(&[1], &vec![0; 1 << 15], &[1]), "a label too long");
    assert!(matches!(
        Segments::open(case.path(), &Options::new().limit(1)),
        Err(Error::Options { option: "limit", .. })
    ));
}

#[test]
fn a_duplicate_part_does_not_replace_the_stored_one() {
    let case = Case::new();
    let (first, second) = (case.small(), case.small());
    put(&first, 1, 100);
    assert_eq!(put(&second, 1, 100), Outcome::Duplicate { conflict: None });
    assert_eq!(put_bytes(&second, 1, b"other"), Outcome::Duplicate { conflict: Some(0) });
    assert_eq!(get(&second, 1), Some(100));
}

#[test]
fn removed_and_expired_parts_are_misses() {
    use nuthatch_segments::ManualClock;
    use std::sync::Arc;
    let case = Case::new();
    let clock = Arc::new(ManualClock::new(100));
    let segments = case.open(&small().clock(clock.clone()));
    let data = bytes(1, 50);
    let parts = [Part { end: 50, checksum: checksum(&data) }];
    let record =
        Record { name: name(1), first: 0, label: LABEL, expiry: 200, parts: &parts, data: &data };
    segments.put(&record).expect("a put");
    put(&segments, 2, 60);
    assert_eq!((get(&segments, 1), get(&segments, 2)), (Some(50), Some(60)));
    segments.remove(&Id::new(name(2), 0));
    clock.set(200);
    assert_eq!((get(&segments, 1), get(&segments, 2)), (None, None));
    segments.prune(None).expect("space");
    assert_eq!(segments.stat().segments, 0, "a segment without anything goes");
    assert_eq!((put(&segments, 1, 50), put(&segments, 2, 60)), (Outcome::Kept, Outcome::Kept));
    assert_eq!((get(&segments, 1), get(&segments, 2)), (Some(50), Some(60)));
}

#[test]
fn small_writers_one_after_the_other_share_a_segment() {
    let case = Case::new();
    for number in 0..20 {
        put(&case.small(), number, 100);
    }
    let segments = case.small();
    assert_eq!(segments.stat().segments, 1);
    assert!((0..20).all(|number| get(&segments, number) == Some(100)));
}

#[test]
fn a_segment_that_is_written_has_only_zeros_after_its_records() {
    let case = Case::new();
    let segments = case.open(&Options::new().limit(64 << 20));
    for number in 0..150 {
        assert_eq!(put(&segments, number, 700_000), Outcome::Kept);
        assert!(case.disk_bytes() <= 64 << 20, "{} bytes after {number}", case.disk_bytes());
        assert_eq!(get(&segments, number), Some(700_000));
    }
    let found = case.open(&Options::new()).verify();
    assert!(found.damaged == 0 && found.torn <= 1, "{found:?}: one may be written over");
    drop(segments);
    let verified = case.open(&Options::new()).verify();
    assert_eq!((verified.damaged, verified.torn), (0, 0));
    let lens = case.files("seg").into_iter().map(|path| path.metadata().expect("a file").len());
    assert!(lens.max() < Some(4 << 20), "what was not used is given back");
}

#[test]
fn a_view_reaches_records_appended_after_the_segment_was_mapped() {
    let case = Case::new();
    let segments = case.open(&Options::new().limit(16 << 30).parts(1024));
    let view = |number| {
        let found = segments.find(&Id::new(name(number), 0), LABEL).expect("the part is stored");
        found.view(0..1 << 20).expect("bytes").is_some()
    };
    let data = bytes(1, 1 << 20);
    for number in 0..100 {
        assert_eq!(put_bytes(&segments, number, &data), Outcome::Kept);
        assert!(number % 33 != 0 || view(number), "{number} MiB");
    }
    assert_eq!(case.files("seg").len(), 1);
}

#[test]
fn sealing_keeps_the_time_of_the_last_put() {
    let case = Case::new();
    let segments = case.open(&Options::new().limit(1 << 30));
    put(&segments, 1, 100_000);
    let [path] = &case.files("seg")[..] else { panic!("one segment") };
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let file = std::fs::File::options().write(true).open(path).expect("a file");
    file.set_modified(long_ago).expect("a time");
    let before = file.metadata().expect("a file").len();
    drop(segments);
    let after = file.metadata().expect("a file");
    assert!(after.len() < before, "what was not used is given back");
    assert_eq!(after.modified().expect("a time"), long_ago);
}
