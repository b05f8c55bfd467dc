use crate::follower::Waited;
use crate::{
    BatchStream, Change, Error, Options, Range, ReadTxn, Result, Start, Store, Table, Watch,
};
use futures_core::Stream as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LONG: Duration = Duration::from_mins(1);
/// How long an idle watch waits in these tests: many times as long as a spinning watch needs for a
/// thousand reads.
const IDLE: Duration = Duration::from_millis(300);

struct Case {
    store: Store,
    table: Table,
    watch: Watch,
    _folder: TempDir,
}

impl Case {
    /// Creates a store with few reader slots, and a watch that is up to date.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let options = Options::new().readers(8);
        let store = Store::open(folder.path().join("store"), &options).expect("a store");
        let table = store.table("t").expect("a table");
        store.keep_changes(1000, 1 << 20).expect("changes are kept");
        let watch = store.watch(None, Range::all(), Start::Now).expect("a watch");
        Self { store, table, watch, _folder: folder }
    }

    fn put(&self, key: &[u8]) {
        self.store.put(&self.table, key, b"value").expect("a put");
    }

    /// Takes all reader slots, and waits until the follower has failed twice.
    fn fill_readers(&self) -> Vec<ReadTxn<'static>> {
        let mut readers = Vec::new();
        let error = loop {
            match self.store.read_owned() {
                Ok(txn) => readers.push(txn),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::ReadersFull { .. }), "{error}");
        let (before, deadline) = (self.store.watch_failures(), Instant::now() + LONG);
        while self.store.watch_failures() < before + 2 {
            assert!(Instant::now() < deadline, "the follower does not fail, or does so once");
            std::thread::yield_now();
        }
        readers
    }

    fn wakeups(&self) -> u64 {
        self.store.0.current_follower().expect("a follower").wakeups()
    }
}

#[test]
fn a_watch_goes_on_after_all_slots_of_readers_were_in_use() {
    let mut case = Case::new();
    drop(case.fill_readers());
    case.put(b"a");
    let changes = case.watch.next_within(LONG).expect("no error").expect("changes");
    assert_eq!(changes[0].key, b"a");
    let failures = case.store.watch_failures();
    // The follower can read again: a commit after the wait began ends it.
    std::thread::scope(|scope| {
        let (store, table) = (&case.store, &case.table);
        let watch = &mut case.watch;
        let waiting = scope.spawn(move || watch.next_within(LONG));
        store.put(table, b"b", b"value").expect("a put");
        let changes = waiting.join().expect("no panic").expect("no error").expect("changes");
        assert_eq!(changes[0].key, b"b");
    });
    assert!(failures >= 2, "{failures} failures were counted");
}

#[test]
fn an_idle_watch_does_not_spin_after_the_follower_failed() {
    let mut case = Case::new();
    drop(case.fill_readers());
    // After this, the follower has no retries left to do.
    case.put(b"a");
    case.watch.next_within(LONG).expect("no error").expect("changes");
    let before = case.wakeups();
    assert_eq!(case.watch.next_within(IDLE).expect("no error"), None);
    let woken = case.wakeups() - before;
    assert!(woken <= 2, "an idle watch was woken {woken} times");
}

#[test]
fn a_wait_that_ends_while_the_store_cannot_be_read_says_why() {
    let mut case = Case::new();
    let readers = case.fill_readers();
    let follower = case.store.0.current_follower().expect("a follower");
    let waited = follower.wait(u64::MAX, Instant::now()).expect("the follower goes on");
    assert_eq!(waited, Waited::Unknown, "nobody knows whether something was committed");
    let error = case.watch.next_within(IDLE).expect_err("all slots are in use");
    assert!(matches!(error, Error::ReadersFull { .. }), "{error}");
    drop(readers);
    case.put(b"later");
    let changes = case.watch.next_within(LONG).expect("the watch goes on").expect("changes");
    assert_eq!(changes[0].key, b"later");
}

#[test]
fn a_wait_ends_with_the_store() {
    let mut case = Case::new();
    std::thread::scope(|scope| {
        let watch = &mut case.watch;
        let waiting = scope.spawn(move || watch.next_within(LONG));
        case.store.close();
        let error = waiting.join().expect("no panic").expect_err("the store is closed");
        assert!(matches!(error, Error::Closed), "{error}");
    });
    // A later call returns the same error immediately.
    let error = case.watch.next_within(LONG).expect_err("the store is closed");
    assert!(matches!(error, Error::Closed), "{error}");
}

