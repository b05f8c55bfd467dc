use crate::waiting::{next, poll_once, until};
use crate::{Case, ROWS, key, value};
use nuthatch_store::{Error, Range, Scan};
use std::task::Poll;

#[test]
fn a_stream_has_all_rows_in_order() {
    let case = Case::new();
    let mut stream = case.store.stream(&case.table, &Scan::all().batch_rows(777));
    let mut n = 0;
    while let Some(batch) = next(&mut stream) {
        for (found, stored) in batch.expect("a batch").iter() {
            assert!(found == key(n) && stored == value(n), "row {n}");
            n += 1;
        }
    }
    assert_eq!(n, ROWS);
    assert!(next(&mut stream).is_none(), "it stays ended");
    assert_eq!(case.open_transactions(), 0);
}

#[test]
fn nothing_is_read_before_it_is_asked_for() {
    let case = Case::new();
    let mut stream = case.store.stream(&case.table, &Scan::all().batch_rows(10));
    assert_eq!(case.open_transactions(), 0);
    case.store.put(&case.table, b"a", b"written after the stream was made").expect("a put");
    let batch = next(&mut stream).expect("a batch").expect("no error");
    assert_eq!(batch.get(0).map(|row| row.0), Some(&b"a"[..]));
    case.store.put(&case.table, b"key00000010x", b"later").expect("a put");
    let batch = next(&mut stream).expect("a batch").expect("no error");
    let keys: Vec<_> = batch.iter().map(|row| row.0.to_vec()).collect();
    assert!(!keys.contains(&b"key00000010x".to_vec()), "one snapshot for all batches");
}

#[test]
fn dropping_a_stream_ends_its_transaction() {
    let case = Case::new();
    let mut stream = case.store.stream(&case.table, &Scan::all().batch_rows(10));
    drop(next(&mut stream));
    drop(stream);
    until("its transaction ends", || case.open_transactions() == 0);
    // The same while a thread reads from the stream.
    let mut stream = case.store.stream(&case.table, &Scan::all());
    assert!(matches!(poll_once(&mut stream), Poll::Pending | Poll::Ready(Some(_))));
    drop(stream);
    until("its transaction ends", || case.open_transactions() == 0);
}

#[test]
fn a_stream_reads_a_few_batches_ahead_and_no_more() {
    let case = Case::new();
    let counted = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = std::sync::Arc::clone(&counted);
    let scan = Scan::all().batch_rows(10);
    let mut stream = case.store.stream_map(&case.table, &scan, move |(key, _)| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Some(key.len())
    });
    let read = || counted.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(read(), 0);
    let first = next(&mut stream).expect("a batch").expect("no error");
    assert_eq!(first, [11; 10]);
    for taken in 1..20 {
        until("two batches are read ahead", || read() >= 10 * (taken + 2));
        assert!(read() <= 10 * (taken + 4), "{} rows after {taken} batches", read());
        next(&mut stream).expect("a batch").expect("no error");
    }
}

#[test]
fn many_streams_share_few_threads() {
    let case = Case::new();
    let scan = Scan::all().batch_rows(500);
    let mut streams: Vec<_> = (0..50).map(|_| case.store.stream(&case.table, &scan)).collect();
    let mut rows = vec![0; streams.len()];
    let mut open = streams.len();
    while open > 0 {
        for (stream, rows) in streams.iter_mut().zip(&mut rows) {
            match next(stream) {
                Some(batch) => *rows += batch.expect("a batch").len(),
                None if *rows == ROWS as usize => {
                    open -= 1;
                    *rows += 1;
                }
                None => assert_eq!(*rows, ROWS as usize + 1),
            }
        }
    }
}

#[test]
fn a_mapped_stream_leaves_out_what_the_closure_does() {
    let case = Case::new();
    let scan = Scan::new(Range::all().from(key(5000)));
    let even = |(key, _): (&[u8], &[u8])| key.ends_with(b"0").then(|| key.to_vec());
    let mut stream = case.store.stream_map(&case.table, &scan, even);
    let mut keys = Vec::new();
    while let Some(batch) = next(&mut stream) {
        keys.extend(batch.expect("a batch"));
    }
    let expected: Vec<_> = (5000..ROWS).step_by(10).map(key).collect();
    assert_eq!(keys, expected);
}

#[test]
fn closing_fails_streams_that_run() {
    let case = Case::new();
    let mut stream = case.store.stream(&case.table, &Scan::all().batch_rows(10));
    next(&mut stream).expect("a batch").expect("no error");
    case.store.close();
    let error = loop {
        match next(&mut stream).expect("an error before the end") {
            // At most the batches that were read ahead.
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Closed));
    assert!(next(&mut stream).is_none());
}
