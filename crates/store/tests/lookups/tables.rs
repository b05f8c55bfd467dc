//! Tests of named tables of both kinds.

use crate::Case;
use nuthatch_store::{Condition, Error, Kind, Options, Range, Read, Store};

#[test]
fn a_missing_table_is_made_or_not_found() {
    let case = Case::new();
    assert!(case.store.find_table("users").expect("no error").is_none());
    let users = case.store.table("users").expect("a table");
    case.store.put(&users, b"1", b"Ada").expect("a put");
    let again = case.store.find_table("users").expect("no error").expect("the table");
    assert_eq!(case.store.get(&again, b"1").expect("a get"), Some(b"Ada".to_vec()));
    case.store.table_of("sessions", Kind::Stamped).expect("a table");
    // A value in the main table that is as long as the record of a table is not a table.
    let main = case.store.main_table();
    case.store.put(&main, b"odd", &[7; 48]).expect("a put");
    assert_eq!(case.store.table_names().expect("names"), ["sessions", "users"]);
}

#[test]
fn names_that_cannot_be_are_refused() {
    let case = Case::new();
    for name in ["", "a\0b", "nuthatch.settings", &"x".repeat(201)] {
        let error = case.store.table(name).expect_err(name);
        assert!(matches!(error.code(), "length" | "table"), "{error}");
    }
}

#[test]
fn a_table_of_the_other_kind_is_refused() {
    let case = Case::new();
    case.store.table("plain").expect("a table");
    case.store.table_of("stamped", Kind::Stamped).expect("a table");
    let error = case.store.table_of("plain", Kind::Stamped).expect_err("another kind");
    assert_eq!(error.to_string(), "table \"plain\": expected a stamped table, found a plain one");
    assert!(case.store.table_of("stamped", Kind::Plain).is_err());
    assert_eq!(case.store.table("stamped").expect("either kind").kind(), Kind::Stamped);
}

#[test]
fn kinds_are_known_after_opening_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    {
        let store = Store::open(&path, &Options::new()).expect("a store");
        let stamped = store.table_of("stamped", Kind::Stamped).expect("a table");
        store.put(&stamped, b"key", b"value").expect("a put");
    }
    let store = Store::open(&path, &Options::new()).expect("a store");
    let stamped = store.table("stamped").expect("the table");
    assert_eq!(stamped.kind(), Kind::Stamped);
    assert_eq!(store.get(&stamped, b"key").expect("a get"), Some(b"value".to_vec()));
}

#[test]
fn a_table_of_another_store_is_refused() {
    let (one, other) = (Case::new(), Case::new());
    let table = one.store.table("a").expect("a table");
    let error = other.store.get(&table, b"key").expect_err("another store");
    assert_eq!(error.code(), "table");
    assert!(other.store.put(&table, b"key", b"value").is_err());
}

#[test]
fn a_transaction_older_than_the_table_says_so() {
    let case = Case::new();
    case.store.table("made").expect("a table");
    let path = case.store.path().to_owned();
    let txn = case.store.read().expect("a transaction");
    let table = case.store.table("later").expect("a table");
    let error = txn.get(&table, b"key").expect_err("it cannot see the table");
    assert!(error.to_string().ends_with("found an earlier one"), "{error}");
    drop(txn);
    assert!(path.exists());
}

#[test]
fn a_key_that_is_a_table_is_not_overwritten() {
    let case = Case::new();
    let main = case.store.main_table();
    case.store.table("users").expect("a table");
    let error = case.store.put(&main, b"users", b"x").expect_err("a table's name");
    assert!(error.to_string().contains("the name of a table"), "{error}");
    let error = case.store.delete(&main, b"users").expect_err("a table's name");
    assert!(error.to_string().contains("the name of a table"), "{error}");
}

#[test]
fn rows_expire_by_the_clock_that_was_handed_in() {
    let (case, clock) = crate::transactions::clocked();
    let table = case.store.table_of("sessions", Kind::Stamped).expect("a table");
    case.store
        .update(|txn| {
            txn.put_for(&table, b"a", b"1", 100)?;
            txn.put_for(&table, b"b", b"2", 200)?;
            txn.put(&table, b"c", b"3")
        })
        .expect("rows");
    let keys = || {
        let txn = case.store.read().expect("a transaction");
        let rows = txn.scan(&table, &Range::all().into()).expect("a scan");
        rows.map(|row| row.expect("a row").0[0] as char).collect::<String>()
    };
    assert_eq!(keys(), "abc");
    clock.advance(100);
    assert_eq!(keys(), "bc");
    assert_eq!(case.store.get(&table, b"a").expect("a get"), None);
    assert!(!case.store.delete(&table, b"a").expect("a delete"), "it is gone already");
    let made = case
        .store
        .update(|txn| txn.put_if(&table, b"a", b"new", Condition::Absent))
        .expect("a put");
    assert!(made, "what has expired is absent");
    clock.advance(1000);
    assert_eq!(keys(), "ac");
    assert_eq!(case.store.sweep().expect("a sweep"), 1, "the put swept the other one");
    assert_eq!(case.store.sweep().expect("a sweep"), 0);
    let txn = case.store.read().expect("a transaction");
    assert_eq!(txn.count(&table, &Range::all()).expect("a count"), 2);
}

#[test]
fn plain_tables_have_no_versions_and_no_expiry() {
    let case = Case::new();
    let table = case.store.table("plain").expect("a table");
    let error = case.store.update(|txn| txn.put_for(&table, b"k", b"v", 1)).expect_err("plain");
    assert!(matches!(error, Error::Table { .. }), "{error}");
    let error = case
        .store
        .update(|txn| txn.put_if(&table, b"k", b"v", Condition::Version(1)))
        .expect_err("plain");
    assert!(matches!(error, Error::Table { .. }), "{error}");
}
