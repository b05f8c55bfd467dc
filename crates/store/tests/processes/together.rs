//! Two processes that use a store concurrently.

use crate::Place;
use crate::child::Other;
use nuthatch_store::{Durability, Options, Range, Read, Result, Start, Table, WriteTxn};
use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);

/// Increments two counters, which are always equal.
pub(crate) fn add_one(txn: &mut WriteTxn<'_>, table: &Table) -> Result<()> {
    let found = txn.get(table, b"one")?.and_then(|bytes| bytes.first_chunk().copied());
    let next = (found.map_or(0, u64::from_le_bytes) + 1).to_le_bytes();
    txn.put(table, b"one", &next)?;
    txn.put(table, b"two", &next)
}

#[test]
fn no_write_of_two_processes_is_lost_and_readers_see_whole_ones() {
    let place = Place::new();
    let store = place.open(&Options::new().durability(Durability::None));
    let table = store.table("counters").expect("a table");
    let mut other = Other::start("count", &place.path());
    assert_eq!(other.hear().as_deref(), Some("ready"));
    other.nudge();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                store.update(|txn| add_one(txn, &table)).expect("a write");
            }
        });
        for _ in 0..2000 {
            let txn = store.read().expect("a transaction");
            let both = txn.get_many(&table, &["one", "two"]).expect("two gets");
            assert_eq!(both[0], both[1], "half of a transaction");
        }
    });
    assert_eq!(other.hear().as_deref(), Some("done"));
    other.wait();
    let count = store.get(&table, b"one").expect("a get").expect("the counter");
    assert_eq!(count, 2000_u64.to_le_bytes());
}

#[test]
fn a_sweep_removes_expired_rows_of_a_table_that_another_process_created() {
    let place = Place::new();
    let store = place.open(&Options::new());
    Other::start("write an expired row", &place.path()).wait();
    assert_eq!(store.sweep().expect("a sweep"), 1);
    assert_eq!(store.sweep().expect("a sweep"), 0);
    let table = store.find_table("sessions").expect("a lookup").expect("the table");
    assert_eq!(store.table_stat(&table).expect("statistics").entries, 0);
}

#[test]
fn a_store_opens_while_another_process_makes_its_file_longer() {
    let place = Place::new();
    drop(place.open(&Options::new()));
    let mut other = Other::start("lengthen", &place.path());
    assert_eq!(other.hear().as_deref(), Some("ready"));
    other.nudge();
    let done = std::thread::scope(|scope| {
        let heard = scope.spawn(|| other.hear());
        while !heard.is_finished() {
            open_and_close(&place);
        }
        heard.join()
    });
    assert_eq!(done.expect("no panic").as_deref(), Some("done"));
    other.wait();
}

/// Opens a store, which checks its meta pages.
#[track_caller]
fn open_and_close(place: &Place) {
    let store = place.open(&Options::new().create(false));
    assert!(store.close_within(LONG), "nobody else has it");
}

#[test]
fn a_watch_sees_what_other_processes_commit() {
    let place = Place::new();
    let store = place.open(&Options::new());
    // Changes are kept before the other process opens the store, which finds them.
    store.keep_changes(100_000, 1 << 30).expect("changes are kept");
    let mut watch = store.watch(None, Range::all(), Start::Now).expect("a watch");
    let mut other = Other::start("count", &place.path());
    assert_eq!(other.hear().as_deref(), Some("ready"));
    other.nudge();
    let mut changes = Vec::new();
    while changes.len() < 2000 {
        changes.extend(watch.next_within(LONG).expect("no error").expect("changes"));
    }
    let numbers: Vec<_> = changes.iter().map(|change| change.sequence).collect();
    assert_eq!(numbers, (1..=2000).collect::<Vec<_>>());
    assert!(changes.iter().all(|change| change.table == "counters"));
    other.wait();
}

#[test]
fn changes_are_kept_by_processes_that_had_the_store_open_before() {
    let place = Place::new();
    let mut other = Other::start("count", &place.path());
    assert_eq!(other.hear().as_deref(), Some("ready"));
    let store = place.open(&Options::new());
    store.keep_changes(100_000, 1 << 30).expect("changes are kept");
    let mut watch = store.watch(None, Range::all(), Start::Now).expect("a watch");
    other.nudge();
    assert_eq!(other.hear().as_deref(), Some("done"));
    let mut count = 0;
    while count < 2000 {
        count += watch.next_within(LONG).expect("no error").expect("changes").len();
    }
    other.wait();
}

#[test]
fn a_map_that_another_process_made_larger_is_followed() {
    let place = Place::new();
    let store = place.open(&Options::new().reserve(1 << 20));
    let table = store.table("rows").expect("a table");
    let before = store.stat().expect("figures").map_bytes;
    let mut other = Other::start("fill small map", &place.path());
    assert_eq!(other.hear().as_deref(), Some("ready"));
    other.nudge();
    assert_eq!(other.hear().as_deref(), Some("done"));
    let txn = store.read().expect("the map is followed");
    assert_eq!(txn.count(&table, &Range::all()).expect("a count"), 64);
    drop(txn);
    assert!(store.stat().expect("figures").map_bytes > before);
    store.put(&table, b"mine", &vec![1; 1 << 19]).expect("a write");
    other.nudge();
    other.wait();
}
