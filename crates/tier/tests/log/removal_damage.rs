//! Removal logs that are incomplete or damaged.

use crate::removals::{append, died, numbers, recovered};
use crate::{Case, Item, golden, live, log_files};
use nuthatch_tier::{Recovery, Tier, verify};
use std::fs;

/// The offset of the mark. The first entry follows it.
const MARK: usize = 4096;
const FIRST: usize = MARK + 8;

/// Opens the folder and returns the numbers of the items that are recovered.
fn open(case: &Case) -> (Tier, Recovery, Vec<u64>) {
    let (tier, recovery) = case.open();
    let found = numbers(&live(&tier.reader(), &recovery.removed));
    (tier, recovery, found)
}

#[test]
fn a_write_that_ends_at_any_byte_leaves_the_entries_before_it() {
    let case = died(|number| number < 5);
    let path = &log_files(&case.path())[0];
    let whole = fs::read(path).expect("a log");
    assert_eq!(whole.len(), 8192);
    for len in 0..=40 {
        let mut cut = whole.clone();
        cut[FIRST + len..].fill(0);
        fs::write(path, &cut).expect("a log");
        assert_eq!(verify(case.path(), |_, _| ()).expect("verified").damage, [], "{len} bytes");
        let (tier, recovery, found) = open(&case);
        assert_eq!(recovery.damage, [], "{len} bytes");
        let expected: Vec<_> = (len as u64 / 8..10).collect();
        assert_eq!(found, expected, "{len} bytes");
        // The next entries replace the incomplete one.
        let reader = tier.reader();
        let (directory, _) = reader.directory(1).expect("a directory");
        let ids = directory.iter().skip(8).filter_map(|entry| reader.record_id(entry.place));
        let ids: Vec<_> = ids.collect();
        tier.removals().expect("a log").append(&ids).expect("removed");
        drop(tier);
        let expected: Vec<_> = (len as u64 / 8..8).collect();
        assert_eq!(recovered(&case), expected, "{len} bytes");
        assert_eq!(log_files(&case.path()).len(), 1, "{len} bytes");
    }
}

#[test]
fn a_truncated_log_removes_all_records_that_it_may_name() {
    let case = died(|number| number < 5);
    let path = &log_files(&case.path())[0];
    let whole = fs::read(path).expect("a log");
    let lengths = (0..whole.len()).step_by(61).chain([4096, 4103, 4104, 4105, 8191]);
    for len in lengths {
        fs::write(path, &whole[..len]).expect("a log");
        let verified = verify(case.path(), |_, _| ()).expect("verified");
        assert_eq!(verified.damage.len(), 1, "{len} bytes");
        let (_, recovery, found) = open(&case);
        assert_eq!((recovery.damage.len(), found.len()), (1, 0), "{len} bytes");
        assert_eq!(recovery.damage, verified.damage);
    }
}

#[test]
fn a_flipped_bit_removes_all_records_that_the_log_may_name() {
    let case = died(|number| number < 5);
    let path = &log_files(&case.path())[0];
    let whole = fs::read(path).expect("a log");
    let bytes = (0..72).chain(4088..FIRST + 48).chain((FIRST + 48..8192).step_by(211));
    for (byte, bit) in bytes.flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
        let mut flipped = whole.clone();
        flipped[byte] ^= 1 << bit;
        // After the last entry, a lone low byte is what an incomplete write leaves.
        let is_incomplete = (FIRST + 40..FIRST + 47).contains(&byte);
        fs::write(path, &flipped).expect("a log");
        let verified = verify(case.path(), |_, _| ()).expect("verified");
        assert_eq!(verified.damage.len(), usize::from(!is_incomplete), "byte {byte}, bit {bit}");
        if bit == byte % 8 {
            let (_, recovery, found) = open(&case);
            assert_eq!(recovery.damage.len(), usize::from(!is_incomplete), "byte {byte}");
            let expected = if is_incomplete { vec![5, 6, 7, 8, 9] } else { vec![] };
            assert_eq!(found, expected, "byte {byte}");
        }
    }
}

