//! What a folder keeps, whatever happens to its index.

use crate::{Case, get, put, small};
use nuthatch_segments::{Clock, Error, Options, Outcome, Segments};
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[test]
fn a_damaged_or_deleted_index_does_not_change_the_limit() {
    for damage in 0..3 {
        let case = Case::new();
        let options = Options::new().limit(64 << 20).min_free(12_345);
        put(&case.open(&options), 1, 1000);
        let index = case.path().join("index");
        match damage {
            0 => fs::write(&index, vec![0xFF; 9000]).expect("it is written over"),
            1 => fs::remove_file(&index).expect("deleted"),
            _ => fs::write(&index, b"").expect("it is emptied"),
        }
        let segments = case.open(&Options::new());
        let stat = segments.stat();
        assert_eq!((stat.limit, stat.min_free), (64 << 20, 12_345), "damage {damage}");
        assert_eq!(get(&segments, 1), Some(1000), "damage {damage}");
    }
}

#[test]
fn a_newer_index_is_not_replaced_while_a_process_has_the_folder_open() {
    let case = Case::new();
    let segments = case.small();
    put(&segments, 1, 1000);
    let index = case.path().join("index");
    let mut bytes = fs::read(&index).expect("an index");
    // A newer version. The checksum covers the bytes before it.
    bytes[8..12].copy_from_slice(&99_u32.to_le_bytes());
    for end in [24, 40] {
        let check = nuthatch_segments::checksum(&bytes[..end]);
        let mut newer = bytes.clone();
        newer[end..end + 8].copy_from_slice(&check.to_le_bytes());
        fs::remove_file(&index).expect("deleted");
        fs::write(&index, &newer).expect("another one");
        let version = nuthatch_segments::Segments::open(case.path(), &Options::new());
        if version.is_ok() {
            continue;
        }
        for number in 2..200 {
            put(&segments, number, 50_000);
        }
        assert_eq!(fs::read(&index).expect("an index"), newer, "it was replaced");
        return;
    }
    panic!("no version was refused");
}

#[test]
fn damaged_settings_are_written_again_from_the_index() {
    for bytes in [&b""[..], &[0xFF; 64]] {
        let case = Case::new();
        drop(case.open(&Options::new().limit(64 << 20)));
        let path = case.path().join("settings");
        let before = fs::read(&path).expect("settings");
        fs::write(&path, bytes).expect("damage");
        assert_eq!(case.open(&Options::new()).stat().limit, 64 << 20);
        assert_eq!(fs::read(&path).expect("settings"), before);
    }
}

#[test]
fn a_folder_of_unknown_limit_is_refused_until_an_option_sets_the_limit() {
    let case = Case::new();
    put(&case.open(&Options::new().limit(64 << 20)), 1, 1000);
    fs::write(case.path().join("settings"), b"damage").expect("damage");
    fs::write(case.path().join("index"), b"damage").expect("damage");
    let error = Segments::open(case.path(), &Options::new()).expect_err("no limit is known");
    assert!(matches!(error, Error::Settings { .. }), "{error}");
    let segments = case.open(&Options::new().limit(32 << 20));
    assert_eq!((segments.stat().limit, get(&segments, 1)), (32 << 20, Some(1000)));
    assert_eq!(case.open(&Options::new()).stat().limit, 32 << 20);
}

