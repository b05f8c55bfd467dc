//! Write transactions report damage, too: LMDB neither follows nor changes a damaged page.

use crate::damage_read::{self, Case, PAGE, ROWS, collect, is_corrupt, key, value};
use nuthatch_store::{
    Batch, BatchOptions, Condition, Kind, Range, Read, Result, Scan, Table, WriteTxn,
};

/// Returns damages for tests of writes: those for reads, and some that only a check of all entries
/// finds.
fn damages(case: &Case, at: u64, is_branch: bool) -> Vec<(&'static str, u64, Vec<u8>)> {
    let entry = at + case.short(case.middle_slot(at));
    let mut damages = damage_read::damages(case, at, is_branch);
    damages.push(("the order of its keys", entry + 8, vec![0xFF; 4]));
    if !is_branch {
        damages.push(("a value that is a list", entry + 4, vec![4, 0]));
    }
    damages
}

/// Returns the numbered rows of a leaf, by their keys; all rows for a branch.
fn rows_in(case: &Case, at: u64, is_branch: bool) -> Vec<u32> {
    if is_branch {
        return (0..ROWS).step_by(97).collect();
    }
    let entries = (case.short(at + 12) - 16) / 2;
    let number = |index| {
        let entry = at + case.short(at + 16 + 2 * index);
        (0..8).fold(0, |n, digit| n * 10 + u32::from(case.byte(entry + 11 + digit) - b'0'))
    };
    (0..entries).map(number).collect()
}

