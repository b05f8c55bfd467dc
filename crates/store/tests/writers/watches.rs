use crate::Case;
use crate::waiting::{next, poll_once, until};
use nuthatch_store::{Change, Error, Kind, Operation, Range, Read, Start, Store, Table, Watch};
use std::task::Poll;
use std::time::Duration;

const LONG: Duration = Duration::from_mins(1);

fn watched() -> (Case, Table) {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    case.store.keep_changes(1000, 1 << 20).expect("changes are kept");
    (case, table)
}

fn told(changes: &[Change]) -> Vec<(u64, Operation, String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let tell = |c: &Change| (c.sequence, c.operation, text(&c.key), text(&c.value));
    changes.iter().map(tell).collect()
}

fn put(store: &Store, table: &Table, key: &str) {
    store.put(table, key.as_bytes(), b"value").expect("a put");
}

fn row(sequence: u64, key: &str) -> (u64, Operation, String, String) {
    (sequence, Operation::Put, key.to_owned(), "value".to_owned())
}

#[test]
fn changes_come_in_order_with_their_transactions() {
    let (case, table) = watched();
    let mut watch = case.store.watch(None, Range::all(), Start::Now).expect("a watch");
    assert_eq!(watch.next_within(Duration::ZERO).expect("no error"), None);
    case.store
        .update(|txn| {
            txn.put(&table, b"a", b"1")?;
            txn.put(&table, b"b", b"2")?;
            txn.delete(&table, b"a").map(|_| ())
        })
        .expect("changes");
    put(&case.store, &table, "c");
    let mut changes = Vec::new();
    while changes.len() < 4 {
        changes.extend(watch.next_within(LONG).expect("no error").expect("changes"));
    }
    let text = |text: &str| text.to_owned();
    assert_eq!(
        told(&changes),
        [
            (1, Operation::Put, text("a"), text("1")),
            (2, Operation::Put, text("b"), text("2")),
            (3, Operation::Delete, text("a"), text("")),
            row(4, "c"),
        ]
    );
    let ids: Vec<_> = changes.iter().map(|change| change.transaction).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[2] < ids[3], "{ids:?}");
    assert!(changes.iter().all(|change| change.table == "t"));
}

#[test]
fn what_is_not_committed_is_not_seen_and_takes_no_number() {
    let (case, table) = watched();
    let mut txn = case.store.write().expect("a transaction");
    txn.put(&table, b"a", b"value").expect("a put");
    drop(txn);
    let mut txn = case.store.write().expect("a transaction");
    let mut nested = txn.nested().expect("a nested one");
    nested.put(&table, b"b", b"value").expect("a put");
    nested.abort();
    txn.put(&table, b"c", b"value").expect("a put");
    txn.commit().expect("a commit");
    let mut watch = case.store.watch(None, Range::all(), Start::Oldest).expect("a watch");
    let changes = watch.next_within(LONG).expect("no error").expect("changes");
    assert_eq!(told(&changes), [row(1, "c")]);
}

#[test]
fn a_watch_goes_on_after_a_number() {
    let (case, table) = watched();
    for key in ["a", "b", "c"] {
        put(&case.store, &table, key);
    }
    let mut watch = case.store.watch(None, Range::all(), Start::After(2)).expect("a watch");
    let changes = watch.next_within(LONG).expect("no error").expect("changes");
    assert_eq!(told(&changes), [row(3, "c")]);
    assert_eq!(watch.next_sequence(), 4);
    // From the sequence number of a scan: no change is missed or repeated.
    let seen = case.store.read().expect("a transaction").sequence().expect("a number");
    put(&case.store, &table, "d");
    let mut watch = case.store.watch(None, Range::all(), Start::After(seen)).expect("a watch");
    let changes = watch.next_within(LONG).expect("no error").expect("changes");
    assert_eq!(told(&changes), [row(4, "d")]);
}

#[test]
fn only_changes_of_the_table_and_range_come() {
    let (case, table) = watched();
    let other = case.store.table("other").expect("a table");
    let range = Range::prefix("b");
    let mut watch = case.store.watch(Some(&table), range, Start::Now).expect("a watch");
    for key in ["a", "b1", "c", "b2"] {
        put(&case.store, &other, key);
        put(&case.store, &table, key);
    }
    let mut changes = Vec::new();
    while changes.len() < 2 {
        changes.extend(watch.next_within(LONG).expect("no error").expect("changes"));
    }
    assert_eq!(told(&changes), [row(4, "b1"), row(8, "b2")]);
    assert_eq!(watch.next_within(Duration::ZERO).expect("no error"), None);
    assert_eq!(watch.next_sequence(), 9, "what is of others is behind it, too");
}

#[test]
fn a_stream_waits_without_a_thread_and_wakes_with_a_commit() {
    let (case, table) = watched();
    let watches = (0..40).map(|_| case.store.watch(None, Range::all(), Start::Now));
    let mut streams: Vec<_> = watches.map(|w| w.expect("a watch").into_stream()).collect();
    for stream in &mut streams {
        assert!(matches!(poll_once(stream), Poll::Pending));
    }
    std::thread::scope(|scope| {
        let waiting: Vec<_> = streams
            .iter_mut()
            .map(|stream| scope.spawn(|| next(stream).expect("changes").expect("no error")))
            .collect();
        put(&case.store, &table, "a");
        for thread in waiting {
            assert_eq!(told(&thread.join().expect("no panic")), [row(1, "a")]);
        }
    });
    until("no transaction stays open", || {
        case.store.stat().expect("figures").open_transactions == 0
    });
}

