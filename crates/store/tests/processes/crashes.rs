//! Processes that are killed while they write: acknowledged writes are there, and the store is
//! undamaged.

use crate::Place;
use crate::child::Other;
use nuthatch_store::{Options, Range, Read, Store, Table};

/// Lets a process write until it has printed a number of lines, kills it, and returns the last
/// number.
fn killed_after(role: &str, place: &Place, count: usize) -> u64 {
    let mut other = Other::start(role, &place.path());
    let mut last = 0;
    for _ in 0..count {
        last = last.max(other.hear_number().expect("it writes"));
    }
    other.kill().into_iter().fold(last, u64::max)
}

/// Checks that both tables have the same rows, all complete.
fn check_rows(store: &Store) -> u64 {
    let table = |name: &str| store.find_table(name).expect("no error").expect("the table");
    let (one, two): (Table, Table) = (table("one"), table("two"));
    let txn = store.read().expect("a transaction");
    let mut others = txn.scan(&two, &Range::all().into()).expect("a scan");
    let mut count = 0;
    for row in txn.scan(&one, &Range::all().into()).expect("a scan") {
        let row = row.expect("a row");
        assert_eq!(row, others.next().expect("the same row").expect("no error"));
        assert!(row.1.iter().all(|byte| *byte == row.0[0]), "a row of its own bytes");
        count += 1;
    }
    assert!(others.next().is_none());
    count
}

#[test]
fn what_was_committed_is_there_after_a_kill_whatever_the_durability() {
    for role in ["write sync", "write group", "write none"] {
        let place = Place::new();
        for count in [1, 40, 150] {
            let last = killed_after(role, &place, count);
            let store = place.open(&Options::new());
            store.verify(|_, _| ()).expect("no damage");
            let rows = check_rows(&store);
            assert!(rows > last, "{role}: {last} was said, and {rows} rows are there");
            assert!(rows <= last + 2, "{role}: at most one commit was not said");
            let sequence = store.read().expect("a transaction").sequence().expect("a number");
            assert!(sequence >= 2 * rows, "{role}: {sequence}");
            // The killed process left no lock behind.
            let table = store.table("after").expect("a table");
            store.put(&table, b"key", b"value").expect("a write");
        }
    }
}

#[test]
fn acknowledged_batches_are_there_after_a_kill() {
    let place = Place::new();
    for count in [1, 60, 200] {
        let mut other = Other::start("write batches", &place.path());
        let mut said: Vec<u64> =
            (0..count).map(|_| other.hear_number().expect("it writes")).collect();
        said.extend(other.kill());
        let store = place.open(&Options::new());
        store.verify(|_, _| ()).expect("no damage");
        check_rows(&store);
        let one = store.find_table("one").expect("no error").expect("the table");
        let txn = store.read().expect("a transaction");
        for n in said {
            assert!(txn.contains(&one, &n.to_le_bytes()).expect("a get"), "{n} was acknowledged");
        }
    }
}

#[test]
fn a_killed_writer_leaves_no_trace_of_what_it_did_not_commit() {
    let place = Place::new();
    let (store, table) = place.open_rows();
    let mut other = Other::start("hold the writer", &place.path());
    assert_eq!(other.hear().as_deref(), Some("holding"));
    other.kill();
    store.put(&table, b"key", b"value").expect("the write lock is free again");
    assert_eq!(store.get(&table, b"never").expect("a get"), None);
}

#[test]
fn slots_of_killed_readers_come_back() {
    let place = Place::new();
    let store = place.open(&Options::new().readers(4));
    let table = store.table("rows").expect("a table");
    for _ in 0..3 {
        let mut other = Other::start("hold a reader", &place.path());
        assert_eq!(other.hear().as_deref(), Some("holding"));
        other.kill();
    }
    let txns: Vec<_> = (0..4).map(|_| store.read_owned().expect("a slot")).collect();
    let error = store.read().expect_err("all are in use");
    assert_eq!(error.code(), "readers-full");
    store.put(&table, b"key", b"value").expect("who writes needs no slot");
    drop(txns);
    store.read().expect("a slot");
}