/// Calls `check` once for each damage of some pages, with a transaction that writes, and the rows
/// that a leaf with the damage has. The transaction has changed the table if `is_changed`.
fn with_each_damage(
    is_changed: bool,
    check: impl Fn(&str, &mut WriteTxn<'_>, &Table, &[u32]) -> Result<()>,
) {
    let case = Case::new();
    let table = case.table();
    let pages = case.pages();
    let some = pages.iter().enumerate().filter(|(n, page)| page.1 || n % 9 == 1);
    for (_, &(at, is_branch)) in some {
        let rows = rows_in(&case, at, is_branch);
        for (what, place, bytes) in damages(&case, at, is_branch) {
            let mut txn = case.store().write().expect("a transaction");
            if is_changed {
                // The key is in another leaf.
                let other = if rows.contains(&3) { ROWS - 3 } else { 3 };
                txn.put(&table, &key(other), &value(other)).expect("a put");
            }
            let what = format!("page {}, {what}", at / PAGE);
            case.with(place, &bytes, || match check(&what, &mut txn, &table, &rows) {
                // LMDB does not read a branch again after it has copied it.
                Ok(()) if is_changed && is_branch => {}
                Ok(()) => panic!("{what}: no error"),
                Err(error) => is_corrupt(&what, &error),
            });
            txn.abort();
        }
    }
    case.store().verify(|_, _| ()).expect("nothing was written");
}

fn read_all(txn: &WriteTxn<'_>, table: &Table, rows: &[u32]) -> Result<()> {
    for &n in rows {
        assert_eq!(txn.get(table, &key(n))?, Some(&value(n)[..]));
    }
    Ok(())
}

/// Checks that every scan returns the right rows or an error. Returns the last error.
fn scan_all(txn: &WriteTxn<'_>, table: &Table) -> Result<()> {
    let bounded = Scan::new(Range::all().from(key(0)).to(key(ROWS)));
    let mut last = Ok(());
    for scan in [Scan::all(), Scan::all().reverse(), bounded.clone(), bounded.reverse()] {
        let mut visited = 0;
        let visit = txn.scan(table, &scan).and_then(|rows| {
            rows.visit(|_, _| {
                visited += 1;
                true
            })
        });
        let read = txn.scan(table, &scan).and_then(collect);
        match (visit, read) {
            (Ok(_), Ok(rows)) => assert_eq!((visited, rows.len()), (ROWS, ROWS as usize)),
            // `visit` does not compare the keys within a leaf.
            (_, Err(error)) => last = Err(error),
            (visit, read) => panic!("{scan:?}: {visit:?} and {:?}", read.map(|rows| rows.len())),
        }
    }
    last
}

#[test]
fn reads_of_a_transaction_that_writes_report_damage() {
    with_each_damage(false, |_, txn, table, rows| {
        let scans = scan_all(txn, table).expect_err("a scan of a damaged page");
        is_corrupt("scan", &scans);
        let range = Range::all().from(key(0));
        is_corrupt("count", &txn.count(table, &range).expect_err("a count"));
        txn.nested().and_then(|nested| read_all(&nested, table, rows)).map_or_else(
            |error| is_corrupt("nested", &error),
            // Wrong keys elsewhere in a page do not concern a key that is found.
            |()| (),
        );
        Err(scans)
    });
}

#[test]
fn reads_of_a_table_that_was_changed_report_damage_of_pages_that_were_not() {
    with_each_damage(true, |what, txn, table, rows| {
        let scans = scan_all(txn, table);
        let read = read_all(txn, table, rows);
        let nested = txn.nested().and_then(|nested| read_all(&nested, table, rows));
        match (&scans, &read, &nested) {
            (Ok(()), Ok(()), Ok(())) | (Err(_), Err(_), Err(_)) => {}
            // The rows of the whole table are below a branch that LMDB has copied.
            (Err(_), Ok(()), Ok(())) if rows.len() < 30 && rows[1] - rows[0] > 1 => {}
            other => panic!("{what}: {other:?}"),
        }
        scans.and(read)
    });
}

#[test]
fn writes_to_a_damaged_page_are_refused() {
    for is_changed in [false, true] {
        with_each_damage(is_changed, |what, txn, table, rows| {
            let n = rows[rows.len() / 2];
            let put = txn.put(table, &key(n), b"other");
            if put.is_ok() {
                return Ok(());
            }
            let new = [&key(n)[..], b"new"].concat();
            is_corrupt(what, &txn.put(table, &new, b"").expect_err("a new key"));
            is_corrupt(what, &txn.delete(table, &key(n)).expect_err("a delete"));
            let mut nested = txn.nested().expect("a transaction");
            is_corrupt(what, &nested.put(table, &key(n), b"").expect_err("a nested put"));
            drop(nested);
            is_corrupt(what, &txn.delete_range(table, &Range::all()).expect_err("a clear"));
            put
        });
    }
}

#[test]
fn lmdb_follows_no_entry_of_a_branch_that_was_not_checked() {
    let case = Case::new();
    let (store, table) = (case.store(), case.table());
    let pages = case.pages();
    let branches = pages.iter().filter(|(_, is_branch)| *is_branch);
    let (mut written, mut refused) = (0, 0);
    let mut count = |result: Result<()>| match result {
        Ok(()) => written += 1,
        Err(error) => {
            is_corrupt("put", &error);
            refused += 1;
        }
    };
    for &(at, _) in branches {
        let entries = (case.short(at + 12) - 16) / 2;
        for slot in (0..entries).map(|index| at + 16 + 2 * index) {
            // The offset of an entry is far beyond the page.
            case.with(slot, &[0xF8, 0xFF], || {
                for n in (0..ROWS).step_by(61) {
                    let mut txn = store.write().expect("a transaction");
                    count(txn.put(&table, &key(n), &value(n)));
                    // Too long for the leaf: LMDB splits it and changes the branch.
                    let new = |i: u8| [&key(n)[..], &[i]].concat();
                    let split = (0..3).try_for_each(|i| txn.put(&table, &new(i), &[i; 1500]));
                    is_corrupt("split", &split.expect_err("a new entry of the branch"));
                    txn.abort();
                }
            });
        }
    }
    assert!(written > refused && refused > 0, "{written} and {refused}");
    store.verify(|_, _| ()).expect("nothing was written");
}

#[test]
fn a_condition_on_a_damaged_page_is_an_error_and_never_unmet() {
    with_each_damage(false, |what, txn, table, rows| {
        let mut errors = Vec::new();
        for &n in rows {
            match txn.put_if(table, &key(n), &value(n), Condition::Present) {
                Ok(is_met) => assert!(is_met, "{what}, key {n}"),
                Err(error) => errors.push(error),
            }
        }
        errors.pop().map_or(Ok(()), Err)
    });
}

#[test]
fn a_batch_that_meets_damage_fails_and_others_go_on() {
    let case = Case::new();
    let table = case.table();
    let writer = case.store().batch_writer(&BatchOptions::new()).expect("a writer");
    let leaves: Vec<_> = case.pages().into_iter().filter(|(_, is_branch)| !is_branch).collect();
    let (at, _) = leaves[leaves.len() / 2];
    let n = rows_in(&case, at, false)[0];
    case.with(at + 14, &[8, 0], || {
        let ack = writer.submit(Batch::new().put(&table, key(n), b"x")).expect("room");
        let error = ack.wait().expect_err("a damaged leaf");
        is_corrupt("batch", &error);
        let other = if n > 100 { 0 } else { ROWS - 1 };
        let ack = writer.submit(Batch::new().put(&table, key(other), b"x")).expect("room");
        ack.wait().expect("another leaf");
    });
}

/// Returns the leaf of a system table whose first key begins with these bytes.
fn own_leaf(case: &Case, begin: &[u8]) -> u64 {
    use std::os::unix::fs::FileExt;
    let pages = case.file.metadata().expect("its length").len() / PAGE;
    let mut found = (2..pages).map(|page| page * PAGE).filter(|at| {
        let mut key = vec![0; begin.len()];
        let first = at + case.short(at + 16);
        case.byte(at + 10) == 2
            && case.file.read_exact_at(&mut key, first + 8).is_ok()
            && key == begin
    });
    // Later copies of the page are in use.
    let mut offsets: Vec<_> = found.by_ref().collect();
    offsets.pop().expect("a leaf")
}

#[test]
fn damage_to_the_stores_own_tables_is_an_error_for_writes_and_reads() {
    let case = Case::new();
    let store = case.store();
    store.keep_changes(100, 1 << 20).expect("changes are kept");
    let stamped = store.table_of("stamped", Kind::Stamped).expect("a table");
    store.update(|txn| txn.put_until(&stamped, b"k", b"v", 1 << 50)).expect("a put");
    let at = own_leaf(&case, b"format");
    case.with(at + 14, &[8, 0], || {
        is_corrupt("settings", &store.write().expect_err("settings"));
        is_corrupt("sequence", &store.read().and_then(|txn| txn.sequence()).expect_err("settings"));
        is_corrupt("changes", &store.oldest_change().expect_err("settings"));
    });
    let at = own_leaf(&case, &[0, 4, 0, 0, 0, 0, 0, 0]);
    case.with(at + 14, &[8, 0], || {
        let put = store.update(|txn| txn.put_until(&stamped, b"k", b"w", 1 << 50));
        is_corrupt("times of expiry", &put.expect_err("the times of expiry"));
        is_corrupt("sweep", &store.sweep().expect_err("the times of expiry"));
    });
    store.verify(|_, _| ()).expect("nothing was written");
}

#[test]
fn rows_are_right_in_a_transaction_that_changes_most_of_a_table() {
    let case = Case::new();
    let (store, table) = (case.store(), case.table());
    let mut txn = store.write().expect("a transaction");
    let mut left: std::collections::BTreeMap<_, _> =
        (0..ROWS).map(|n| (key(n), value(n))).collect();
    // Whole leaves become empty, at the beginning, in the middle and at the end.
    for n in (0..300).chain(600..1400).chain(1700..ROWS).chain((300..600).step_by(3)) {
        assert!(txn.delete(&table, &key(n)).expect("a delete"), "{n}");
        left.remove(&key(n));
        if n % 100 == 0 {
            let expected: Vec<_> = left.clone().into_iter().collect();
            for scan in [Scan::all(), Scan::new(Range::all().from(key(0)).to(key(ROWS)))] {
                let rows = collect(txn.scan(&table, &scan).expect("a scan")).expect("rows");
                assert_eq!(rows, expected, "after {n}");
                let mut rows =
                    collect(txn.scan(&table, &scan.reverse()).expect("a scan")).expect("rows");
                rows.reverse();
                assert_eq!(rows, expected, "backwards, after {n}");
            }
        }
    }
    assert_eq!(txn.delete_range(&table, &Range::all().from(key(500))).expect("a range"), 367);
    txn.append(&table, b"z", b"last").expect("the last key");
    txn.commit().expect("a commit");
    store.verify(|_, _| ()).expect("no damage");
}