#[test]
fn newer_settings_and_segments_are_left_as_they_are() {
    let newer = |path: &std::path::Path, check: usize| {
        let mut bytes = fs::read(path).expect("a file");
        bytes[8] = 99;
        let sum = nuthatch_segments::checksum(&bytes[..check]);
        bytes[check..check + 8].copy_from_slice(&sum.to_le_bytes());
        fs::write(path, &bytes).expect("a newer version");
        bytes
    };
    let case = Case::new();
    put(&case.small(), 1, 1000);
    let path = case.files("seg")[0].clone();
    let segment = newer(&path, 56);
    // The index is rebuilt, and even so the segment stays and counts towards the limit.
    fs::remove_file(case.path().join("index")).expect("deleted");
    let segments = case.small();
    for number in 2..200 {
        put(&segments, number, 50_000);
    }
    assert_eq!(segments.verify().unreadable, 0, "no row has it");
    segments.clear().expect("space");
    assert_eq!(fs::read(&path).expect("a segment"), segment);
    drop(segments);
    let settings = newer(&case.path().join("settings"), 56);
    let error = Segments::open(case.path(), &small()).expect_err("a newer version");
    assert!(matches!(error, Error::Version { found: 99, .. }), "{error}");
    assert_eq!(fs::read(case.path().join("settings")).expect("settings"), settings);
}

#[test]
fn a_directory_in_place_of_the_index_is_an_error_with_a_remedy() {
    let case = Case::new();
    fs::create_dir_all(case.path().join("index")).expect("a folder");
    let error = Segments::open(case.path(), &small()).expect_err("a directory").to_string();
    let expected = "index: expected a file, found a directory; remove it";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn the_limits_of_an_index_of_version_1_hold_when_it_is_made_again() {
    let case = Case::new();
    fs::create_dir(case.path()).expect("a folder");
    let mut bytes = vec![0; 4096 + 256 * 64 + 256 * 128];
    bytes[..12].copy_from_slice(b"NUTINDEX\x01\0\0\0");
    bytes[96..104].copy_from_slice(&(64_u64 << 20).to_le_bytes());
    bytes[104..112].copy_from_slice(&12_345_u64.to_le_bytes());
    let mut checked = [0x5A; 24];
    checked[..16].copy_from_slice(&bytes[96..112]);
    bytes[112..120].copy_from_slice(&nuthatch_segments::checksum(&checked).to_le_bytes());
    bytes[12] = 64;
    bytes[17] = 1;
    let check = nuthatch_segments::checksum(&bytes[..24]);
    bytes[24..32].copy_from_slice(&check.to_le_bytes());
    fs::write(case.path().join("index"), &bytes).expect("an index");
    let segments = case.open(&Options::new());
    assert_eq!((segments.stat().limit, segments.stat().min_free), (64 << 20, 12_345));
    assert_eq!(put(&segments, 1, 1000), Outcome::Kept);
}

/// A clock that runs an action when it is first read.
struct Interrupt(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Clock for Interrupt {
    fn now_ms(&self) -> u64 {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(action) = first {
            action();
        }
        1
    }
}

#[test]
fn other_processes_put_while_a_segment_is_reclaimed() {
    let case = Case::new();
    let clock = Arc::new(Interrupt(Mutex::default()));
    let slow = case.open(&small().clock(clock.clone()));
    for number in 0..70 {
        assert_eq!(put(&slow, number, 50_000), Outcome::Kept);
    }
    // A put that does not wait for the table lock, and needs it to begin a segment.
    let other = case.open(&small().patience(Duration::ZERO));
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let done = outcomes.clone();
    *clock.0.lock().expect("the clock") = Some(Box::new(move || {
        let mut done = done.lock().expect("outcomes");
        done.extend((100..104).map(|number| put(&other, number, 400_000)));
    }));
    assert!(slow.clear().is_ok());
    assert_eq!(*outcomes.lock().expect("outcomes"), [Outcome::Kept; 4]);
    assert!(case.disk_bytes() <= 4 << 20);
}

#[test]
fn a_process_outlives_any_number_of_indexes() {
    let case = Case::new();
    let segments = case.small();
    for round in 0..200 {
        assert_eq!(put(&segments, round, 100), Outcome::Kept, "round {round}");
        fs::remove_file(case.path().join("index")).expect("deleted");
        // Another process creates another index.
        drop(case.small());
        segments.prune(None).expect("a folder that can be used");
        assert_eq!(put(&segments, 1000 + round, 20_000), Outcome::Kept, "round {round}");
    }
    assert_eq!(get(&segments, 1199), Some(20_000));
}
