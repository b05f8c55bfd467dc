//! A writer that dies at each operation of the disk, and operations that fail once.

use crate::disks::{FailingDisk, Failure};
use crate::{Case, Item, load, load_by_directories, small};
use nuthatch_testing::random::Random;
use nuthatch_tier::{Error, FolderState, Options, Tier, stat, verify};
use std::sync::Arc;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What a workload did before it failed.
#[derive(Default)]
struct Done {
    /// Items that were appended, in order.
    appended: Vec<Item>,
    /// Of these, the number that a successful flush wrote.
    flushed: usize,
    /// The number of items in files that were removed.
    removed: usize,
    /// An attempt to remove a file failed: it may be there or not.
    is_removing: bool,
}

/// Returns the items of the workload. One of them needs a file of its own.
fn items() -> Vec<Item> {
    let mut random = Random::new(11);
    (0..60)
        .map(
            |number| {
                if number == 25 { Item::new(number, 150_000) } else { item(number, &mut random) }
            },
        )
        .collect()
}

fn item(number: u64, random: &mut Random) -> Item {
    Item::random(number, random, 6000)
}

/// Appends all items, flushes after every seventh, seals once, and removes a file. `retries` is the
/// number of times that a failed operation is repeated.
fn work(options: &Options, case: &Case, done: &mut Done, retries: usize) -> Result<(), Error> {
    let (mut tier, _) = repeated(retries, || Tier::open(case.path(), options))?;
    for (number, item) in items().into_iter().enumerate() {
        repeated(retries, || tier.append(&item.record()))?;
        done.appended.push(item);
        if number % 7 == 6 {
            repeated(retries, || tier.flush())?;
            done.flushed = done.appended.len();
        }
        if number == 30 {
            repeated(retries, || tier.seal())?;
            done.flushed = done.appended.len();
        }
        if number == 45 {
            let oldest = tier.files()[0].records as usize;
            done.is_removing = true;
            repeated(retries, || tier.remove_oldest())?;
            done.is_removing = false;
            done.removed = oldest;
        }
    }
    repeated(retries, || tier.seal())?;
    done.flushed = done.appended.len();
    tier.close()
}

fn repeated<T>(retries: usize, mut f: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut result = f();
    for _ in 0..retries {
        match result {
            Err(_) => result = f(),
            Ok(_) => break,
        }
    }
    result
}

/// Returns the number of operations of the workload without a failure.
fn operations() -> u64 {
    let (case, disk) = (Case::new(), Arc::new(FailingDisk::new(u64::MAX, Failure::Dies, 0)));
    let options = Options { disk: disk.clone(), ..small() };
    work(&options, &case, &mut Done::default(), 0).expect("no failure");
    disk.operations()
}

#[test]
fn a_writer_that_dies_at_any_operation_leaves_exactly_the_complete_batches() {
    let operations = operations();
    assert!(operations > 60, "{operations} operations");
    for fails_at in 0..operations {
        for part in [0, 1, 40, 63] {
            let case = Case::new();
            let disk = Arc::new(FailingDisk::new(fails_at, Failure::Dies, part));
            let mut done = Done::default();
            let options = Options { disk, ..small() };
            let result = work(&options, &case, &mut done, 0);
            let name = format!("operation {fails_at}, {part}/64 of it");
            result.expect_err(&name);
            check(&case, &done, &name);
        }
    }
}

fn check(case: &Case, done: &Done, name: &str) {
    // The process may have died before the folder had a manifest.
    if let (Ok(stat), Ok(verified)) = (stat(case.path(), 0), verify(case.path(), |_, _| ())) {
        assert_eq!((stat.damage, verified.damage), (vec![], vec![]), "{name}");
    }
    let (tier, recovery) = case.open();
    assert_eq!(recovery.damage, [], "{name}");
    assert!(recovery.state != FolderState::LostPower, "{name}");
    let found = load(&tier.reader());
    assert_eq!(recovery.records, found.len() as u64, "{name}");
    assert!(found == load_by_directories(&tier.reader()), "{name}: the directories differ");
    // The removal may be the operation that was not done, or the one before it.
    let removed = match done.is_removing {
        true if found.first() != done.appended.first() => position(&done.appended, &found),
        true => 0,
        false => done.removed,
    };
    // All bytes of the item whose append failed may be written, except for zeros at its end.
    let begun = &items()[removed..60.min(done.appended.len() + 1)];
    assert!(begun.starts_with(&found), "{name}: an item that was not written");
    assert!(removed + found.len() >= done.flushed, "{name}: a flushed item is missing");
    assert!(tier.used_bytes() <= tier.max_bytes(), "{name}");
    // The recovered folder can be used.
    drop(tier);
    let (mut tier, recovery) = case.open();
    assert_eq!((recovery.unsealed_files, recovery.incomplete_batch), (0, None), "{name}");
    tier.append(&Item::new(1000, 10).record()).expect("appended");
    tier.close().expect("closed");
    let (tier, recovery) = case.open();
    assert!(recovery.state == FolderState::Closed, "{name}");
    assert_eq!(load(&tier.reader()).len(), found.len() + 1, "{name}");
}

fn position(all: &[Item], found: &[Item]) -> usize {
    found.first().map_or(all.len(), |first| {
        all.iter().position(|item| item == first).expect("an item that was written")
    })
}

#[test]
fn an_operation_that_fails_once_can_be_repeated_and_names_the_file() {
    let operations = operations();
    for fails_at in 0..operations {
        for (errno, part) in [(EIO, 0), (ENOSPC, 40)] {
            let case = Case::new();
            let disk = Arc::new(FailingDisk::new(fails_at, Failure::Once(errno), part));
            let mut done = Done::default();
            let options = Options { disk: disk.clone(), ..small() };
            let name = format!("operation {fails_at}, error {errno}");
            let result = work(&options, &case, &mut done, 1);
            let failed = disk.failed().expect("a failure");
            if let Err(error) = result {
                // The last operations belong to `close`, which cannot be repeated.
                assert_names(&error, &failed, errno, &name);
            }
            let (tier, recovery) = case.open();
            assert_eq!(recovery.damage, [], "{name}");
            let found = load(&tier.reader());
            assert!(found == done.appended[done.removed..], "{name}: {} items", found.len());
        }
    }
}

#[test]
fn an_error_of_the_disk_names_the_file_and_leaves_the_log_readable() {
    let operations = operations();
    for fails_at in 0..operations {
        let case = Case::new();
        let disk = Arc::new(FailingDisk::new(fails_at, Failure::Once(ENOSPC), 10));
        let options = Options { disk: disk.clone(), ..small() };
        let mut done = Done::default();
        let error = work(&options, &case, &mut done, 0).expect_err("no space");
        let failed = disk.failed().expect("a failure");
        assert_names(&error, &failed, ENOSPC, &format!("operation {fails_at}"));
    }
}

fn assert_names(error: &Error, file: &str, errno: i32, name: &str) {
    let text = error.to_string();
    assert!(text.contains(file), "{name}: {text} does not name {file}");
    if errno == ENOSPC {
        assert!(text.contains("free space on the disk"), "{name}: {text}");
    }
}
