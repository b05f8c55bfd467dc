//! Watches.

use super::served::{Served, TABLE, code, is, key, options, served, served_to};
use nuthatch_rpc::{ClientOptions, WatchStream};
use nuthatch_store::{Change, Operation, Range, Start};

fn next(served: &Served, watch: &mut WatchStream) -> Vec<Change> {
    served.wait(watch.next()).expect("no end").expect("changes")
}

fn described(changes: &[Change]) -> Vec<(Operation, String, &[u8], &[u8])> {
    changes.iter().map(|c| (c.operation, c.table.clone(), &c.key[..], &c.value[..])).collect()
}

#[test]
fn changes_are_in_order_and_a_watch_can_start_after_any_of_them() {
    let served = served();
    served.store.keep_changes(1000, 1 << 20).expect("kept");
    let mut all = served.watch(Start::Now).expect("a watch");
    let users = Range::prefix("user:");
    let watch = served.client.watch(Some(TABLE), &users, Start::Now);
    let mut some = served.wait(watch).expect("a watch");
    assert_eq!(all.sequence(), some.sequence());
    let begun = all.sequence();
    let batch = nuthatch_rpc::Batch::new()
        .put(TABLE, b"user:1", b"")
        .put("", b"elsewhere", b"x")
        .delete(TABLE, b"user:1");
    let written = served.wait(served.client.write_batch(batch)).expect("written");
    let changes = next(&served, &mut all);
    let birds = TABLE.to_owned();
    let expected = [
        (Operation::Put, birds.clone(), &b"user:1"[..], &b""[..]),
        (Operation::Put, String::new(), b"elsewhere", b"x"),
        (Operation::Delete, birds, b"user:1", b""),
    ];
    assert_eq!(described(&changes), expected);
    assert!(changes.iter().all(|change| change.transaction == written.transaction));
    assert_eq!((all.sequence(), changes[2].sequence), (written.sequence, written.sequence));
    assert_eq!(next(&served, &mut some), [changes[0].clone(), changes[2].clone()]);
    for (start, skipped) in [(Start::After(begun), 0), (Start::After(begun + 1), 1)] {
        let again = served.watch(start);
        let mut again = again.expect("a watch");
        assert_eq!(next(&served, &mut again), changes[skipped..]);
    }
}

#[test]
fn a_watch_that_fell_behind_fails() {
    let served = served();
    let none = served.watch(Start::Oldest);
    assert_eq!(code(none), is("no-changes-kept", 9));
    served.store.keep_changes(2, 1 << 20).expect("kept");
    for _ in 0..10 {
        served.store.put(&served.table, b"a", b"1").expect("written");
    }
    let behind = served.watch(Start::After(1));
    assert_eq!(code(behind), is("fell-behind", 11));
    let ahead = served.watch(Start::After(1 << 40));
    assert_eq!(code(ahead), is("ahead", 11));
    let oldest = served.watch(Start::Oldest);
    let mut oldest = oldest.expect("a watch");
    assert_eq!(next(&served, &mut oldest).len(), 2);
}

#[test]
fn a_watch_that_waits_holds_no_transaction() {
    let served = served();
    served.store.keep_changes(10, 1 << 20).expect("kept");
    let watch = served.watch(Start::Now);
    let watch = watch.expect("a watch");
    served.until(|served| served.open_transactions() == 0);
    assert_eq!(served.server.metrics().open_calls(), 1);
    drop(watch);
    served.until(|served| served.server.metrics().open_calls() == 0);
}

#[test]
fn failed_reads_of_commits_are_counted_in_the_metrics() {
    let served = served();
    served.store.keep_changes(1000, 1 << 20).expect("kept");
    let mut watch = served.watch(Start::Now).expect("a watch");
    let counts = served.server.metrics();
    let line = |count| format!("\nnuthatch_rpc_watch_failures_total {count}\n");
    assert!(counts.exposition().contains(&line(0)), "{}", counts.exposition());
    // All reader slots are in use, including those of short reads.
    let readers = std::cell::RefCell::new(Vec::new());
    served.until(|served| {
        readers.borrow_mut().extend(std::iter::from_fn(|| served.store.read_owned().ok()));
        counts.watch_failures() >= 2
    });
    readers.borrow_mut().clear();
    served.store.put(&served.table, b"wren", b"1").expect("a put");
    assert_eq!(next(&served, &mut watch)[0].key, b"wren");
    let counted = counts.watch_failures();
    assert!(counts.exposition().contains(&line(counted)), "{}", counts.exposition());
}

#[test]
fn a_watch_continues_after_the_server_found_no_reader_slot() {
    const ROWS: u32 = 64;
    let served = served_to(&options(), &ClientOptions::new().window_bytes(1 << 16));
    served.store.keep_changes(1000, 1 << 30).expect("kept");
    let mut watch = served.watch(Start::Now).expect("a watch");
    // More changes than the server sends ahead: it must read the store again.
    served.fill(ROWS, 256 << 10);
    let readers = std::cell::RefCell::new(Vec::new());
    let counts = served.server.metrics();
    // Also those that were in use for a moment.
    let fill_slots =
        || readers.borrow_mut().extend(std::iter::from_fn(|| served.store.read_owned().ok()));
    let before = counts.watch_failures();
    served.until(|_| {
        fill_slots();
        counts.watch_failures() > before
    });
    let reading = served.runtime.spawn(async move {
        let mut changes = Vec::new();
        while changes.len() < ROWS as usize {
            changes.extend(watch.next().await.expect("no end")?);
        }
        Ok::<_, nuthatch_rpc::Error>(changes)
    });
    served.until(|_| {
        fill_slots();
        reading.is_finished() || counts.watch_failures() >= before + 10
    });
    readers.borrow_mut().clear();
    let changes = served.wait(reading).expect("no panic").expect("it goes on");
    assert!((0..ROWS).map(key).eq(changes.into_iter().map(|change| change.key)));
}