#[test]
fn damage_removes_no_record_that_was_appended_after_the_next_log_began() {
    let case = died(|number| number < 5);
    let path = &log_files(&case.path())[0];
    let mut bytes = fs::read(path).expect("a log");
    bytes[FIRST + 3] ^= 1;
    fs::write(path, &bytes).expect("a log");
    let (mut tier, recovery, found) = open(&case);
    assert_eq!((recovery.damage.len(), found.len()), (1, 0));
    let removals = tier.removals().expect("a log");
    assert_eq!(log_files(&case.path()).len(), 2, "the damaged one is not appended to");
    append(&mut tier, &Item::new(20, 100));
    let id = append(&mut tier, &Item::new(21, 100));
    tier.flush().expect("flushed");
    removals.append(&[id]).expect("removed");
    drop(tier);
    let (mut tier, recovery, found) = open(&case);
    assert_eq!((recovery.damage.len(), found), (1, vec![20]));
    assert!(recovery.removed.in_file(1).is_all() && !recovery.removed.in_file(2).is_all());
    tier.remove_oldest().expect("removed");
    assert_eq!(log_files(&case.path()).len(), 1, "the damaged one is removed with its item files");
    drop(tier);
    assert_eq!(recovered(&case), [20]);
}

/// Returns a folder with three files of the log, and items that were appended before each of them.
fn three_logs() -> Case {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let removals = tier.removals().expect("a log");
    for number in 0..3 {
        append(&mut tier, &Item::new(number * 2, 100));
        let id = append(&mut tier, &Item::new(number * 2 + 1, 100));
        // A file of the log has room for 1,535 entries.
        for count in [500, 500, 500] {
            removals.append(&vec![id; count]).expect("removed");
        }
    }
    tier.flush().expect("flushed");
    case
}

#[test]
fn a_missing_log_removes_the_records_that_it_may_name() {
    let case = three_logs();
    let logs = log_files(&case.path());
    assert_eq!(logs.len(), 3);
    let whole = fs::read(&logs[1]).expect("a log");
    fs::remove_file(&logs[1]).expect("removed");
    let (_, recovery, found) = open(&case);
    assert_eq!(recovery.damage[0].file, "removed-0000000002.log");
    assert!(found.is_empty() || found == [4], "{found:?}");
    // A log that lost its end is found by the header of the next one.
    let mut cut = whole.clone();
    cut[whole.len() - 4096..].fill(0);
    fs::write(&logs[1], &cut).expect("a log");
    let (_, recovery, found) = open(&case);
    assert_eq!(recovery.damage.len(), 1, "{:?}", recovery.damage);
    assert!(found.is_empty() || found == [4], "{found:?}");
    fs::write(&logs[1], &whole).expect("a log");
    assert_eq!(recovered(&case), [0, 2, 4]);
}

#[test]
fn a_log_of_another_folder_is_damage() {
    let (case, other) = (died(|number| number < 5), died(|_| false));
    fs::copy(&log_files(&other.path())[0], &log_files(&case.path())[0]).expect("a copy");
    let (_, recovery, found) = open(&case);
    assert!(recovery.damage[0].reason.contains("another folder"), "{:?}", recovery.damage);
    assert_eq!(found, [0; 0]);
}

#[test]
fn a_folder_without_a_log_opens_as_before_and_can_begin_one() {
    let case = Case::new();
    golden::copy(&case.path());
    let (mut tier, recovery) = case.open();
    // The folder is from another boot of the system, which counts as a loss of power: the next
    // opening would remove the log.
    tier.trust_records().expect("trusted");
    assert_eq!((recovery.records, recovery.damage.len()), (6, 0));
    let reader = tier.reader();
    assert!(reader.numbers().iter().all(|number| recovery.removed.in_file(*number).is_empty()));
    assert_eq!(log_files(&case.path()).len(), 0);
    let removals = tier.removals().expect("a log");
    let (directory, _) = reader.directory(1).expect("a directory");
    let entry = directory.iter().next().expect("an entry");
    let id = reader.record_id(entry.place).expect("a file");
    removals.append(&[id]).expect("removed");
    drop(tier);
    let (tier, recovery) = case.open();
    let (directory, _) = tier.reader().directory(1).expect("a directory");
    let units = recovery.removed.in_file(1);
    let removed: Vec<_> =
        directory.iter().map(|entry| units.contains(entry.place.unit, entry.hash)).collect();
    assert_eq!(removed, [true, false, false, false, false]);
}
