//! Removed records: after a crash, after closing, and within the budget.

use crate::disks::{LogDisk, LogFailure};
use crate::writing::disk_bytes;
use crate::{Case, Item, item_files, live, log_files, small};
use nuthatch_testing::random::Random;
use nuthatch_tier::{Error, Options, RecordId, Removals, Tier, stat, verify};
use std::path::Path;
use std::sync::Arc;

/// Appends an item. Returns the id of its record.
pub(crate) fn append(tier: &mut Tier, item: &Item) -> RecordId {
    let place = tier.append(&item.record()).expect("appended");
    tier.reader().record_id(place).expect("a file")
}

/// Returns a folder with ten items, those of `is_removed` removed, whose process died.
pub(crate) fn died(is_removed: impl Fn(u64) -> bool) -> Case {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let removals = tier.removals().expect("a log");
    let ids: Vec<_> = (0..10).map(|number| append(&mut tier, &Item::new(number, 100))).collect();
    tier.flush().expect("flushed");
    let removed: Vec<_> = (0..10).zip(ids).filter(|(number, _)| is_removed(*number)).collect();
    let removed: Vec<_> = removed.into_iter().map(|(_, id)| id).collect();
    removals.append(&removed).expect("removed");
    case
}

/// Returns the numbers of the items that are recovered.
pub(crate) fn recovered(case: &Case) -> Vec<u64> {
    let (tier, recovery) = case.open();
    assert_eq!(recovery.damage, []);
    numbers(&live(&tier.reader(), &recovery.removed))
}

pub(crate) fn numbers(items: &[Item]) -> Vec<u64> {
    let number = |item: &Item| {
        let text = String::from_utf8_lossy(&item.key).into_owned();
        text.trim_start_matches("key:").parse().expect("a number")
    };
    items.iter().map(number).collect()
}

#[test]
fn removed_records_are_not_recovered_after_a_crash() {
    let case = died(|number| number % 3 == 0);
    for _ in 0..2 {
        assert_eq!(recovered(&case), [1, 2, 4, 5, 7, 8]);
    }
}

#[test]
fn removed_records_are_not_recovered_after_closing_and_entries_accumulate() {
    let case = died(|number| number < 3);
    for round in 0..3 {
        let (mut tier, recovery) = case.open();
        let removals = tier.removals().expect("a log");
        let reader = tier.reader();
        let next = live(&reader, &recovery.removed)[0].clone();
        let (directory, _) = reader.directory(1).expect("a directory");
        let entry = directory.iter().nth(3 + round).expect("an entry");
        assert_eq!(entry.hash, next.record().hash);
        let id = reader.record_id(entry.place).expect("a file");
        assert_eq!(reader.place(id, entry.place.blocks), Some(entry.place));
        removals.append(&[id]).expect("removed");
        append(&mut tier, &Item::new(100 + round as u64, 10));
        tier.close().expect("closed");
        let refused = removals.append(&[id]).expect_err("the tier is closed");
        assert!(matches!(refused, Error::Closed { .. }), "{refused}");
    }
    assert_eq!(recovered(&case), [6, 7, 8, 9, 100, 101, 102]);
    assert_eq!(log_files(&case.path()).len(), 1, "the same log is continued");
}

#[test]
fn removing_all_records_includes_the_batch_in_memory_and_no_later_record() {
    for closes in [false, true] {
        let case = Case::new();
        let (mut tier, _) = case.open();
        let removals = tier.removals().expect("a log");
        append(&mut tier, &Item::new(1, 20_000));
        tier.seal().expect("sealed");
        append(&mut tier, &Item::new(2, 100));
        tier.flush().expect("flushed");
        append(&mut tier, &Item::new(3, 100));
        removals.append_all().expect("removed");
        let id = append(&mut tier, &Item::new(4, 100));
        append(&mut tier, &Item::new(5, 100));
        removals.append(&[id]).expect("removed");
        tier.flush().expect("flushed");
        if closes {
            tier.close().expect("closed");
        } else {
            drop(tier);
        }
        let (tier, recovery) = case.open();
        assert_eq!(numbers(&live(&tier.reader(), &recovery.removed)), [5]);
        assert!(recovery.removed.in_file(1).is_all() && !recovery.removed.in_file(2).is_all());
        // The records that were recovered are removed, too.
        tier.removals().expect("a log").append_all().expect("removed");
        drop(tier);
        assert_eq!(recovered(&case), [0; 0]);
    }
}

#[test]
fn a_removed_record_is_not_taken_for_one_of_a_later_file_with_its_number() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let removals = tier.removals().expect("a log");
    append(&mut tier, &Item::new(1, 100));
    tier.seal().expect("sealed");
    // The batch is lost, and the file with it. Its entry stays, because of the first file.
    let id = append(&mut tier, &Item::new(2, 100));
    removals.append(&[id]).expect("removed");
    drop(tier);
    let (mut tier, recovery) = case.open();
    assert!(recovery.removed.in_file(2).is_empty());
    let later = append(&mut tier, &Item::new(3, 100));
    assert_eq!(later, RecordId { file: 3, ..id });
    tier.flush().expect("flushed");
    drop(tier);
    assert_eq!(recovered(&case), [1, 3]);
}

