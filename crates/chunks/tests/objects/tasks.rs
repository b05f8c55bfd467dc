use crate::{Case, pattern};
use nuthatch_chunks::{Filled, Key, Lookup, TaskChunks};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A minimal executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn tasks_put_and_get_on_other_threads() {
    let case = Case::new();
    let tasks = TaskChunks::new(Arc::new(case.open()), 2).expect("threads");
    let key = Key::named("a").expect("a key");
    let puts: Vec<_> = (0..20)
        .map(|chunk| {
            let data = pattern(chunk, 0..1000);
            tasks.put(key.clone(), chunk..chunk + 1, vec![0, 1000], data)
        })
        .collect();
    for put in puts {
        assert_eq!(block_on(put).expect("a put").stored, 1);
    }
    let read = block_on(tasks.get(key.clone(), 0..20)).expect("a get").found().expect("all");
    let expected: Vec<_> = (0..20).flat_map(|chunk| pattern(chunk, 0..1000)).collect();
    assert_eq!(read.data, expected);
    assert_eq!(
        block_on(tasks.get(key.clone(), 19..21)).expect("a get"),
        Lookup::Missing(vec![20..21])
    );
    let Filled { buffer, found } = block_on(tasks.get_into(key.clone(), 3..20, vec![7; 17_001]));
    let offsets: Vec<_> = (0..=17).map(|chunk| chunk * 1000).collect();
    assert_eq!(found.expect("a get"), Lookup::Found(offsets));
    assert_eq!((&buffer[..17_000], buffer[17_000]), (&expected[3000..], 7));
    let Filled { buffer, found } = block_on(tasks.get_into(key.clone(), 0..20, buffer));
    assert!(found.is_err() && buffer.len() == 17_001, "it is too short, and comes back");
    let view = block_on(tasks.view(key.clone(), 0..20)).expect("a view").found().expect("all");
    assert_eq!(view.to_vec(), expected);
    let own = std::thread::current().id();
    assert_ne!(block_on(tasks.run(|_| std::thread::current().id())), own);
}

#[test]
fn a_task_that_panics_does_not_end_its_thread() {
    let case = Case::new();
    let tasks = TaskChunks::new(Arc::new(case.open()), 1).expect("a thread");
    let work = tasks.run(|_| panic!("as it should"));
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block_on(work)));
    assert!(waited.is_err(), "the waiting thread gets an error");
    assert_eq!(block_on(tasks.run(|_| 7)), 7);
}

#[test]
fn a_task_waits_for_the_fetch_of_another() {
    let case = Case::new();
    let chunks = Arc::new(case.open());
    let key = Key::named("a").expect("a key");
    let flights = chunks.single_flight(&key, std::slice::from_ref(&(0..1))).flights;
    let waiters = chunks.single_flight(&key, std::slice::from_ref(&(0..1))).waiters;
    let thread = std::thread::spawn(move || {
        for flight in flights {
            flight.finish(nuthatch_chunks::Fetched::Stored);
        }
    });
    for waiter in waiters {
        assert_eq!(block_on(waiter), nuthatch_chunks::Fetched::Stored);
    }
    thread.join().expect("it ends");
}

#[test]
fn puts_that_are_queued_are_waited_for_before_a_process_ends() {
    let case = Case::new();
    let tasks = TaskChunks::new(Arc::new(case.open()), 3).expect("threads");
    tasks.wait_for_puts();
    let done = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        let done = done.clone();
        drop(tasks.run_put(move |_| done.fetch_add(1, Ordering::Relaxed)));
    }
    tasks.wait_for_puts();
    assert_eq!(done.load(Ordering::Relaxed), 50);
}

#[test]
fn a_read_does_not_wait_behind_puts_that_wait() {
    let case = Case::new();
    let tasks = TaskChunks::new(Arc::new(case.open()), 2).expect("threads");
    let key = Key::named("a").expect("a key");
    block_on(tasks.put(key.clone(), 0..1, vec![0, 10], vec![7; 10])).expect("a put");
    // Like puts that wait for a thread or process that reclaims a segment: more of them than
    // threads.
    let waiting = (0..5).map(|_| {
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        (go_on, tasks.run_put(move |_| may_go_on.recv()))
    });
    let (senders, puts): (Vec<_>, Vec<_>) = waiting.unzip();
    for _ in 0..20 {
        let read = block_on(tasks.get(key.clone(), 0..1)).expect("a get").found().expect("all");
        assert_eq!(read.data, [7; 10]);
    }
    for (sender, put) in senders.into_iter().zip(puts) {
        sender.send(()).expect("a put that waits");
        block_on(put).expect("it went on");
    }
    let last = tasks.run_put(|_| 7);
    drop(tasks);
    assert_eq!(block_on(last), 7, "what was begun is done");
}
