use crate::{Case, bytes, get, name, put, small};
use nuthatch_segments::{Check, Id, Options, Outcome};
use nuthatch_testing::random::Random;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

fn open(path: &Path) -> std::fs::File {
    OpenOptions::new().read(true).write(true).open(path).expect("a file")
}

fn flip(path: &Path, offset: u64) {
    let file = open(path);
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("a byte");
    file.write_all_at(&[byte[0] ^ 0x10], offset).expect("a byte");
}

#[test]
fn flipped_bits_are_misses_and_the_next_put_replaces_them() {
    let case = Case::new();
    let segments = case.small();
    for offset in [64, 80, 100, 200, 5_000, 10_000] {
        assert_eq!(put(&segments, 1, 10_000), Outcome::Kept, "before a flip at {offset}");
        let paths = case.files("seg");
        // This handle keeps heads in memory; another one has to read them.
        let other = case.small();
        flip(&paths[0], offset);
        assert_eq!(get(&other, 1), None, "a flip at {offset}");
        assert_eq!(put(&other, 1, 10_000), Outcome::Kept, "a flip at {offset}");
        assert_eq!(get(&other, 1), Some(10_000), "healed at {offset}");
        assert_eq!(get(&segments, 1), Some(10_000), "healed at {offset} for everybody");
        assert_eq!(other.stat().damaged, 1);
        drop(other);
        segments.clear().expect("space");
        assert_eq!(case.files("seg").len(), 0);
    }
}

/// The slot of an evicted segment is soon reused. Words that remained would count as lost parts of
/// the next segment in the slot.
#[test]
fn an_evicted_damaged_segment_leaves_no_words_in_the_index() {
    // In the header of the segment, and in the head of its first record.
    for offset in [0, 8, 80] {
        let case = Case::new();
        let segments = case.small();
        put(&segments, 0, 50_000);
        flip(&case.files("seg")[0], offset);
        drop(segments);
        let segments = case.small();
        for number in 1..400 {
            assert_eq!(put(&segments, number, 50_000), Outcome::Kept);
        }
        assert!(segments.stat().evicted > 0);
        let verified = segments.verify();
        assert_eq!((verified.damaged, verified.torn), (0, 0), "a flip at {offset}: {verified:?}");
        assert_eq!(segments.stat().parts, verified.good, "a flip at {offset}");
    }
}

#[test]
fn flipped_bits_of_a_segment_are_never_returned() {
    let case = Case::new();
    let mut missed = 0;
    for offset in 0..592 {
        let segments = case.small();
        segments.clear().expect("space");
        put(&segments, 1, 400);
        drop(segments);
        flip(&case.files("seg")[0], offset);
        missed += u64::from(get(&case.small(), 1).is_none());
    }
    // All flips are detected, except in the padding of the head and after the record.
    let head = 64 + 8 + 16;
    assert!(missed >= 64 + head + 400, "{missed} of 592 flips were found");
}

#[test]
fn a_truncated_or_deleted_file_is_a_miss() {
    let case = Case::new();
    let segments = case.small();
    put(&segments, 1, 100_000);
    put(&segments, 2, 100_000);
    let [path] = &case.files("seg")[..] else { panic!("one segment") };
    open(path).set_len(150_000).expect("truncated");
    assert_eq!((get(&segments, 1), get(&segments, 2)), (Some(100_000), None));
    open(path).set_len(0).expect("truncated");
    assert_eq!((get(&segments, 1), get(&segments, 2)), (None, None));
    assert_eq!(put(&segments, 1, 100_000), Outcome::Kept);
    std::fs::remove_file(path).expect("deleted");
    let other = case.small();
    assert_eq!(get(&other, 2), None);
    assert_eq!(put(&segments, 3, 100_000), Outcome::Kept);
    assert_eq!(get(&other, 3), Some(100_000), "it was put where others find it");
}

#[test]
fn bytes_that_were_read_before_are_checked_again() {
    for guard in [true, false] {
        let case = Case::new();
        let segments = case.open(&small().guard(guard));
        for offset in [300, 1024, 50_000, 99_999] {
            assert_eq!(put(&segments, 1, 100_000), Outcome::Kept, "before a flip at {offset}");
            for _ in 0..3 {
                assert_eq!(get(&segments, 1), Some(100_000), "before a flip at {offset}");
            }
            let paths = case.files("seg");
            let end = paths[0].metadata().expect("a file").len();
            flip(&paths[0], end.next_multiple_of(64) - 100_032 + offset);
            assert_eq!(get(&segments, 1), None, "a flip at {offset}");
            segments.clear().expect("space");
        }
        put(&segments, 1, 100_000);
        put(&segments, 2, 100_000);
        for number in [1, 2, 1, 2] {
            assert_eq!(get(&segments, number), Some(100_000));
        }
        open(&case.files("seg")[0]).set_len(150_000).expect("truncated");
        assert_eq!(get(&segments, 2), None, "its end is gone");
        assert_eq!(get(&segments, 1), Some(100_000), "the other one is whole");
    }
}

