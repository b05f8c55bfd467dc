//! A process that dies, or an operation of the disk that fails, at any time: no removed record is
//! recovered.

use crate::disks::{FailingDisk, Failure};
use crate::{Case, Item, live, log_files, small};
use nuthatch_tier::{Error, Options, RecordId, Removals, Tier, verify};
use std::sync::Arc;

/// What a workload did before it failed.
#[derive(Default)]
struct Done {
    items: Vec<Kept>,
    /// An operation of the removal log failed once: all items before it may be missing.
    failed_at: Option<usize>,
}

struct Kept {
    item: Item,
    id: RecordId,
    is_flushed: bool,
    /// The item may be removed, because an attempt was made.
    may_be_removed: bool,
    /// The attempt succeeded, or failed without the death of the process.
    is_removed: bool,
}

impl Done {
    fn flushed(&mut self) {
        self.items.iter_mut().for_each(|kept| kept.is_flushed = true);
    }

    /// Removes the items of a range, or all records. `goes_on` is false if an error ends the
    /// process.
    fn remove(
        &mut self,
        removals: &Removals,
        range: std::ops::Range<usize>,
        all: bool,
        goes_on: bool,
    ) -> Result<(), Error> {
        let count = self.items.len();
        let removed = &mut self.items[range];
        for kept in removed.iter_mut() {
            kept.may_be_removed = true;
        }
        let result = if all {
            removals.append_all()
        } else {
            // Each id several times, so that the log grows.
            let ids = removed.iter().flat_map(|kept| [kept.id; 60]);
            removals.append(&ids.collect::<Vec<_>>())
        };
        if result.is_ok() || goes_on {
            for kept in removed.iter_mut() {
                kept.is_removed = true;
            }
        }
        if result.is_err() && goes_on {
            self.failed_at = Some(count);
            return Ok(());
        }
        result
    }
}

/// Appends items, removes some in each group of five, all at one time, and item files at another.
fn work(options: &Options, case: &Case, done: &mut Done, goes_on: bool) -> Result<(), Error> {
    let retries = usize::from(goes_on);
    let (mut tier, _) = repeated(retries, || Tier::open(case.path(), options))?;
    let removals = repeated(retries, || tier.removals())?;
    for number in 0..100 {
        let item = Item::new(number as u64, 1500);
        let place = repeated(retries, || tier.append(&item.record()))?;
        let id = tier.reader().record_id(place).expect("a file");
        let (is_flushed, may_be_removed, is_removed) = (false, false, false);
        done.items.push(Kept { item, id, is_flushed, may_be_removed, is_removed });
        if number % 5 == 4 {
            done.remove(&removals, number - 4..number - 2, false, goes_on)?;
        }
        if number % 10 == 9 {
            repeated(retries, || tier.flush())?;
            done.flushed();
            done.remove(&removals, number - 9..number - 7, false, goes_on)?;
        }
        if number == 52 {
            done.remove(&removals, 0..number + 1, true, goes_on)?;
        }
        if number == 75 {
            let oldest = tier.files()[0].number;
            let removed = done.items.iter_mut().filter(|kept| kept.id.file == oldest);
            removed.for_each(|kept| kept.may_be_removed = true);
            repeated(retries, || tier.remove_oldest())?;
        }
    }
    repeated(retries, || tier.seal())?;
    done.flushed();
    tier.close()
}

fn repeated<T>(retries: usize, mut f: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let result = f();
    if result.is_err() && retries > 0 { f() } else { result }
}

fn operations() -> u64 {
    let (case, disk) = (Case::new(), Arc::new(FailingDisk::new(u64::MAX, Failure::Dies, 0)));
    let options = Options { disk: disk.clone(), ..small() };
    work(&options, &case, &mut Done::default(), false).expect("no failure");
    disk.operations()
}

/// Opens the folder and compares the recovered items with those of the workload.
fn check(case: &Case, done: &Done, name: &str) {
    if let Ok(verified) = verify(case.path(), |_, _| ()) {
        assert_eq!(verified.damage, [], "{name}");
    }
    for _ in 0..2 {
        let (tier, recovery) = case.open();
        assert_eq!(recovery.damage, [], "{name}");
        assert!(tier.used_bytes() <= tier.max_bytes(), "{name}");
        let found = live(&tier.reader(), &recovery.removed);
        for (index, kept) in done.items.iter().enumerate() {
            let is_found = found.contains(&kept.item);
            assert!(!(is_found && kept.is_removed), "{name}: item {index} came back");
            let is_lost = done.failed_at.is_some_and(|failed_at| index < failed_at);
            let is_expected = kept.is_flushed && !kept.may_be_removed && !is_lost;
            assert!(is_found || !is_expected, "{name}: item {index} is missing");
        }
    }
}

#[test]
fn no_removed_record_comes_back_whenever_the_process_dies() {
    let operations = operations();
    assert!(operations > 80, "{operations} operations");
    for fails_at in 0..operations {
        for part in [0, 1, 40, 63] {
            let case = Case::new();
            let disk = Arc::new(FailingDisk::new(fails_at, Failure::Dies, part));
            let (options, mut done) = (Options { disk, ..small() }, Done::default());
            let name = format!("operation {fails_at}, {part}/64 of it");
            work(&options, &case, &mut done, false).expect_err(&name);
            check(&case, &done, &name);
        }
    }
}

#[test]
fn no_removed_record_comes_back_after_an_operation_that_failed() {
    let (operations, mut failures) = (operations(), 0);
    for fails_at in 0..operations {
        for (errno, part) in [(5, 0), (28, 40)] {
            let case = Case::new();
            let disk = Arc::new(FailingDisk::new(fails_at, Failure::Once(errno), part));
            let (options, mut done) = (Options { disk, ..small() }, Done::default());
            let _ = work(&options, &case, &mut done, true);
            failures += u32::from(done.failed_at.is_some());
            check(&case, &done, &format!("operation {fails_at}, error {errno}"));
            assert!(log_files(&case.path()).len() < 6);
        }
    }
    assert!(failures > 40, "{failures} failures of the log");
}
