//! A writer process that is killed.

use crate::{Case, Item, live, load, load_by_directories, small};
use nuthatch_testing::random::Random;
use nuthatch_tier::{FolderState, Tier, verify};
use std::io::{BufRead, BufReader, Write, stdout};
use std::process::{Command, Stdio};

const FOLDER: &str = "NUTHATCH_TEST_TIER_WRITER";

fn item(number: u64) -> Item {
    Item::new(number, (number * 37 % 3000) as usize)
}

/// Returns whether the writer removes the record of an item.
fn is_removed(number: u64) -> bool {
    number % 5 == 2
}

/// Appends items until it is killed, removes the records of some, and prints the number of items
/// after each flush.
fn write_until_killed(folder: std::ffi::OsString) {
    let (mut tier, _) = Tier::open(folder, &small()).expect("a tier");
    let removals = tier.removals().expect("a log");
    let mut removed = Vec::new();
    for number in 0.. {
        let place = loop {
            match tier.append(&item(number).record()) {
                Ok(place) => break place,
                Err(error) => assert!(error.is_budget_reached(), "{error}"),
            }
            tier.remove_oldest().expect("removed");
        };
        if is_removed(number) {
            removed.push(tier.reader().record_id(place).expect("a file"));
        }
        if number % 5 == 4 {
            tier.flush().expect("flushed");
            removals.append(&removed).expect("removed");
            removed.clear();
            writeln!(stdout(), "> {}", number + 1).expect("a reader");
        }
    }
}

#[test]
fn a_killed_writer_loses_only_the_batch_in_memory_and_no_removal() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return write_until_killed(folder);
    }
    let mut random = Random::new(9);
    for round in 0..12 {
        let case = Case::new();
        let name = "processes::a_killed_writer_loses_only_the_batch_in_memory_and_no_removal";
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args([name, "--exact", "--nocapture"]).env(FOLDER, case.path());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let until = random.below(2500);
        let mut flushed = 0;
        let mut is_killed = false;
        for line in lines.map_while(Result::ok) {
            let Some((_, number)) = line.split_once("> ") else { continue };
            flushed = number.parse().expect("a number");
            if flushed > until && !is_killed {
                child.kill().expect("killed");
                is_killed = true;
            }
        }
        child.wait().expect("its end");
        assert!(is_killed && flushed > until);
        check(&case, flushed, round);
    }
}

fn check(case: &Case, flushed: u64, round: u64) {
    let verified = verify(case.path(), |_, _| ()).expect("verified");
    assert_eq!(verified.damage, [], "round {round}");
    let (tier, recovery) = case.open();
    assert!(recovery.state == FolderState::NotClosed && recovery.damage.is_empty());
    let found = load(&tier.reader());
    assert!(load_by_directories(&tier.reader()) == found, "round {round}");
    let first = found.first().expect("items");
    let first_number = (0..flushed).find(|number| item(*number) == *first).expect("its number");
    let expected = (first_number..).take(found.len()).map(item);
    assert!(expected.eq(found.iter().cloned()), "round {round}: an item is missing or wrong");
    assert!(first_number + found.len() as u64 >= flushed, "round {round}: flushed items are lost");
    let live = live(&tier.reader(), &recovery.removed);
    for (number, item) in (first_number..).zip(&found) {
        let is_live = live.contains(item);
        if number < flushed {
            assert_eq!(is_live, !is_removed(number), "round {round}: item {number}");
        } else {
            assert!(is_live || is_removed(number), "round {round}: item {number}");
        }
    }
}
