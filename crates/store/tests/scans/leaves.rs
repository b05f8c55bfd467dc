//! `Rows::visit` reads leaves with other code than the iterator. Both must return the rows that
//! LMDB's cursor returns.

use crate::{Case, ROWS, key, value};
use nuthatch_store::{Options, Range, Read, ReadTxn, Scan, Store, Table};
use nuthatch_testing::random::Random;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Returns the rows of `visit` and those of the iterator.
fn both(txn: &ReadTxn<'_>, table: &Table, scan: &Scan) -> (Rows, Rows) {
    let mut shown = Rows::new();
    let enough = txn.scan(table, scan).expect("a scan").visit(|key, value| {
        shown.push((key.to_vec(), value.to_vec()));
        true
    });
    assert!(!enough.expect("no error"), "the closure never had enough");
    let rows = txn.scan(table, scan).expect("a scan");
    let given = rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
    (shown, given.collect::<Result<_, _>>().expect("no error"))
}

#[test]
fn a_closure_is_shown_what_the_cursor_finds() {
    let case = Case::new();
    let txn = case.store.read().expect("a transaction");
    for (from, to) in [(0, ROWS), (1, 100), (5, 70), (63, 64), (777, 15_001), (ROWS - 1, ROWS)] {
        for limit in [u64::MAX, 1000, 65, 64, 63, 1] {
            for keys_only in [false, true] {
                let range = Range::all().from(key(from)).before(key(to));
                let scan = Scan::new(range).limit(limit);
                let scan = if keys_only { scan.keys_only() } else { scan };
                let (shown, given) = both(&txn, &case.table, &scan);
                assert!(shown == given, "{from}..{to}, {limit}: {} rows shown", shown.len());
                assert_eq!(shown.len() as u64, limit.min(u64::from(to - from)));
            }
        }
    }
    let mut count = 0;
    let enough = txn.scan(&case.table, &Scan::all()).expect("a scan").visit(|_, _| {
        count += 1;
        count < 10_000
    });
    assert!(enough.expect("no error"));
    assert_eq!(count, 10_000);
}

fn place(number: u64) -> String {
    format!("{number:08x}")
}

#[test]
fn rows_of_all_lengths_in_many_orders_are_shown() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let store = Store::open(folder.path().join("store"), &Options::new()).expect("a store");
    let table = store.table("rows").expect("a table");
    let mut random = Random::new(7);
    for round in 0..6 {
        store
            .update(|txn| {
                for _ in 0..3000 {
                    let key = vec![random.below(256) as u8; 1 + random.below(510) as usize];
                    let key = [place(random.below(1 << 31)).as_bytes(), &key].concat();
                    let len =
                        if random.below(50) == 0 { random.below(9000) } else { random.below(40) };
                    txn.put(&table, &key[..key.len().min(511)], &vec![round; len as usize])?;
                }
                // Leaves with few rows, and branches whose entries are removed.
                let from = random.below(1 << 31);
                if round % 2 == 1 {
                    let range = Range::all().from(place(from)).before(place(from + (1 << 29)));
                    txn.delete_range(&table, &range)?;
                }
                Ok::<_, nuthatch_store::Error>(())
            })
            .expect("rows");
        let txn = store.read().expect("a transaction");
        let (shown, given) = both(&txn, &table, &Scan::all());
        assert!(shown == given, "round {round}: {} rows shown, {}", shown.len(), given.len());
        assert!(shown.len() > 1000);
    }
}

#[test]
fn a_scan_shows_its_snapshot_whatever_is_written_meanwhile() {
    let case = Case::new();
    let txn = case.store.read().expect("a transaction");
    let mut next = 0;
    let scan = Scan::all();
    let rows = txn.scan(&case.table, &scan).expect("a scan");
    let enough = rows.visit(|found, bytes| {
        assert_eq!((found, bytes), (&key(next)[..], &value(next)[..]));
        next += 1;
        if next % 4000 == 100 {
            let put = |n: u32| case.store.put(&case.table, &key(n), b"changed");
            (next..next + 3).chain([ROWS + next]).for_each(|n| put(n).expect("a put"));
            case.store.delete(&case.table, &key(next + 4)).expect("a delete");
        }
        true
    });
    assert!(!enough.expect("no error"));
    assert_eq!(next, ROWS);
}

