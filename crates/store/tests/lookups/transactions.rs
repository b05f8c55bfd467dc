//! Tests of transactions: what they see, what remains after them, and their errors.

use crate::Case;
use nuthatch_store::{
    Clock, Condition, Durability, Error, Kind, ManualClock, Options, Range, Read, Scan,
};
use std::sync::Arc;

pub(crate) fn clocked() -> (Case, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let case = Case::with(&Options::new().clock(Arc::clone(&clock) as Arc<dyn Clock>));
    (case, clock)
}

#[test]
fn readers_see_the_state_they_began_with() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    case.store.put(&table, b"key", b"old").expect("a put");
    let before = case.store.read().expect("a transaction");
    let owned = case.store.read_owned().expect("a transaction");
    case.store.put(&table, b"key", b"new").expect("a put");
    assert_eq!(before.get(&table, b"key").expect("a get"), Some(&b"old"[..]));
    assert_eq!(owned.get(&table, b"key").expect("a get"), Some(&b"old"[..]));
    let elsewhere = std::thread::spawn({
        let table = table.clone();
        move || owned.get(&table, b"key").expect("a get").map(<[u8]>::to_vec)
    });
    assert_eq!(elsewhere.join().expect("no panic"), Some(b"old".to_vec()));
    assert_eq!(case.store.get(&table, b"key").expect("a get"), Some(b"new".to_vec()));
}

#[test]
fn what_is_not_committed_leaves_nothing() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let mut txn = case.store.write().expect("a transaction");
    txn.put(&table, b"key", b"value").expect("a put");
    assert_eq!(txn.get(&table, b"key").expect("a get"), Some(&b"value"[..]));
    drop(txn);
    assert_eq!(case.store.get(&table, b"key").expect("a get"), None);
}

#[test]
fn nested_transactions_leave_nothing_unless_they_are_committed() {
    let case = Case::new();
    let table = case.store.table_of("t", Kind::Stamped).expect("a table");
    let mut txn = case.store.write().expect("a transaction");
    txn.put(&table, b"a", b"1").expect("a put");
    let mut nested = txn.nested().expect("a nested transaction");
    nested.put(&table, b"b", b"2").expect("a put");
    nested.abort();
    let mut nested = txn.nested().expect("a nested transaction");
    nested.put(&table, b"c", b"3").expect("a put");
    let mut deeper = nested.nested().expect("one in that");
    deeper.delete(&table, b"a").expect("a delete");
    drop(deeper);
    nested.commit().expect("a commit");
    assert_eq!(txn.commit().expect("a commit"), 2, "what was aborted took no number");
    let txn = case.store.read().expect("a transaction");
    let rows = txn.scan(&table, &Scan::all()).expect("a scan");
    let keys: Vec<_> = rows.map(|row| row.expect("a row").0).collect();
    assert_eq!(keys, [b"a", b"c"]);
}

#[test]
fn a_second_write_transaction_of_a_thread_is_refused_and_does_not_hang() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let first = case.store.write().expect("a transaction");
    assert!(matches!(case.store.write(), Err(Error::Lmdb { .. })));
    assert!(case.store.put(&table, b"k", b"v").is_err());
    assert!(case.store.table("another").is_err());
    drop(first);
    case.store.put(&table, b"k", b"v").expect("a put");
}

#[test]
fn conditions_decide_and_tell() {
    let case = Case::new();
    let table = case.store.table_of("t", Kind::Stamped).expect("a table");
    let put = |value: &[u8], condition| {
        case.store.update(|txn| txn.put_if(&table, b"key", value, condition)).expect("a put")
    };
    assert!(!put(b"0", Condition::Present));
    assert!(put(b"1", Condition::Absent));
    assert!(!put(b"2", Condition::Absent));
    assert!(!put(b"2", Condition::Equals(b"")));
    assert!(put(b"2", Condition::Equals(b"1")));
    let version = {
        let txn = case.store.read().expect("a transaction");
        let entry = txn.entry(&table, b"key").expect("an entry").expect("the key");
        entry.version.expect("a version")
    };
    assert!(!put(b"3", Condition::Version(version + 1)));
    assert!(put(b"2", Condition::Version(version)), "the same value again");
    assert!(!put(b"3", Condition::Version(version)), "a new version, though the value is the same");
    let deleted = case.store.update(|txn| txn.delete_if(&table, b"key", Condition::Equals(b"2")));
    assert!(deleted.expect("a delete"));
}

