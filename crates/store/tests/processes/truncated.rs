//! Another program truncates the file of an open store: reads and writes fail, and the process
//! continues.

use crate::damage_read::{Case, PAGE, ROWS, is_corrupt, key, value};
use nuthatch_store::{Read, Result, Scan, Table, WriteTxn};

/// Truncates the file while a transaction is open, and checks that every operation fails.
fn truncate_to(keep: impl Fn(u64) -> u64) {
    let case = Case::new();
    let (store, table) = (case.store(), case.table());
    let txn = store.read().expect("a transaction");
    assert!(txn.get(&table, &key(0)).expect("a lookup").is_some());
    let len = case.file.metadata().expect("its length").len();
    case.file.set_len(keep(len)).expect("a shorter file");

    let mut errors = 0;
    for n in 0..ROWS {
        // The value is compared before `check_readable` is called.
        let found = txn.get(&table, &key(n)).map(|found| found == Some(&value(n)[..]));
        match found.and_then(|is_right| txn.check_readable().map(|()| is_right)) {
            Ok(is_right) => assert!(is_right, "key {n}"),
            Err(error) => {
                is_corrupt("get", &error);
                errors += 1;
            }
        }
    }
    assert!(errors > 0, "no page was missing");
    let scans = [Scan::all(), Scan::all().reverse()];
    for scan in &scans {
        let read = txn.scan(&table, scan).and_then(|rows| rows.visit(|_, _| true).map(drop));
        is_corrupt("scan", &read.and_then(|()| txn.check_readable()).expect_err("a scan"));
    }
    drop(txn);
    // From now on every transaction fails at once with the reason.
    let error = store.read().map(|_| ()).expect_err("a transaction");
    is_corrupt("read", &error);
    assert!(error.to_string().contains("truncated while it was open"), "{error}");
    is_corrupt("get", &store.get(&table, &key(0)).expect_err("a lookup"));
    is_corrupt("put", &store.put(&table, &key(0), b"x").expect_err("a put"));
    is_corrupt("stat", &store.stat().map(|_| ()).expect_err("figures"));
    is_corrupt("verify", &store.verify(|_, _| ()).map(|_| ()).expect_err("damage"));
    assert_eq!(case.file.metadata().expect("its length").len(), keep(len), "nothing was written");
}

#[test]
fn a_file_that_is_truncated_to_nothing_while_it_is_open_is_an_error() {
    truncate_to(|_| 0);
}

#[test]
fn a_file_that_is_cut_while_it_is_open_is_an_error() {
    truncate_to(|len| len / 2 / PAGE * PAGE);
    truncate_to(|_| 5 * PAGE);
    truncate_to(|_| PAGE + 100);
}

#[test]
fn a_write_transaction_over_a_truncated_file_commits_nothing() {
    for keep in [0, 5 * PAGE] {
        let case = Case::new();
        let (store, table) = (case.store(), case.table());
        let mut txn = store.write().expect("a transaction");
        txn.put(&table, &key(0), b"x").expect("a put");
        case.file.set_len(keep).expect("a shorter file");
        let write = |txn: &mut WriteTxn<'_>, table: &Table| -> Result<()> {
            for n in 0..ROWS {
                txn.get(table, &key(n))?;
                txn.put(table, &key(n), b"y")?;
            }
            Ok(())
        };
        is_corrupt("put", &write(&mut txn, &table).expect_err("a page is missing"));
        is_corrupt("commit", &txn.commit().expect_err("a truncated file"));
        assert_eq!(case.file.metadata().expect("its length").len(), keep, "nothing was written");
    }
}

#[test]
fn a_batch_writer_and_a_stream_over_a_truncated_file_fail_and_do_not_hang() {
    let case = Case::new();
    let (store, table) = (case.store(), case.table());
    let writer = store.batch_writer(&nuthatch_store::BatchOptions::new()).expect("a writer");
    case.file.set_len(0).expect("a shorter file");
    let batch = nuthatch_store::Batch::new().put(&table, key(0), b"x");
    let error = writer.submit(batch).expect("room").wait().expect_err("no file").to_string();
    assert!(error.contains("truncated while it was open"), "{error}");
    let batches = store.batches(&table, &Scan::all()).collect::<Result<Vec<_>>>();
    is_corrupt("batches", &batches.map(|_| ()).expect_err("no file"));
}