#[test]
fn a_transaction_that_writes_shows_what_it_wrote() {
    let case = Case::new();
    case.store
        .update(|txn| {
            (0..500_u32).try_for_each(|n| txn.put(&case.table, &key(n), b"changed"))?;
            let mut changed = 0;
            txn.scan(&case.table, &Scan::all())?.visit(|_, value| {
                changed += usize::from(value == b"changed");
                true
            })?;
            assert_eq!(changed, 500);
            Ok::<_, nuthatch_store::Error>(())
        })
        .expect("an update");
}

#[test]
fn the_main_table_and_stamped_ones_are_shown_whole() {
    let case = Case::new();
    let main = case.store.main_table();
    let stamped = case.store.table_of("stamped", nuthatch_store::Kind::Stamped).expect("a table");
    case.store
        .update(|txn| {
            (0..2000_u32).try_for_each(|n| {
                txn.put(&main, &key(n), &value(n))?;
                txn.put(&stamped, &key(n), &value(n))
            })
        })
        .expect("rows");
    let txn = case.store.read().expect("a transaction");
    for table in [&main, &stamped] {
        let (shown, given) = both(&txn, table, &Scan::new(Range::prefix("key")));
        assert!(shown == given && shown.len() == 2000, "{} rows shown", shown.len());
    }
}

/// A store with a table of several thousand rows, and its file.
fn with_file() -> (TempDir, Store, Table, File) {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("store");
    let store = Store::open(&path, &Options::new()).expect("a store");
    let table = store.table("rows").expect("a table");
    store
        .update(|txn| (0..5000).try_for_each(|n| txn.append(&table, &key(n), &[9; 60])))
        .expect("rows");
    let data = path.join("data.mdb");
    let file = File::options().read(true).write(true).open(&data).expect("the file");
    (folder, store, table, file)
}

fn byte(file: &File, at: u64) -> u8 {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    byte[0]
}

/// Branches and leaves of a file, and whether they are branches.
fn pages(file: &File) -> Vec<(u64, bool)> {
    let pages = file.metadata().expect("its length").len() / 4096;
    let kinds = (2..pages).map(|page| (page, byte(file, page * 4096 + 10) & 3));
    kinds.filter(|(_, kind)| *kind != 0).map(|(page, kind)| (page, kind == 1)).collect()
}

#[test]
fn pages_that_are_damaged_while_they_are_read_are_an_error_with_the_place() {
    let (_folder, store, table, file) = with_file();
    let mut errors = 0;
    for (page, is_branch) in pages(&file) {
        let start = page * 4096;
        let second = u64::from(byte(&file, start + 18)) | u64::from(byte(&file, start + 19)) << 8;
        // The number, the kind, the bounds, the offset of the first entry; in a branch also the
        // page number of the second entry, set far beyond the end of the file.
        let child = is_branch.then_some(second + 2);
        for at in [0, 1, 10, 11, 12, 13, 16, 17].into_iter().chain(child) {
            let was = byte(&file, start + at);
            let txn = store.read().expect("a transaction");
            let mut rows = 0;
            let visited = txn.scan(&table, &Scan::all()).expect("a scan").visit(|_, _| {
                rows += 1;
                if rows == 100 {
                    file.write_all_at(&[was ^ 0xFF], start + at).expect("a byte");
                }
                true
            });
            if let Err(error) = visited {
                assert_eq!(error.code(), "corrupt", "{error}");
                assert!(error.to_string().contains("at byte "), "{error}");
                errors += 1;
            }
            drop(txn);
            file.write_all_at(&[was], start + at).expect("a byte");
        }
    }
    assert!(errors > 400, "{errors} of the damages were found");
}

#[test]
fn a_page_with_a_wrong_number_leads_nowhere() {
    let (_folder, store, table, file) = with_file();
    let mut errors = 0;
    for (page, _) in pages(&file) {
        for (at, flip) in [(0, 1), (1, 2), (2, 0xFF), (5, 1), (7, 0x80)] {
            let was = byte(&file, page * 4096 + at);
            file.write_all_at(&[was ^ flip], page * 4096 + at).expect("a byte");
            let txn = store.read().expect("a transaction");
            let mut rows = 0;
            let visited = txn.scan(&table, &Scan::all()).and_then(|scanned| {
                scanned.visit(|found, _| {
                    assert_eq!(found, key(rows));
                    rows += 1;
                    true
                })
            });
            match visited {
                // It is a page of the main table, whose root this transaction has read before.
                Ok(_) => assert_eq!(rows, 5000),
                Err(error) => {
                    assert_eq!(error.code(), "corrupt", "{error}");
                    errors += 1;
                }
            }
            drop(txn);
            file.write_all_at(&[was], page * 4096 + at).expect("a byte");
        }
    }
    assert!(errors > 200, "{errors} of the damages were found");
}