#[test]
fn a_view_of_a_truncated_file_does_not_end_the_process() {
    let case = Case::new();
    let segments = case.small();
    put(&segments, 1, 100_000);
    let found = segments.find(&Id::new(name(1), 0), crate::LABEL).expect("the part is stored");
    let view = found.view(0..100_000).expect("bytes").expect("a map");
    assert_eq!(view[..5000], bytes(1, 5000));
    let [path] = &case.files("seg")[..] else { panic!("one segment") };
    open(path).set_len(4096).expect("truncated");
    assert_eq!(view[90_000], 0, "what is cut off is zero");
    assert!(!view.is_intact(), "and the holder can tell");
    assert!(
        !matches!(found.view(0..100_000), Ok(Some(_))),
        "the damaged record is not returned again"
    );
}

#[test]
fn a_truncated_deleted_or_scrambled_index_is_rebuilt() {
    let case = Case::new();
    let segments = case.small();
    let index = || case.path().join("index");
    let damages: [&dyn Fn(); 5] = [
        &|| open(&index()).set_len(0).expect("truncated"),
        &|| std::fs::remove_file(index()).expect("deleted"),
        &|| std::fs::write(index(), b"nothing of the kind").expect("it is written over"),
        &|| (64..4096).step_by(8).for_each(|offset| flip(&index(), offset)),
        &|| open(&index()).set_len(5000).expect("truncated"),
    ];
    for (round, damage) in damages.iter().enumerate() {
        let number = round as u64;
        assert_eq!(put(&segments, number, 20_000), Outcome::Kept, "before {round}");
        damage();
        // Parts that are found are right. A put detects the damage and repairs it.
        let _ = get(&segments, number);
        put(&segments, 100 + number, 20_000);
        put(&segments, 200 + number, 20_000);
        assert_eq!(get(&segments, 200 + number), Some(20_000), "after {round}");
        let other = case.small();
        assert_eq!(get(&other, 200 + number), Some(20_000), "another one after {round}");
        assert_eq!(get(&other, number), Some(20_000), "what was there after {round}");
        assert!(case.disk_bytes() <= 4 << 20);
    }
    assert!(segments.stat().rebuilt > 0);
}

#[test]
fn segments_with_damaged_rows_still_count() {
    let case = Case::new();
    let segments = case.small();
    for number in 0..400 {
        put(&segments, number, 50_000);
        let rows = std::fs::read(case.path().join("index")).expect("an index");
        let rows = rows[4096..4096 + 256 * 64].chunks_exact(64);
        let in_use = rows.enumerate().filter(|(_, row)| row[24] != 0).map(|(slot, _)| slot);
        // The bytes that the row charges.
        let damaged = in_use.cycle().nth(number as usize).expect("a row");
        flip(&case.path().join("index"), 4096 + damaged as u64 * 64 + 17);
        assert!(case.disk_bytes() <= 4 << 20, "{} bytes after {number}", case.disk_bytes());
    }
}

#[test]
fn scrambled_words_of_the_index_return_no_wrong_bytes() {
    let case = Case::new();
    let segments = case.open(&small().check(Check::Once));
    for number in 0..50 {
        put(&segments, number, 3000);
    }
    let path = case.path().join("index");
    let file = open(&path);
    let mut words = std::fs::read(&path).expect("an index");
    let mut random = Random::new(1);
    let from = 4096 + 256 * 64;
    for _ in 0..200 {
        for byte in &mut words[from..] {
            if random.below(64) == 0 {
                *byte ^= 1 << random.below(8);
            }
        }
        file.write_all_at(&words[from..], from as u64).expect("words");
        for number in 0..50 {
            let _ = get(&segments, number);
        }
    }
    for number in 0..50 {
        put(&segments, number, 3000);
        assert_eq!(get(&segments, number), Some(3000), "{number} was healed");
    }
}