#[test]
fn ids_of_removed_files_are_left_out_and_logs_are_removed_with_the_files_they_name() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let removals = tier.removals().expect("a log");
    let old = append(&mut tier, &Item::new(1, 100));
    tier.seal().expect("sealed");
    let new = append(&mut tier, &Item::new(2, 100));
    tier.flush().expect("flushed");
    // A file of the log has room for 1,535 entries, and a write is not divided.
    for _ in 0..10 {
        removals.append(&vec![old; 1000]).expect("removed");
    }
    assert_eq!(log_files(&case.path()).len(), 10);
    let used = tier.used_bytes();
    tier.remove_oldest().expect("removed");
    assert_eq!(log_files(&case.path()).len(), 1);
    assert!(tier.used_bytes() + (64 << 10) < used);
    let before = log_bytes(&case.path());
    removals.append(&vec![old; 1000]).expect("left out");
    assert!(log_bytes(&case.path()) == before);
    removals.append(&[new]).expect("removed");
    drop(tier);
    assert_eq!(recovered(&case), [0; 0]);
    let (mut tier, _) = case.open();
    tier.clear().expect("cleared");
    assert_eq!(log_files(&case.path()).len(), 0);
}

fn log_bytes(folder: &Path) -> Vec<Vec<u8>> {
    log_files(folder).iter().map(|path| std::fs::read(path).expect("a log")).collect()
}

#[test]
fn the_budget_holds_at_all_times_while_the_log_grows_and_shrinks() {
    let case = Case::new();
    let options = Options { max_bytes: 600 << 10, ..small() };
    let (mut tier, _) = Tier::open(case.path(), &options).expect("a tier");
    let removals = tier.removals().expect("a log");
    let (mut random, mut ids, mut removed_files, mut logs) = (Random::new(5), Vec::new(), 0, 0);
    let mut last_log = None;
    for number in 0..3000 {
        let item = Item::random(number, &mut random, 1000);
        let place = loop {
            match tier.append(&item.record()) {
                Ok(place) => break place,
                Err(error) => assert!(error.is_budget_reached(), "{error}"),
            }
            tier.remove_oldest().expect("removed").expect("a file");
            removed_files += 1;
        };
        ids.push(tier.reader().record_id(place).expect("a file"));
        let some: Vec<_> = (0..20).map(|_| ids[random.below(ids.len() as u64) as usize]).collect();
        removals.append(&some).expect("the headroom is enough");
        if number % 20 == 0 {
            let (disk, used) = (disk_bytes(&case), tier.used_bytes());
            assert!(disk <= used && used <= tier.max_bytes(), "{disk} {used}");
            let files = log_files(&case.path());
            assert!(files.len() < 40, "{} files of the log", files.len());
            logs += u32::from(files.last() != last_log.as_ref());
            last_log = files.last().cloned();
        }
    }
    assert!(removed_files > 15 && logs > 10, "{removed_files} files, {logs} files of the log");
    tier.close().expect("closed");
    let (tier, recovery) = Tier::open(case.path(), &options).expect("a tier");
    assert_eq!((recovery.damage.len(), recovery.removed_files), (0, 0));
    assert!(tier.used_bytes() <= tier.max_bytes());
}

#[test]
fn many_threads_append_at_the_same_time() {
    let case = Case::new();
    let (mut tier, _) = case.open();
    let removals = tier.removals().expect("a log");
    let file = append(&mut tier, &Item::new(1, 100)).file;
    tier.flush().expect("flushed");
    let ids = |thread: u32, number: u32| {
        (0..=number % 3).map(move |index| {
            let unit = 1000 + thread * 6000 + number * 3 + index;
            RecordId { file, unit }
        })
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let removals = removals.clone();
            scope.spawn(move || {
                for number in 0..1000 {
                    let ids: Vec<_> = ids(thread, number).collect();
                    removals.append(&ids).expect("removed");
                }
            });
        }
    });
    assert!(tier.used_bytes() <= tier.max_bytes());
    drop(tier);
    let (_, recovery) = case.open();
    assert_eq!(recovery.damage, []);
    let units = recovery.removed.in_file(file);
    for (thread, number) in (0..8).flat_map(|thread| (0..1000).map(move |n| (thread, n))) {
        assert!(ids(thread, number).all(|id| units.contains(id.unit, 0)), "{thread} {number}");
    }
    let count = 8 * (0..1000).map(|number| number % 3 + 1).sum::<u64>();
    assert_eq!(recovery.removed.memory_bytes(), 4 * count, "and no others");
}

#[test]
fn the_log_is_known_to_stat_and_verify() {
    let case = died(|number| number < 4);
    std::fs::write(case.path().join("removed.new"), [0; 100]).expect("a file");
    let found = stat(case.path(), 0).expect("statistics");
    assert_eq!((found.removal_logs, found.removal_entries, found.records), (1, 4, 10));
    assert_eq!(found.removal_log_bytes, 8192);
    let verified = verify(case.path(), |done, total| assert!(done <= total)).expect("verified");
    assert_eq!((verified.removal_logs, verified.removal_entries), (1, 4));
    assert_eq!((verified.damage, verified.records), (vec![], 10));
    let (tier, _) = case.open();
    assert!(!case.path().join("removed.new").exists());
    assert!(disk_bytes(&case) <= tier.used_bytes());
}

