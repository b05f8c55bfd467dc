use crate::{Case, ROWS, key};
use nuthatch_store::{Parallel, Range, Scan};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

fn numbers(case: &Case, scan: &Scan, parallel: &Parallel) -> Vec<u32> {
    let parse = |(key, _): (&[u8], &[u8])| {
        std::str::from_utf8(&key[3..]).ok().and_then(|digits| digits.parse().ok())
    };
    let rows = case.store.scan_parallel(&case.table, scan, parallel, parse).expect("a scan");
    rows.flat_map(|batch: Result<Vec<u32>, _>| batch.expect("a batch")).collect()
}

#[test]
fn all_rows_come_once_and_in_order_where_that_is_asked_for() {
    let case = Case::new();
    let all: Vec<u32> = (0..ROWS).collect();
    for threads in [1, 2, 5] {
        let mut found = numbers(&case, &Scan::all().batch_rows(100), &Parallel::split(threads));
        found.sort_unstable();
        assert!(found == all, "{threads} threads");
        let ordered = Parallel::split(threads).ordered();
        assert!(numbers(&case, &Scan::all().batch_rows(100), &ordered) == all, "{threads} threads");
        let mut backward = all.clone();
        backward.reverse();
        let found = numbers(&case, &Scan::all().reverse().batch_rows(100), &ordered);
        assert!(found == backward, "{threads} threads");
    }
}

#[test]
fn ranges_are_those_that_were_given() {
    let case = Case::new();
    let ranges = vec![
        Range::all().before(key(100)),
        Range::all().from(key(5000)).to(key(5001)),
        Range::all().after(key(ROWS - 3)),
    ];
    let scan = Scan::new(Range::all().from(key(98)));
    let parallel = Parallel::split(2).ranges(ranges).ordered();
    assert_eq!(numbers(&case, &scan, &parallel), [98, 99, 5000, 5001, ROWS - 2, ROWS - 1],);
}

#[test]
fn parts_are_of_about_the_same_size() {
    let case = Case::new();
    let range = Range::all().from(key(2000)).to(key(17_999));
    let parallel = Parallel::split(2);
    let counts = case.store.fold_parallel(
        &case.table,
        &Scan::new(range),
        &parallel,
        || 0_u32,
        |count, _| *count += 1,
    );
    let counts = counts.expect("counts");
    assert_eq!(counts.iter().sum::<u32>(), 16_000);
    assert!(counts.len() > 16, "{} parts", counts.len());
    assert!(counts.iter().all(|count| *count < 2000), "{counts:?}");
}

#[test]
fn empty_tables_and_ranges_have_no_rows() {
    let case = Case::new();
    let empty = case.store.table("empty").expect("a table");
    let parallel = Parallel::split(3).ordered();
    let rows = case.store.scan_parallel(&empty, &Scan::all(), &parallel, |_| Some(()));
    assert_eq!(rows.expect("a scan").count(), 0);
    let nothing = Scan::new(Range::all().from("x").before("a"));
    assert!(numbers(&case, &nothing, &parallel).is_empty());
    assert!(numbers(&case, &Scan::new(Range::prefix("no")), &parallel).is_empty());
}

#[test]
fn the_main_table_is_split_as_well() {
    let case = Case::new();
    let main = case.store.main_table();
    case.store
        .update(|txn| (0..ROWS).try_for_each(|n| txn.put(&main, &key(n), b"value")))
        .expect("rows");
    let counts = case.store.fold_parallel(
        &main,
        &Scan::new(Range::prefix("key")),
        &Parallel::split(4),
        || 0_u32,
        |count, _| *count += 1,
    );
    let counts = counts.expect("counts");
    assert!(counts.len() > 16, "{} parts", counts.len());
    assert_eq!(counts.iter().sum::<u32>(), ROWS);
}

#[test]
fn all_threads_see_one_state_while_others_write() {
    let case = Case::new();
    let (stop, start) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            // No transaction changes the number of rows.
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let moved = case.store.update(|txn| {
                    txn.delete(&case.table, &key(n % ROWS))?;
                    txn.put(&case.table, &key(n % ROWS + 1_000_000), b"moved")
                });
                moved.expect("a write");
                let back = case.store.update(|txn| {
                    txn.delete(&case.table, &key(n % ROWS + 1_000_000))?;
                    txn.put(&case.table, &key(n % ROWS), b"back")
                });
                back.expect("a write");
            }
        });
        start.wait();
        for _ in 0..20 {
            let found = numbers(&case, &Scan::all(), &Parallel::split(4));
            assert_eq!(found.len(), ROWS as usize);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn dropping_a_parallel_scan_ends_its_threads() {
    let case = Case::new();
    let scan = Scan::all().batch_rows(10);
    let mut rows = case
        .store
        .scan_parallel(&case.table, &scan, &Parallel::split(3), |_| Some(()))
        .expect("a scan");
    rows.next().expect("a batch").expect("no error");
    drop(rows);
    crate::waiting::until("its transactions end", || case.open_transactions() == 0);
}

#[test]
fn a_closure_that_panics_is_told_and_does_not_hang() {
    let case = Case::new();
    let scan = Scan::all().batch_rows(10);
    let mut rows = case
        .store
        .scan_parallel(&case.table, &scan, &Parallel::split(2).ordered(), |(found, _)| {
            assert!(found < &key(300)[..], "as the test wants it");
            Some(())
        })
        .expect("a scan");
    let error = rows.find_map(Result::err).expect("an error");
    assert!(error.to_string().contains("panicked"), "{error}");
    assert!(rows.next().is_none());
}

#[test]
fn a_limit_is_refused() {
    let case = Case::new();
    let scan = Scan::all().limit(10);
    let error = case.store.scan_parallel(&case.table, &scan, &Parallel::split(2), |_| Some(()));
    assert_eq!(error.err().map(|error| error.code()), Some("options"));
}

#[test]
fn parts_for_threads_of_the_caller_are_of_one_state_and_have_all_rows() {
    let case = Case::new();
    let parts = case.store.parallel_batches(&case.table, &Scan::all(), &Parallel::split(2));
    let parts = parts.expect("parts");
    assert!(parts.len() > 2, "{} parts", parts.len());
    case.store.put(&case.table, &key(0), b"later").expect("a put");
    let mut found = Vec::new();
    for part in parts {
        for batch in part {
            found.extend(batch.expect("a batch").to_vec());
        }
    }
    assert_eq!(found.len(), ROWS as usize);
    assert!(found.is_sorted() && found[0].1 != b"later");
    assert_eq!(case.store.stat().expect("a stat").open_transactions, 0);
}
