//! Transactions over the network.

use super::served::{TABLE, code, is, key, options, served, served_with};
use bytes::Bytes;
use nuthatch_rpc::{Batch, Scan};
use nuthatch_store::Condition;
use std::time::Duration;

#[test]
fn all_reads_are_from_one_state() {
    let served = served_with(&options().batch_bytes(1000));
    served.fill(100, 50);
    let mut txn = served.wait(served.client.txn()).expect("a transaction");
    let before = served.wait(txn.get(TABLE, &key(0))).expect("read");
    served.store.put(&served.table, &key(0), b"new").expect("written");
    served.store.delete(&served.table, &key(99)).expect("deleted");
    served.store.table("later").expect("a table");
    served.wait(async {
        assert_eq!(txn.get(TABLE, &key(0)).await.expect("read"), before);
        let many = txn.get_many(TABLE, &[key(99), b"none".to_vec()]).await.expect("read");
        assert_eq!(many, [Some(Bytes::from(vec![b'v'; 50])), None]);
        let (mut scan, mut count, mut pages) = (Scan::all(), 0, 0);
        loop {
            let rows = txn.scan(TABLE, &scan).await.expect("read");
            if rows.is_empty() {
                break;
            }
            (count, pages) = (count + rows.len(), pages + 1);
            scan = scan.after(&rows);
        }
        // 18 rows of 58 bytes are the first that are 1000 bytes together.
        assert_eq!((count, pages), (100, 6));
    });
    served.wait(async {
        let error = txn.get("later", b"a").await.expect_err("it was made later");
        assert_eq!(error.code(), "table");
    });
}

/// Regression: adding the maximum duration to the current time panicked in each transaction.
#[test]
fn limits_of_time_may_be_the_maximum_duration() {
    let longest = Duration::MAX;
    let served = served_with(&options().handshake(longest).idle(longest).max_transaction(longest));
    served.fill(1, 5);
    let mut txn = served.wait(served.client.txn()).expect("a transaction");
    assert!(served.wait(txn.get(TABLE, &key(0))).expect("read").is_some());
}

#[test]
fn a_commit_succeeds_if_its_reads_are_still_valid() {
    let served = served();
    let client = served.client.clone();
    let add = |seen: &'static [u8], next: &'static [u8]| {
        Batch::new().check(TABLE, b"count", Condition::Equals(seen)).put(TABLE, b"count", next)
    };
    served.wait(client.put(TABLE, b"count", b"1")).expect("written");
    served.wait(async {
        let mut one = client.txn().await.expect("a transaction");
        let mut other = client.txn().await.expect("a transaction");
        assert_eq!(one.get(TABLE, b"count").await.expect("read"), Some(Bytes::from("1")));
        assert_eq!(other.get(TABLE, b"count").await.expect("read"), Some(Bytes::from("1")));
        one.commit(add(b"1", b"2")).await.expect("written");
        let error = other.commit(add(b"1", b"2")).await.expect_err("it has changed");
        assert_eq!((error.code(), error.status(), error.write()), ("condition-unmet", 10, Some(0)));
        assert_eq!(client.get(TABLE, b"count").await.expect("read"), Some(Bytes::from("2")));
    });
}

#[test]
fn a_transaction_ends_with_its_client() {
    let served = served();
    served.fill(1, 1);
    let mut txn = served.wait(served.client.txn()).expect("a transaction");
    served.wait(txn.get(TABLE, &key(0))).expect("read");
    served.until(|served| served.open_transactions() == 1);
    drop(txn);
    served.until(|served| {
        served.open_transactions() == 0 && served.server.metrics().open_calls() == 0
    });
}

#[test]
fn a_transaction_refuses_invalid_requests() {
    let served = served();
    let mut txn = served.wait(served.client.txn()).expect("a transaction");
    let scan = Scan::all().across_transactions();
    assert_eq!(code(served.wait(txn.scan(TABLE, &scan))), is("argument", 3));
}
