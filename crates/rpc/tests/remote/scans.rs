//! Scans: rows, their order, and limits.

use super::served::{Served, TABLE, code, is, key, options, served, served_with};
use nuthatch_rpc::Scan;
use nuthatch_store::{Range, Read};

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn rows(served: &Served, scan: Scan) -> (Rows, usize) {
    let client = served.client.clone();
    served.run(async move {
        let mut stream = client.scan(TABLE, &scan);
        let (mut rows, mut batches) = (Rows::new(), 0);
        while let Some(batch) = stream.next().await {
            let batch = batch.expect("rows");
            assert!(!batch.is_empty());
            rows.extend(batch.to_vec());
            batches += 1;
        }
        (rows, batches)
    })
}

#[test]
fn scans_return_the_rows_of_the_store() {
    let served = served();
    served.fill(1000, 20);
    let ranges = [
        Range::all(),
        Range::prefix("000001"),
        Range::all().from("00000100").before("00000200"),
        Range::all().after("00000100").to("00000200"),
        Range::all().from("5"),
        Range::all().from("b").to("a"),
        Range::all().before(""),
    ];
    for range in ranges {
        for reverse in [false, true] {
            for limit in [u64::MAX, 0, 1, 50] {
                let local = nuthatch_store::Scan::new(range.clone()).limit(limit);
                let remote = Scan::new(range.clone()).limit(limit).batch_bytes(500);
                let (local, remote) =
                    if reverse { (local.reverse(), remote.reverse()) } else { (local, remote) };
                let txn = served.store.read().expect("a transaction");
                let expected = txn.scan(&served.table, &local).expect("a scan");
                let expected = expected.map(|row| {
                    let (key, value) = row.expect("a row");
                    (key.to_vec(), value.to_vec())
                });
                let expected: Rows = expected.collect();
                drop(txn);
                let (found, batches) = rows(&served, remote);
                assert_eq!(found, expected, "{range:?} {reverse} {limit}");
                // 18 rows of 28 bytes are the first that are 500 bytes together.
                assert_eq!(batches, expected.len().div_ceil(18));
            }
        }
    }
    let (keys, _) = rows(&served, Scan::all().keys_only().limit(2));
    assert_eq!(keys, [(key(0), Vec::new()), (key(1), Vec::new())]);
}

#[test]
fn all_rows_are_from_the_state_of_the_first() {
    let served = served();
    served.fill(20_000, 100);
    let client = served.client.clone();
    let mut stream = client.scan(TABLE, &Scan::all());
    let first = served.wait(stream.next()).expect("a batch").expect("rows");
    served.store.update(|txn| txn.delete_range(&served.table, &Range::all())).expect("deleted");
    let mut count = first.len();
    let snapshot = first.transaction();
    while let Some(batch) = served.wait(stream.next()) {
        let batch = batch.expect("rows");
        assert_eq!((batch.transaction(), batch.sequence()), (snapshot, first.sequence()));
        count += batch.len();
    }
    assert_eq!(count, 20_000);
}

#[test]
fn rows_longer_than_a_batch_are_sent_alone_and_rows_longer_than_a_message_fail() {
    let served = served_with(&options().message_bytes(64 << 10).batch_bytes(32 << 10));
    served.fill(4, 30 << 10);
    let long = vec![1; 50 << 10];
    served.store.put(&served.table, &key(1), &long).expect("written");
    let (found, batches) = rows(&served, Scan::all());
    // 30 KiB and 50 KiB do not fit in a message of 64 KiB; two of 30 KiB do.
    assert_eq!((found.len(), batches), (4, 3));
    assert_eq!(found[1], (key(1), long));
    served.store.put(&served.table, &key(2), &vec![0; 64 << 10]).expect("written");
    let mut stream = served.client.scan(TABLE, &Scan::all());
    let mut came = 0;
    let error = loop {
        match served.wait(stream.next()).expect("an error before the end") {
            Ok(batch) => came += batch.len(),
            Err(error) => break error,
        }
    };
    assert_eq!((came, error.code()), (2, "too-long"));
}

#[test]
fn a_scan_of_a_missing_table_fails() {
    let served = served();
    let mut stream = served.client.scan("none", &Scan::all());
    assert_eq!(code(served.wait(stream.next()).expect("an answer")), is("no-table", 5));
    assert!(served.wait(stream.next()).is_none());
}

#[test]
fn the_rest_of_a_scan_has_the_rows_that_were_not_received() {
    let served = served();
    served.fill(1000, 20);
    for scan in [Scan::all(), Scan::all().reverse(), Scan::all().limit(700)] {
        let scan = scan.batch_bytes(1000);
        let (all, _) = rows(&served, scan.clone());
        let mut stream = served.client.scan(TABLE, &scan);
        let mut found = Rows::new();
        for _ in 0..3 {
            let batch = served.wait(stream.next()).expect("a batch").expect("rows");
            found.extend(batch.to_vec());
        }
        let rest = stream.rest();
        drop(stream);
        found.extend(rows(&served, rest).0);
        assert_eq!(found, all);
    }
}
