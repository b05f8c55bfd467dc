use super::follower::Waited;
use crate::{Error, Options, Range, ReadTxn, Start, Store, Table, Watch};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LONG: Duration = Duration::from_mins(1);
/// How long an idle watch waits in these tests: many times as long as a watch that spins needs for
/// a thousand looks.
const IDLE: Duration = Duration::from_millis(300);

struct Case {
    store: Store,
    table: Table,
    watch: Watch,
    _folder: TempDir,
}

impl Case {
    /// A store with few slots of readers, and a watch that has seen all there is.
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

    /// Takes every slot of a reader, and waits until the follower has failed twice since.
    fn fill_readers(&self) -> Vec<ReadTxn<'static>> {
        let mut readers = Vec::new();
        let error = loop {
            match self.store.snapshot() {
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
    // The follower reads again: a commit after this wait began ends it.
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
    // Whatever the follower had to make up for is behind it after this.
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
    // It is the same error for a watch that is asked later, at once.
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
        follower.ring();
        let error = waiting.join().expect("no panic").expect_err("the thread has panicked");
        let text = error.to_string();
        assert!(text.contains("a thread of the store panicked: a test asked for it"), "{text}");
    });
    let range = crate::Range::all();
    let mut watch = case.store.watch(None, range, crate::Start::Now).expect("a watch");
    case.put(b"after");
    let changes = watch.next_within(LONG).expect("no error").expect("changes");
    assert_eq!(changes[0].key, b"after");
}

#[test]
fn a_stream_of_changes_ends_with_an_error_when_the_follower_has_panicked() {
    use futures_core::Stream;
    use std::task::{Context, Poll, Wake};

    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }

    let case = Case::new();
    let follower = case.store.0.current_follower().expect("a follower");
    let mut stream = case.watch.into_stream();
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut poll = || std::pin::Pin::new(&mut stream).poll_next(&mut context);
    assert!(poll().is_pending());
    follower.panics.store(true, std::sync::atomic::Ordering::Relaxed);
    follower.ring();
    let error = loop {
        match poll() {
            Poll::Ready(next) => break next.expect("no end").expect_err("a panic"),
            Poll::Pending => std::thread::park(),
        }
    };
    assert!(error.to_string().contains("a thread of the store panicked"), "{error}");
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
