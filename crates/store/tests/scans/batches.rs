use crate::{Case, ROWS, key, value};
use nuthatch_store::{Error, Options, Range, Scan, Store};
use std::time::Duration;

#[test]
fn batches_have_all_rows_in_either_direction() {
    let case = Case::new();
    for reverse in [false, true] {
        let range = Range::all().from(key(10)).before(key(15_000));
        let mut scan = Scan::new(range).batch_rows(999).limit(13_500);
        let mut expected: Vec<u32> = (10..15_000).collect();
        if reverse {
            scan = scan.reverse();
            expected.reverse();
        }
        expected.truncate(13_500);
        let mut rows = Vec::new();
        for batch in case.store.batches(&case.table, &scan) {
            let batch = batch.expect("a batch");
            assert!(!batch.is_empty() && batch.len() <= 999);
            rows.extend(batch.to_vec());
        }
        let expected: Vec<_> = expected.into_iter().map(|n| (key(n), value(n))).collect();
        assert!(rows == expected, "{} rows, reverse: {reverse}", rows.len());
    }
}

#[test]
fn a_batch_ends_after_so_many_bytes() {
    let case = Case::new();
    let scan = Scan::all().batch_bytes(1);
    let mut batches = case.store.batches(&case.table, &scan);
    let first = batches.next_batch().expect("no error").expect("a batch");
    assert_eq!(first.len(), 1, "one row at least");
    let scan = Scan::all().batch_bytes(10_000);
    let mut batches = case.store.batches(&case.table, &scan);
    let first = batches.next_batch().expect("no error").expect("a batch");
    let bytes: usize = first.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!((10_000..31_000).contains(&bytes), "{bytes}");
}

#[test]
fn the_transaction_ends_with_the_last_batch() {
    let case = Case::new();
    let scan = Scan::all().batch_rows(7000);
    let mut batches = case.store.batches(&case.table, &scan);
    assert_eq!(case.open_transactions(), 0, "it begins with the first batch");
    drop(batches.next_batch().expect("no error").expect("a batch"));
    assert_eq!(case.open_transactions(), 1);
    let rows: usize = batches.by_ref().map(|batch| batch.expect("a batch").len()).sum();
    assert_eq!((rows, case.open_transactions()), (ROWS as usize - 7000, 0));
    assert!(batches.next_batch().expect("no error").is_none(), "it stays ended");
}

#[test]
fn a_scan_goes_on_in_another_transaction() {
    let case = Case::new();
    let mut batches = case.store.batches(&case.table, &Scan::all().batch_rows(100).limit(250));
    assert_eq!(batches.next_batch().expect("no error").expect("a batch").len(), 100);
    let rest = batches.rest();
    drop(batches);
    case.store.delete(&case.table, &key(100)).expect("a delete");
    let mut rows = Vec::new();
    for batch in case.store.batches(&case.table, &rest) {
        rows.extend(batch.expect("a batch").to_vec());
    }
    assert_eq!(rows.len(), 150);
    assert_eq!((&rows[0].0, &rows[149].0), (&key(101), &key(250)));
}

#[test]
fn a_batch_outlives_its_scan_and_its_store() {
    let case = Case::new();
    let scan = Scan::all().batch_rows(10);
    let batch = case.store.batches(&case.table, &scan).next_batch().expect("no error");
    let batch = batch.expect("a batch");
    case.store
        .update(|txn| txn.delete_range(&case.table, &Range::all()))
        .expect("others write meanwhile");
    let Case { store, table, _folder } = case;
    drop((store, table));
    let rows = std::thread::spawn(move || batch.to_vec()).join().expect("no panic");
    assert_eq!(rows[9], (key(9), value(9)));
}

#[test]
fn keys_come_without_values_when_they_are_asked_for() {
    let case = Case::new();
    let scan = Scan::all().keys_only().batch_rows(30_000);
    let batch = case.store.batches(&case.table, &scan).next_batch().expect("no error");
    let batch = batch.expect("a batch");
    assert_eq!(batch.len(), ROWS as usize);
    assert!(batch.iter().all(|(_, value)| value.is_empty()));
    assert_eq!(batch.get(7).map(|row| row.0.to_vec()), Some(key(7)));
    assert!(batch.get(30_000).is_none());
}

#[test]
fn a_closed_store_fails_what_reads_in_batches() {
    let case = Case::new();
    let mut batches = case.store.batches(&case.table, &Scan::all().batch_rows(10));
    let held = batches.next_batch().expect("no error").expect("a batch");
    case.store.close();
    assert!(matches!(batches.next_batch(), Err(Error::Closed)));
    assert_eq!(held.to_vec()[0], (key(0), value(0)), "what was read is still there");
}

#[test]
fn a_closed_store_can_be_opened_again_when_nobody_has_a_batch() {
    let case = Case::new();
    let path = case.store.path().to_owned();
    let held = case.store.batches(&case.table, &Scan::all()).next_batch().expect("no error");
    let Case { store, _folder, .. } = case;
    let other = store.clone();
    assert!(!store.close_within(Duration::ZERO), "a batch is there");
    drop(held);
    assert!(other.close_within(Duration::from_mins(1)));
    assert!(Store::open(&path, &Options::new()).is_ok());
}