/// A tier with the items 0 to 9 on a disk that can fail.
struct Failing {
    case: Case,
    disk: Arc<LogDisk>,
    tier: Tier,
    removals: Removals,
    ids: Vec<RecordId>,
}

impl Failing {
    fn new() -> Self {
        let (case, disk) = (Case::new(), Arc::new(LogDisk::default()));
        let options = Options { disk: disk.clone(), ..small() };
        let (mut tier, _) = Tier::open(case.path(), &options).expect("a tier");
        let removals = tier.removals().expect("a log");
        let ids = (0..10).map(|number| append(&mut tier, &Item::new(number, 100))).collect();
        tier.flush().expect("flushed");
        Self { case, disk, tier, removals, ids }
    }

    /// Appends and flushes an item.
    fn append(&mut self, number: u64) {
        append(&mut self.tier, &Item::new(number, 100));
        self.tier.flush().expect("flushed");
    }
}

#[test]
fn an_entry_that_cannot_be_written_removes_all_records_up_to_then() {
    for errno in [5, 28] {
        for removes_all in [false, true] {
            let mut failing = Failing::new();
            failing.disk.fail(LogFailure::Entries, errno);
            let removals = failing.removals.clone();
            if removes_all {
                removals.append_all().expect("the mark has the same meaning");
            } else {
                // The part that is written is longer than the next entry.
                let error = removals.append(&failing.ids[..6]).expect_err("an error");
                assert!(error.to_string().contains("removed-0000000001.log"), "{error}");
            }
            failing.append(10);
            failing.disk.fail(LogFailure::None, 0);
            failing.append(11);
            let id = append(&mut failing.tier, &Item::new(12, 100));
            failing.append(13);
            removals.append(&[id]).expect("removed");
            let Failing { case, tier, .. } = failing;
            drop(tier);
            assert_eq!(recovered(&case), [10, 11, 13]);
        }
    }
}

#[test]
fn a_mark_that_cannot_be_written_removes_the_names_of_the_item_files() {
    let mut failing = Failing::new();
    failing.disk.fail(LogFailure::Log, 5);
    failing.removals.append(&failing.ids[..1]).expect_err("an error");
    assert_eq!(item_files(&failing.case.path()).len(), 0);
    let place = failing.tier.reader().place(failing.ids[3], 0).expect("a place");
    let mut buffer = nuthatch_tier::AlignedBuffer::new(0);
    failing.tier.reader().read(place, b"key:3", &mut buffer).expect("readable until closed");
    failing.disk.fail(LogFailure::None, 0);
    failing.append(10);
    failing.tier.seal().expect("sealed");
    failing.append(11);
    let Failing { case, tier, .. } = failing;
    tier.close().expect("closed");
    assert_eq!(recovered(&case), [11]);
}

#[test]
fn a_mark_that_is_missing_is_repeated_before_anything_else() {
    for closes in [false, true] {
        let mut failing = Failing::new();
        failing.disk.fail(LogFailure::LogAndNames, 5);
        failing.removals.append(&failing.ids[..1]).expect_err("an error");
        failing.removals.append_all().expect_err("an error");
        failing.disk.fail(LogFailure::None, 0);
        failing.append(10);
        if !closes {
            failing.removals.append(&[]).expect("marked");
        }
        failing.append(11);
        let Failing { case, tier, .. } = failing;
        if closes {
            tier.close().expect("closed");
            assert_eq!(recovered(&case), [0; 0]);
        } else {
            drop(tier);
            assert_eq!(recovered(&case), [11]);
        }
    }
}

#[test]
fn a_log_that_reaches_the_budget_removes_all_records_up_to_then() {
    let case = Case::new();
    let options = Options { max_bytes: 400 << 10, ..small() };
    let (mut tier, _) = Tier::open(case.path(), &options).expect("a tier");
    let removals = tier.removals().expect("a log");
    let id = append(&mut tier, &Item::new(1, 100));
    tier.flush().expect("flushed");
    let mut lacked_room = false;
    let error = loop {
        lacked_room |= tier.lacks_room_for_removals();
        match removals.append(&[id; 500]) {
            Ok(()) => assert!(tier.used_bytes() <= tier.max_bytes()),
            Err(error) => break error,
        }
    };
    assert!(error.is_budget_reached() && lacked_room, "{error}");
    assert!(disk_bytes(&case) <= tier.max_bytes());
    removals.append_all().expect("the mark needs no space");
    drop(tier);
    let (mut tier, recovery) = Tier::open(case.path(), &options).expect("a tier");
    assert!(recovery.removed.contains(id, 0));
    // Without item files, there is room again.
    let removals = tier.removals().expect("a log");
    while tier.lacks_room_for_removals() {
        tier.remove_oldest().expect("removed").expect("a file");
    }
    let id = append(&mut tier, &Item::new(2, 100));
    removals.append(&[id]).expect("removed");
}
