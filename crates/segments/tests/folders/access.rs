//! Folders that become read-only, or writable, while they are open.

use crate::other_user::{folder_of_child, run_test_as_another_user, set_mode};
use crate::{Case, get, put};
use nuthatch_segments::{Contents, Error, NotKeptReason, Options, Outcome, Segments, Warning};
use std::path::Path;

const REFUSED: Outcome = Outcome::NotKept(NotKeptReason::ReadOnly);

/// Runs a test in a folder that any user may change.
fn run_in_a_folder_for_all(test: &str) {
    let case = Case::new();
    let place = case.path();
    std::fs::create_dir(&place).expect("a folder");
    set_mode(&place, 0o777);
    set_mode(place.parent().expect("a folder"), 0o777);
    run_test_as_another_user(&case, &format!("access::{test}"));
}

fn open(folder: &Path) -> Segments {
    let options = Options::new().limit(4 << 20).segment_len(256 << 10).min_free(0);
    Segments::open(folder, &options).expect("a folder")
}

/// Returns the parts of the first `count` numbers that are stored.
fn present_parts(segments: &Segments, count: u64) -> Vec<u64> {
    (0..count).filter(|number| get(segments, *number) == Some(50_000)).collect()
}

#[test]
fn a_folder_that_becomes_read_only_is_served_and_loses_nothing() {
    run_in_a_folder_for_all("child_makes_its_folder_read_only");
}

#[test]
fn child_makes_its_folder_read_only() {
    let Some(folder) = folder_of_child().map(|folder| folder.join("cache")) else { return };
    let segments = open(&folder);
    let mut count = 0;
    // Fills the folder until each further segment needs space.
    while segments.stat().evicted == 0 {
        assert_eq!(put(&segments, count, 50_000), Outcome::Kept);
        count += 1;
    }
    let before = present_parts(&segments, count);
    assert!(before.len() > 40, "{before:?}");
    set_mode(&folder, 0o500);
    // The open segment is filled. After that, nothing is stored.
    let mut filled = Vec::new();
    while put(&segments, count, 50_000) == Outcome::Kept {
        filled.push(count);
        count += 1;
    }
    assert!(filled.len() < 6, "{filled:?}");
    for number in count..count + 100 {
        assert_eq!(put(&segments, number, 50_000), REFUSED);
    }
    let expected: Vec<_> = before.into_iter().chain(filled).collect();
    assert_eq!(present_parts(&segments, count), expected, "a refused put evicted something");
    let stat = segments.stat();
    assert!(stat.read_only && segments.is_read_only());
    assert_eq!((stat.not_kept, stat.damaged, stat.evicted), (101, 0, 1));
    assert!(matches!(segments.warnings()[..], [Warning::ReadOnly { .. }]));
    for error in [segments.prune(Some(1 << 20)).err(), segments.pin([1; 16], true).err()] {
        assert!(matches!(error, Some(Error::ReadOnly { .. })), "{error:?}");
    }
    // Another handle finds the same.
    assert_eq!(present_parts(&open(&folder), count), expected);
    set_mode(&folder, 0o700);
    assert_eq!(put(&segments, count, 50_000), Outcome::Kept);
    assert_eq!(get(&segments, count), Some(50_000));
    assert!(!segments.is_read_only() && segments.warnings().is_empty());
}

#[test]
fn a_folder_that_becomes_writable_is_written_without_being_opened_again() {
    run_in_a_folder_for_all("child_makes_its_folder_writable");
}

#[test]
fn child_makes_its_folder_writable() {
    let Some(folder) = folder_of_child().map(|folder| folder.join("cache")) else { return };
    let index = folder.join("index");
    assert_eq!(put(&open(&folder), 0, 50_000), Outcome::Kept);
    // The mode of the folder, then of its index.
    for (number, path, denied, allowed) in [(1, &folder, 0o500, 0o700), (2, &index, 0o400, 0o600)] {
        set_mode(path, denied);
        let segments = open(&folder);
        assert_eq!(put(&segments, number, 50_000), REFUSED);
        assert!(segments.stat().read_only);
        assert!(segments.try_fetch_lock(0..1).expect("a fetch lock").is_some());
        set_mode(path, allowed);
        assert_eq!(put(&segments, number, 50_000), Outcome::Kept, "{number}");
        assert_eq!(present_parts(&segments, 3).len() as u64, number + 1);
        assert!(!segments.stat().read_only && segments.warnings().is_empty());
        assert_eq!(segments.stat().not_kept, 1);
        // Another handle finds the part.
        assert_eq!(get(&open(&folder), number), Some(50_000));
    }
}

#[test]
fn a_folder_that_may_not_be_listed_is_an_error_and_not_empty() {
    run_in_a_folder_for_all("child_looks_at_a_folder_that_may_not_be_listed");
}

#[test]
fn child_looks_at_a_folder_that_may_not_be_listed() {
    let Some(folder) = folder_of_child().map(|folder| folder.join("cache")) else { return };
    drop(open(&folder));
    for mode in [0o000, 0o300] {
        set_mode(&folder, mode);
        let found = Contents::of(&folder).map_err(|error| error.to_string());
        let shown = folder.display();
        let message =
            format!("cannot list the folder {shown}: Permission denied (os error 13); run ");
        assert!(found.as_ref().is_err_and(|error| error.starts_with(&message)), "{found:?}");
        let error = Segments::open(&folder, &Options::new()).expect_err("it is denied");
        assert!(error.to_string().contains("; run as the owner of the folder"), "{error}");
    }
    set_mode(&folder, 0o700);
    assert_eq!(Contents::of(&folder).expect("a folder"), Contents::Segments);
    assert_eq!(Contents::of(folder.join("none")).expect("no folder"), Contents::Nothing);
    std::fs::write(folder.join("file"), b"").expect("a file");
    Contents::of(folder.join("file")).expect_err("a file is no folder");
}