#[test]
fn empty_values_are_there_and_empty_keys_cannot_be() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    case.store.put(&table, b"key", b"").expect("a put");
    assert_eq!(case.store.get(&table, b"key").expect("a get"), Some(Vec::new()));
    assert_eq!(case.store.get(&table, b"").expect("a get"), None);
    assert!(!case.store.delete(&table, b"").expect("a delete"));
    let error = case.store.put(&table, b"", b"value").expect_err("no key");
    assert_eq!(error.to_string(), "key: expected 1 to 511 bytes, found 0");
    assert!(case.store.put(&table, &[b'k'; 512], b"value").is_err());
    case.store.put(&table, &[b'k'; 511], b"value").expect("the longest key");
    assert_eq!(case.store.get(&table, &[b'k'; 512]).expect("a get"), None);
}

#[test]
fn appending_is_for_keys_above_all_others() {
    let case = Case::new();
    for (name, kind) in [("plain", Kind::Plain), ("stamped", Kind::Stamped)] {
        let table = case.store.table_of(name, kind).expect("a table");
        case.store
            .update(|txn| {
                txn.append(&table, b"a", b"1")?;
                txn.append(&table, b"b", b"2")
            })
            .expect("sorted rows");
        let error = case.store.update(|txn| txn.append(&table, b"ab", b"3")).expect_err("below");
        assert_eq!(error.to_string(), "append: expected a key above all others, found \"ab\"");
        let error = case.store.update(|txn| txn.append(&table, b"b", b"3")).expect_err("the same");
        assert_eq!(error.code(), "unordered");
    }
}

#[test]
fn ranges_are_deleted_and_counted() {
    let case = Case::new();
    for (name, kind) in [("plain", Kind::Plain), ("stamped", Kind::Stamped)] {
        let table = case.store.table_of(name, kind).expect("a table");
        let fill = || {
            let put = |txn: &mut nuthatch_store::WriteTxn<'_>| {
                (0..3000_u32).try_for_each(|n| txn.put(&table, format!("{n:04}").as_bytes(), b"v"))
            };
            case.store.update(put).expect("rows");
        };
        fill();
        let range = Range::all().from("0500").before("2600");
        let deleted = case.store.update(|txn| txn.delete_range(&table, &range)).expect("a delete");
        assert_eq!(deleted, 2100);
        let txn = case.store.read().expect("a transaction");
        assert_eq!(txn.count(&table, &Range::all()).expect("a count"), 900);
        assert_eq!(txn.count(&table, &range).expect("a count"), 0);
        drop(txn);
        fill();
        let all = case.store.update(|txn| txn.delete_range(&table, &Range::all()));
        assert_eq!(all.expect("a delete"), 3000);
    }
}

#[test]
fn every_durability_commits_and_syncs() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    let all = [Durability::None, Durability::Group, Durability::Sync, Durability::None];
    for (n, durability) in all.into_iter().enumerate() {
        let mut txn = case.store.write_with(durability).expect("a transaction");
        txn.put(&table, &[n as u8 + 1], b"value").expect("a put");
        txn.commit().expect("a commit");
    }
    case.store.sync().expect("a sync");
    let txn = case.store.read().expect("a transaction");
    assert_eq!(txn.count(&table, &Range::all()).expect("a count"), 4);
}

#[test]
fn closed_and_read_only_stores_refuse() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    case.store.put(&table, b"k", b"v").expect("a put");
    let txn = case.store.read().expect("a transaction");
    case.store.close();
    assert!(matches!(case.store.read(), Err(Error::Closed)));
    assert!(matches!(case.store.put(&table, b"k", b"v"), Err(Error::Closed)));
    assert_eq!(txn.get(&table, b"k").expect("what is open goes on"), Some(&b"v"[..]));
}
