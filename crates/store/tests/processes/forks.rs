//! Tests of children made by `fork`. This file has unsafe code: it forks.

use crate::Place;
use crate::child::{Other, pause, say};
use nuthatch_store::{
    Batch, BatchOptions, Durability, Options, Range, Read, Store, Table, WriteTxn, compact,
};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io::{Read as _, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Forks a child that runs `body` and ends. Returns its process ID.
fn start_child(body: impl FnOnce()) -> Pid {
    // SAFETY: the child only runs `body`, which takes no locks that threads of the parent hold, and
    // ends without returning.
    let number = unsafe { libc::fork() };
    if number == 0 {
        let done = catch_unwind(AssertUnwindSafe(body)).is_ok();
        // SAFETY: it ends the process.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    Pid::from_raw(number).expect("a child")
}

#[track_caller]
fn wait_for_child(child: Pid) {
    let (_, status) =
        waitpid(Some(child), WaitOptions::empty()).expect("its end").expect("a child");
    assert_eq!(status.exit_status(), Some(0), "{status:?}");
}

#[track_caller]
fn in_child(body: impl FnOnce()) {
    wait_for_child(start_child(body));
}

/// The child inherits a store and a read transaction, drops them, and opens the store.
pub(crate) fn fork_while_reading(path: &Path) {
    let store = Store::open(path, &Options::new().durability(Durability::None)).expect("a store");
    let table = store.table("rows").expect("a table");
    let write = |value: u8| {
        let rows = |txn: &mut WriteTxn<'_>| {
            (0..500_u32).try_for_each(|n| txn.put(&table, &n.to_le_bytes(), &[value; 1000]))
        };
        store.update(rows).expect("rows");
    };
    write(0);
    drop_in_child(&store, &table);
    let (mut inherited, mut reading) =
        (Some(store.clone()), Some(store.read_owned().expect("one")));
    in_child(|| {
        let error = store.get(&table, b"key").expect_err("a store of the parent");
        assert_eq!(error.code(), "closed");
        assert!(error.to_string().contains("forked"), "{error}");
        let old = reading.take().expect("a transaction");
        assert_eq!(old.get(&table, b"key").expect_err("of the parent").code(), "closed");
        assert!(old.scan(&table, &Range::all().into()).is_err(), "of the parent");
        drop(old);
        let own = Store::open(path, &Options::new()).expect("the child opens it");
        drop(inherited.take());
        let rows = own.table("rows").expect("a table");
        own.put(&rows, b"child", b"wrote").expect("a put");
        let error = Store::open(path, &Options::new()).expect_err("it is open here");
        assert_eq!(error.code(), "already-open");
        assert_eq!(compact(path).expect_err("it is open").code(), "already-open");
        in_child(|| {
            assert_eq!(own.get(&rows, b"child").expect_err("of the parent").code(), "closed");
            let own = Store::open(path, &Options::new()).expect("a child of the child opens it");
            own.table("grandchildren").expect("a table");
        });
        drop((own, rows));
        assert_eq!(compact(path).expect_err("the parent has it").code(), "in-use");
        Store::open(path, &Options::new()).expect("once more");
    });
    // If its reader slot were freed, pages that the transaction reads would be reused.
    (1..50).for_each(write);
    let reading = reading.expect("a transaction");
    let rows = reading.scan(&table, &Range::all().into()).expect("a scan");
    let rows = rows.map(|row| row.map(|(_, value)| value.iter().all(|byte| *byte == 0)));
    assert_eq!(rows.filter(|row| row.as_ref().is_ok_and(|is_old| *is_old)).count(), 500);
    drop((reading, inherited));
    let found = store.get(&table, b"child").expect("a get");
    assert_eq!(found.as_deref(), Some(&b"wrote"[..]));
    assert!(store.find_table("grandchildren").expect("no error").is_some());
    say("forked");
    pause();
}

/// Operations that need threads or the write lock of the parent fail in the child, which drops
/// them.
fn drop_in_child(store: &Store, table: &Table) {
    let writer = store.batch_writer(&BatchOptions::new()).expect("a writer");
    let mut ack = Some(writer.submit(Batch::new().put(table, "one", "1")).expect("room"));
    let (mut writer, mut txn) = (Some(writer), Some(store.write().expect("a transaction")));
    in_child(|| {
        let error = ack.take().expect("an acknowledgement").wait().expect_err("of the parent");
        assert_eq!(error.code(), "closed");
        let writer = writer.take().expect("a writer");
        let error = writer.submit(Batch::new()).expect_err("of the parent");
        assert_eq!(error.code(), "closed");
        assert_eq!(writer.flush().expect_err("of the parent").code(), "closed");
        assert_eq!(writer.check_process().expect_err("of the parent").code(), "closed");
        let other = store.batch_writer(&BatchOptions::new()).expect_err("of the parent");
        assert_eq!(other.code(), "closed");
        let mut txn = txn.take().expect("a transaction");
        assert_eq!(txn.put(table, b"two", b"2").expect_err("of the parent").code(), "closed");
        assert_eq!(txn.commit().expect_err("of the parent").code(), "closed");
        assert_eq!(store.write().expect_err("of the parent").code(), "closed");
    });
    let mut txn = txn.expect("a transaction");
    txn.put(table, b"two", b"3").expect("the parent goes on");
    txn.commit().expect("the parent goes on");
    writer.expect("a writer").flush().expect("the parent goes on");
    ack.expect("an acknowledgement").wait().expect("a commit");
    for key in [&b"one"[..], b"two"] {
        assert!(store.delete(table, key).expect("a delete"));
    }
}

#[test]
fn a_child_made_by_fork_opens_the_store_and_leaves_its_parents_alone() {
    let place = Place::new();
    let mut other = Other::start("fork", &place.path());
    assert_eq!(other.hear().as_deref(), Some("forked"));
    place.assert_in_use("forked");
    other.nudge();
    other.wait();
}

/// The parent closes its store while a child that never used the store is running.
pub(crate) fn fork_and_close(path: &Path) {
    let store = Store::open(path, &Options::new()).expect("a store");
    let (mut wait, end) = pipe().expect("a pipe");
    let mut end = Some(end);
    let child = start_child(|| {
        drop(end.take());
        let _ = wait.read(&mut [0]);
    });
    drop(store);
    say("closed");
    pause();
    drop(end);
    wait_for_child(child);
}

#[test]
fn a_child_made_by_fork_does_not_keep_its_parents_store_locked() {
    let place = Place::new();
    let mut other = Other::start("fork and close", &place.path());
    assert_eq!(other.hear().as_deref(), Some("closed"));
    compact(place.path()).expect("it is closed");
    other.nudge();
    other.wait();
}

/// Other threads open and close stores at the moment of the fork.
pub(crate) fn fork_beside_threads(path: &Path) {
    let done = AtomicBool::new(false);
    let store = Store::open(path, &Options::new()).expect("a store");
    store.table("rows").expect("a table");
    std::thread::scope(|scope| {
        for name in ["one", "two"] {
            let (folder, done) = (path.with_file_name(name), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    drop(Store::open(&folder, &Options::new()).expect("a store"));
                }
            });
        }
        for _ in 0..40 {
            in_child(|| {
                let own = Store::open(path, &Options::new()).expect("the child opens it");
                own.find_table("rows").expect("no error").expect("the table");
            });
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_child_opens_stores_whatever_other_threads_did_at_the_fork() {
    let place = Place::new();
    Other::start("fork beside threads", &place.path()).wait();
}