#[test]
fn unchecked_bytes_from_before_the_machine_started_are_checked_once() {
    // Changes the boot in the header, as in a segment of another boot.
    let case = Case::new();
    put(&case.small(), 1, 5_000);
    let [path] = &case.files("seg")[..] else { panic!("one segment") };
    let mut header = [0; 64];
    open(path).read_exact_at(&mut header, 0).expect("a header");
    header[32] ^= 1;
    let check = nuthatch_segments::checksum(&header[..56]);
    header[56..].copy_from_slice(&check.to_le_bytes());
    open(path).write_all_at(&header, 0).expect("a header");
    flip(path, 2000);
    let never = case.open(&Options::new().limit(4 << 20).check(Check::Never));
    assert_eq!(get(&never, 1), None);
}

#[test]
fn verify_removes_a_record_whose_head_was_zeroed() {
    let case = Case::new();
    let segments = case.small();
    for number in 1..=3 {
        assert_eq!(put(&segments, number, 9_000), Outcome::Kept);
    }
    let [path] = &case.files("seg")[..] else { panic!("one segment") };
    let bytes = std::fs::read(path).expect("a segment");
    // Multiples of 64 bytes that begin like the first head.
    let grains = bytes.chunks_exact(64).enumerate().skip(1);
    let mut heads = grains.filter(|(_, grain)| grain[..8] == bytes[64..72]).map(|(grain, _)| grain);
    let second = heads.nth(1).expect("a second head");
    open(path).write_all_at(&[0; 64], second as u64 * 64).expect("zeros");
    let other = case.small();
    let verified = other.verify();
    assert_eq!((verified.good, verified.damaged, verified.torn), (2, 1, 1));
    assert_eq!(other.stat().parts, 2, "no word leads to it");
    assert_eq!(other.verify().damaged, 0);
}

#[test]
fn a_pipe_in_place_of_a_segment_is_not_waited_for() {
    let case = Case::new();
    put(&case.small(), 1, 1000);
    let [path] = &case.files("seg")[..] else { panic!("one segment") };
    std::fs::remove_file(path).expect("deleted");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).expect("a pipe");
    let segments = case.small();
    assert_eq!(get(&segments, 1), None);
    assert_eq!(segments.verify().unreadable, 0, "it is known that it is no segment");
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
    assert_eq!(get(&segments, 1), Some(1000));
}

/// A handle that has the old index open does not see that segments are evicted. It has their parts
/// in memory, checked.
#[test]
fn a_reader_whose_index_was_deleted_reads_no_bytes_of_other_parts() {
    let case = Case::new();
    let options = small().check(Check::Once);
    let reader = case.open(&options);
    let kept: Vec<_> =
        (0..60).filter(|number| put(&reader, *number, 50_000) == Outcome::Kept).collect();
    for number in &kept {
        get(&reader, *number);
    }
    let before = case.files("seg");
    std::fs::remove_file(case.path().join("index")).expect("the index is deleted");
    let writer = case.open(&options);
    for number in 1_000..1_400 {
        assert_eq!(put(&writer, number, 50_000), Outcome::Kept);
        for number in &kept {
            get(&reader, *number);
        }
    }
    // One segment stays: the reader is still writing it.
    let left = before.iter().filter(|path| path.exists()).count();
    assert!(before.len() > 2 && left < 2, "{left} of {} segments were not evicted", before.len());
    let verified = writer.verify();
    assert_eq!((verified.damaged, verified.torn), (0, 0), "{verified:?}");
}

#[test]
fn check_always_checks_good_parts_again() {
    for (check, found) in [(Check::Always, false), (Check::Once, true), (Check::Never, true)] {
        let case = Case::new();
        let segments = case.open(&small().check(check));
        put(&segments, 1, 100_000);
        assert_eq!(segments.verify().good, 1, "and so it is known to be good");
        assert_eq!(get(&segments, 1), Some(100_000));
        let [path] = &case.files("seg")[..] else { panic!("one segment") };
        flip(path, 50_000);
        let there = segments.find(&Id::new(name(1), 0), crate::LABEL).expect("the part is stored");
        let read = there.read(0, &mut vec![0; 100_000]);
        assert_eq!(read.is_ok(), found, "{check:?}: {read:?}");
        // Another handle has not read the part.
        let other = case.open(&small().check(check));
        let there = other.find(&Id::new(name(1), 0), crate::LABEL);
        let read = there.map(|there| there.read(0, &mut vec![0; 100_000]));
        assert_eq!(read == Some(Ok(())), check == Check::Never, "{check:?}: {read:?}");
    }
}