#[test]
fn a_slow_watch_is_told_that_it_fell_behind_and_writers_go_on() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    case.store.keep_changes(10, 1 << 20).expect("changes are kept");
    let mut watch = case.store.watch(None, Range::all(), Start::Now).expect("a watch");
    for n in 0..500 {
        put(&case.store, &table, &format!("{n:03}"));
    }
    let error = watch.next_within(LONG).expect_err("it fell behind");
    assert!(matches!(error, Error::FellBehind { wanted: 1, oldest: 491 }), "{error}");
    let oldest = case.store.oldest_change().expect("no error");
    assert_eq!(oldest, Some(491));
    let error = case.store.watch(None, Range::all(), Start::After(3)).expect_err("too old");
    assert_eq!(error.code(), "fell-behind");
    let mut watch = case.store.watch(None, Range::all(), Start::Oldest).expect("a watch");
    assert_eq!(watch.next_within(LONG).expect("no error").expect("changes").len(), 10);
}

#[test]
fn bytes_are_bounded_too() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    case.store.keep_changes(1_000_000, 10_000).expect("changes are kept");
    for n in 0..50_u8 {
        case.store.put(&table, &[n + 1], &[n; 1000]).expect("a put");
    }
    let mut watch = case.store.watch(None, Range::all(), Start::Oldest).expect("a watch");
    let changes = watch.next_within(LONG).expect("no error").expect("changes");
    let last: Vec<_> = changes.iter().map(|change| change.sequence).collect();
    assert_eq!(last, (42..=50).collect::<Vec<_>>());
}

/// A change that alone exceeded the limit used to be dropped, together with all others.
#[test]
fn the_newest_change_is_kept_however_long_it_is() {
    let case = Case::new();
    let table = case.store.table("t").expect("a table");
    case.store.keep_changes(10, 1000).expect("changes are kept");
    let mut running = case.store.watch(None, Range::all(), Start::Now).expect("a watch");
    let kept = || {
        let mut watch = case.store.watch(None, Range::all(), Start::Oldest).expect("a watch");
        let changes = watch.next_within(LONG).expect("no error").expect("changes");
        changes.iter().map(|change| change.sequence).collect::<Vec<_>>()
    };
    let mut sequence = 0;
    for len in [5000, 10, 10, 9000, 9000, 10] {
        case.store.put(&table, b"key", &vec![0; len]).expect("a put");
        sequence += 1;
        assert_eq!(kept().last(), Some(&sequence), "{len} bytes");
        let changes = running.next_within(LONG).expect("it does not fall behind");
        assert_eq!(changes.expect("changes").len(), 1);
    }
    // The next change makes the store drop it.
    assert_eq!(kept(), [6]);
    case.store.keep_changes(0, 1000).expect("none are kept");
    assert_eq!(case.store.oldest_change().expect("read"), Some(7));
}

#[test]
fn a_number_that_never_was_is_refused() {
    let (case, table) = watched();
    put(&case.store, &table, "a");
    let error = case.store.watch(None, Range::all(), Start::After(2)).expect_err("the future");
    assert!(matches!(error, Error::Ahead { after: 2, newest: 1 }), "{error}");
    case.store.watch(None, Range::all(), Start::After(1)).expect("the present");
}

#[test]
fn a_store_that_keeps_nothing_says_so() {
    let case = Case::new();
    let watch = |store: &Store| store.watch(None, Range::all(), Start::Now);
    assert!(matches!(watch(&case.store), Err(Error::NoChangesKept)));
    case.store.keep_changes(10, 1000).expect("changes are kept");
    let mut running: Watch = watch(&case.store).expect("a watch");
    case.store.keep_no_changes().expect("no more");
    assert!(matches!(running.next_within(LONG), Err(Error::NoChangesKept)));
    assert!(matches!(watch(&case.store), Err(Error::NoChangesKept)));
}

#[test]
fn rows_that_expire_are_told_when_they_are_swept() {
    let case = Case::new();
    let table = case.store.table_of("t", Kind::Stamped).expect("a table");
    case.store.keep_changes(10, 1000).expect("changes are kept");
    case.store.update(|txn| txn.put_until(&table, b"k", b"value", 1)).expect("long past");
    assert_eq!(case.store.get(&table, b"k").expect("a get"), None);
    case.store.sweep().expect("a sweep");
    let mut watch = case.store.watch(None, Range::all(), Start::Oldest).expect("a watch");
    let changes = watch.next_within(LONG).expect("no error").expect("changes");
    let operations: Vec<_> =
        changes.iter().map(|change| (change.operation, change.expires_at_ms)).collect();
    assert_eq!(operations, [(Operation::Put, Some(1)), (Operation::Expire, None)]);
}

#[test]
fn closing_ends_watches() {
    let (case, _) = watched();
    let mut watch = case.store.watch(None, Range::all(), Start::Now).expect("a watch");
    case.store.close();
    assert!(matches!(watch.next_within(LONG), Err(Error::Closed)));
    assert!(case.folder.path().exists());
}