#[test]
fn a_panic_of_the_follower_is_an_error_and_the_next_watch_starts_another() {
    let mut case = Case::new();
    std::thread::scope(|scope| {
        let follower = case.store.0.current_follower().expect("a follower");
        let watch = &mut case.watch;
        let waiting = scope.spawn(move || watch.next_within(LONG));
        follower.panics.store(true, std::sync::atomic::Ordering::Relaxed);
        follower.notify();
        let error = waiting.join().expect("no panic").expect_err("the thread has panicked");
        let text = error.to_string();
        assert!(text.contains("a thread of the store panicked: a panic for a test"), "{text}");
    });
    let range = crate::Range::all();
    let mut watch = case.store.watch(None, range, crate::Start::Now).expect("a watch");
    case.put(b"after");
    let changes = watch.next_within(LONG).expect("no error").expect("changes");
    assert_eq!(changes[0].key, b"after");
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

type Stream = BatchStream<Vec<Change>>;

/// Polls a stream, which wakes this thread when there is more.
fn poll(stream: &mut Stream) -> Poll<Option<Result<Vec<Change>>>> {
    let waker = Arc::new(Unpark(thread::current())).into();
    Pin::new(stream).poll_next(&mut Context::from_waker(&waker))
}

/// Waits until a stream is woken and has a batch.
fn next(stream: &mut Stream) -> Result<Vec<Change>> {
    let deadline = Instant::now() + LONG;
    loop {
        if let Poll::Ready(next) = poll(stream) {
            return next.expect("no end without an error");
        }
        thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
        assert!(Instant::now() < deadline, "the stream is not woken");
    }
}

#[test]
fn a_stream_of_changes_ends_with_an_error_when_the_follower_has_panicked() {
    let case = Case::new();
    let follower = case.store.0.current_follower().expect("a follower");
    let mut stream = case.watch.into_stream();
    assert!(poll(&mut stream).is_pending());
    follower.panics.store(true, Ordering::Relaxed);
    follower.notify();
    let error = next(&mut stream).expect_err("a panic");
    assert!(error.to_string().contains("a thread of the store panicked"), "{error}");
}

#[test]
fn a_stream_of_changes_goes_on_after_it_found_no_slot_of_a_reader() {
    let case = Case::new();
    let readers = case.fill_readers();
    case.put(b"a");
    let follower = case.store.0.current_follower().expect("a follower");
    let mut stream = case.watch.into_stream();
    let deadline = Instant::now() + LONG;
    while !follower.has_task_to_retry() {
        let polled = poll(&mut stream);
        assert!(polled.is_pending(), "{polled:?}");
        assert!(Instant::now() < deadline, "the stream does not look");
        thread::yield_now();
    }
    drop(readers);
    // Nothing is committed from here on.
    assert_eq!(next(&mut stream).expect("no error")[0].key, b"a");
}

#[test]
fn a_stream_that_waits_for_a_slot_of_a_reader_ends_with_the_store() {
    let case = Case::new();
    let readers = case.fill_readers();
    let follower = case.store.0.current_follower().expect("a follower");
    let mut stream = case.watch.into_stream();
    let deadline = Instant::now() + LONG;
    while !follower.has_task_to_retry() {
        assert!(poll(&mut stream).is_pending() && Instant::now() < deadline);
    }
    case.store.close();
    let error = next(&mut stream).expect_err("the store is closed");
    assert!(matches!(error, Error::Closed), "{error}");
    drop(readers);
}

#[cfg(feature = "sigbus")]
#[test]
fn a_stream_that_waits_ends_with_the_damage_when_its_file_is_truncated() {
    let case = Case::new();
    let mut stream = case.watch.into_stream();
    assert!(poll(&mut stream).is_pending());
    let data = std::fs::File::options().write(true).open(case.store.path().join("data.mdb"));
    data.expect("the file").set_len(0).expect("an empty file");
    let error = next(&mut stream).expect_err("no file");
    assert_eq!(error.code(), "corrupt", "{error}");
}

// Adding the longest duration to the current time panicked.
#[test]
fn a_wait_may_have_the_longest_duration() {
    let mut case = Case::new();
    case.put(b"a");
    let changes = case.watch.next_within(Duration::MAX).expect("no error").expect("changes");
    assert_eq!(changes.len(), 1);
}

#[test]
fn a_wait_retries_with_backoff_until_its_deadline() {
    let mut case = Case::new();
    let readers = case.fill_readers();
    let before = case.watch.reads;
    let error = case.watch.next_within(IDLE).expect_err("all slots are in use");
    assert!(matches!(error, Error::ReadersFull { .. }), "{error}");
    let reads = case.watch.reads - before;
    // Reads after 0, 10, 30, 70 and 150 ms, and at the end; fewer if this thread was delayed.
    assert!((2..=6).contains(&reads), "{reads} reads");
    drop(readers);
}

#[test]
fn a_wait_that_begins_without_a_slot_of_a_reader_gets_what_is_committed() {
    let mut case = Case::new();
    let readers = case.fill_readers();
    case.put(b"a");
    let before = case.store.watch_failures();
    thread::scope(|scope| {
        let watch = &mut case.watch;
        let waiting = scope.spawn(move || watch.next_within(LONG));
        while !waiting.is_finished() && case.store.watch_failures() < before + 4 {
            thread::yield_now();
        }
        drop(readers);
        let changes = waiting.join().expect("no panic").expect("no error").expect("changes");
        assert_eq!(changes[0].key, b"a");
    });
}

#[test]
fn failures_of_watches_that_have_ended_stay_counted() {
    let case = Case::new();
    drop(case.fill_readers());
    let counter = case.store.watch_failure_counter();
    drop(case.watch);
    let failures = case.store.watch_failures();
    assert!(failures >= 2, "{failures} were counted");
    assert!(case.store.close_within(LONG), "the counter does not keep the store open");
    assert!(counter.load(std::sync::atomic::Ordering::Relaxed) >= failures);
}
