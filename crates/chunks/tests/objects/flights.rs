use crate::{Case, pattern};
use nuthatch_chunks::{Fetched, Key};
use std::slice::from_ref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

#[test]
fn each_gap_is_fetched_once() {
    let case = Case::new();
    let chunks = case.open();
    let fetched = AtomicU64::new(0);
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (chunks, fetched, barrier) = (&chunks, &fetched, &barrier);
            scope.spawn(move || {
                let object = chunks.blocks("a", "1", 100_000, 1000).expect("an object");
                barrier.wait();
                let range = thread * 500..100_000 - thread * 700;
                loop {
                    let missing = object.missing(range.clone()).expect("a look");
                    if missing.is_empty() {
                        break;
                    }
                    let single_flight = chunks.single_flight(object.key(), &missing);
                    for flight in single_flight.flights {
                        let gap = flight.range();
                        // Another thread may have fetched the range between the lookup and the
                        // flight.
                        for gap in object.missing(gap.clone()).expect("a look") {
                            fetched.fetch_add(gap.end - gap.start, Ordering::Relaxed);
                            let bytes = pattern(4, gap.clone());
                            object.put(gap.start, &bytes).expect("a put");
                        }
                        flight.finish(Fetched::Stored);
                    }
                    for waiter in single_flight.waiters {
                        assert_ne!(waiter.wait(), Fetched::Failed);
                    }
                }
                let found = object.get(range.clone()).expect("a get").found();
                assert_eq!(found, Some(pattern(4, range)));
            });
        }
    });
    assert_eq!(fetched.load(Ordering::Relaxed), 100_000, "no byte was fetched twice");
}

#[test]
fn ranges_in_flight_are_left_out() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    let first = chunks.single_flight(&key, from_ref(&(10..20)));
    let second = chunks.single_flight(&key, &[0..5, 8..30]);
    let ranges: Vec<_> = second.flights.iter().map(nuthatch_chunks::Flight::range).collect();
    assert_eq!(ranges, [0..5, 8..10, 20..30]);
    assert_eq!(second.waiters.len(), 1);
    assert_eq!(second.waiters[0].range(), 10..20);
    let other = chunks.single_flight(&Key::named("b").expect("a key"), from_ref(&(10..20)));
    assert_eq!((other.flights.len(), other.waiters.len()), (1, 0), "another object");
    for flight in first.flights {
        flight.finish(Fetched::Bytes(Arc::from(&b"0123456789"[..])));
    }
    for waiter in second.waiters {
        assert_eq!(waiter.wait(), Fetched::Bytes(Arc::from(&b"0123456789"[..])));
    }
}

#[test]
fn a_fetch_that_is_given_up_wakes_those_who_wait() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    let first = chunks.single_flight(&key, from_ref(&(0..1)));
    let second = chunks.single_flight(&key, from_ref(&(0..1)));
    drop(first);
    for waiter in second.waiters {
        assert_eq!(waiter.wait(), Fetched::Failed);
    }
    assert_eq!(
        chunks.single_flight(&key, from_ref(&(0..1))).flights.len(),
        1,
        "it can be fetched again"
    );
}

#[test]
fn a_flight_knows_whether_it_has_waiters() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    let mut fetches = chunks.single_flight(&key, &[0..5, 5..9]);
    let (second, first) =
        (fetches.flights.pop().expect("two"), fetches.flights.pop().expect("two"));
    assert_eq!((first.range(), second.range()), (0..5, 5..9), "what touches stays apart");
    assert!(!first.is_awaited());
    let own = first.waiter();
    assert!(first.is_awaited() && !second.is_awaited());
    drop(own);
    let other = chunks.single_flight(&key, from_ref(&(3..4)));
    assert!(first.is_awaited() && !second.is_awaited());
    first.finish(Fetched::Stored);
    assert_eq!(other.waiters.into_iter().map(nuthatch_chunks::Waiter::wait).count(), 1);
}

#[test]
fn fetch_locks_of_two_handles_do_not_overlap() {
    let case = Case::new();
    let (one, other) = (case.open(), case.open());
    let key = Key::named("a").expect("a key");
    let lock = one.try_fetch_lock(&key, 0..10).expect("a fetch lock").expect("the range is free");
    assert!(other.try_fetch_lock(&key, 9..20).expect("a fetch lock").is_none());
    assert!(other.try_fetch_lock(&key, 10..20).expect("a fetch lock").is_some());
    let elsewhere = Key::named("b").expect("a key");
    assert!(other.try_fetch_lock(&elsewhere, 0..10).expect("a fetch lock").is_some());
    drop(lock);
    assert!(other.try_fetch_lock(&key, 0..u64::MAX).expect("a fetch lock").is_some());
}
