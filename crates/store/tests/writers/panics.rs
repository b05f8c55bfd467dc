//! Clocks and wakers of callers that panic on a thread of the store: that operation fails, and
//! other operations continue.

use crate::waiting::{block_on, until};
use futures_core::Stream;
use nuthatch_store::{
    Batch, BatchOptions, Clock, Condition, Kind, Options, Range, Start, Store, SystemClock,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A clock that panics while its flag is set.
#[derive(Default)]
struct Stopped(AtomicBool);

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        assert!(!self.0.load(Ordering::SeqCst), "the clock has stopped");
        SystemClock.now_ms()
    }
}

/// A waker that counts its calls and panics.
#[derive(Default)]
struct Panics(AtomicU64);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a waker panics");
    }
}

#[test]
fn a_clock_that_panics_fails_its_batch_and_the_writer_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = Arc::new(Stopped::default());
    let options = Options::new().clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let store = Store::open(folder.path(), &options).expect("a store");
    let table = store.table_of("stamped", Kind::Stamped).expect("a table");
    let writer = store.batch_writer(&BatchOptions::new()).expect("a writer");
    let put = || Batch::new().put(&table, b"key", b"value");
    writer.submit(put()).expect("room").wait().expect("an acknowledgement");
    clock.0.store(true, Ordering::SeqCst);
    let checked = put().check(&table, b"key", Condition::Present);
    let waited = writer.submit(checked.clone()).expect("room");
    let awaited = block_on(writer.submit_async(checked)).expect("room");
    for error in [waited.wait().expect_err("a panic"), block_on(awaited).expect_err("a panic")] {
        let text = error.to_string();
        assert!(text.contains("a thread of the store panicked: the clock has stopped"), "{text}");
    }
    clock.0.store(false, Ordering::SeqCst);
    writer.submit(put()).expect("room").wait().expect("the writer goes on");
    writer.flush().expect("the writer goes on");
}

#[test]
fn a_waker_that_panics_keeps_no_other_batch_from_its_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), &Options::new()).expect("a store");
    let table = store.table("rows").expect("a table");
    let writer = store.batch_writer(&BatchOptions::new()).expect("a writer");
    let panics = Arc::new(Panics::default());
    let waker = Waker::from(Arc::clone(&panics));
    // Both are in one group, since nothing is written while this transaction is open.
    let blocked = store.write().expect("a transaction");
    let mut first = writer.submit(Batch::new().put(&table, b"a", b"1")).expect("room");
    let polled = Pin::new(&mut first).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let second = writer.submit(Batch::new().put(&table, b"b", b"2")).expect("room");
    drop(blocked);
    second.wait().expect("an acknowledgement");
    assert_eq!(panics.0.load(Ordering::SeqCst), 1);
    block_on(first).expect("it was written");
    writer.flush().expect("the writer goes on");
}

#[test]
fn a_waker_that_panics_keeps_no_other_watch_from_its_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), &Options::new()).expect("a store");
    let table = store.table("rows").expect("a table");
    store.keep_changes(1000, 1 << 20).expect("changes are kept");
    let begin = || store.watch(None, Range::all(), Start::Now).expect("a watch");
    let (mut stream, mut other) = (begin().into_stream(), begin());
    let panics = Arc::new(Panics::default());
    let waker = Waker::from(Arc::clone(&panics));
    let polled = Pin::new(&mut stream).poll_next(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    for n in 0..3_u8 {
        store.put(&table, &[n + 1], b"value").expect("a put");
        let changes = other.next_within(Duration::from_mins(1)).expect("no error");
        assert_eq!(changes.expect("changes")[0].key, [n + 1]);
    }
    until("the waker was called", || panics.0.load(Ordering::SeqCst) == 1);
    let next = block_on(std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context)));
    assert!(next.expect("no end").is_ok(), "the stream itself goes on");
}

#[test]
fn a_closure_that_panics_ends_its_stream_with_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), &Options::new().threads(1)).expect("a store");
    let table = store.table("rows").expect("a table");
    store.put(&table, b"key", b"value").expect("a put");
    for _ in 0..3 {
        let scan = nuthatch_store::Scan::all();
        let mut stream = store.stream_map(&table, &scan, |_| -> Option<u8> { panic!("no row") });
        let mut next = || {
            block_on(std::future::poll_fn(|context| -> Poll<Option<_>> {
                Pin::new(&mut stream).poll_next(context)
            }))
        };
        let error = next().expect("no end").expect_err("a panic").to_string();
        assert!(error.contains("a thread of the store panicked: no row"), "{error}");
        assert!(next().is_none(), "the stream has ended");
    }
    assert_eq!(store.stat().expect("figures").open_transactions, 0);
}
