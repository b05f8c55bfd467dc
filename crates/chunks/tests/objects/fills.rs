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
                    let claim = chunks.claim(object.key(), &missing);
                    for ticket in claim.mine {
                        let gap = ticket.range();
                        // Between the look and the claim, another one may have fetched it.
                        for gap in object.missing(gap.clone()).expect("a look") {
                            fetched.fetch_add(gap.end - gap.start, Ordering::Relaxed);
                            let bytes = pattern(4, gap.clone());
                            object.put(gap.start, &bytes).expect("a put");
                        }
                        ticket.finish(Fetched::Stored);
                    }
                    for waiting in claim.theirs {
                        assert_ne!(waiting.wait(), Fetched::Failed);
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
fn claims_split_around_what_others_fetch() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    let first = chunks.claim(&key, from_ref(&(10..20)));
    let second = chunks.claim(&key, &[0..5, 8..30]);
    let ranges: Vec<_> = second.mine.iter().map(nuthatch_chunks::Ticket::range).collect();
    assert_eq!(ranges, [0..5, 8..10, 20..30]);
    assert_eq!(second.theirs.len(), 1);
    assert_eq!(second.theirs[0].range(), 10..20);
    let other = chunks.claim(&Key::named("b").expect("a key"), from_ref(&(10..20)));
    assert_eq!((other.mine.len(), other.theirs.len()), (1, 0), "another object");
    for ticket in first.mine {
        ticket.finish(Fetched::Bytes(Arc::from(&b"0123456789"[..])));
    }
    for waiting in second.theirs {
        assert_eq!(waiting.wait(), Fetched::Bytes(Arc::from(&b"0123456789"[..])));
    }
}

#[test]
fn a_fetch_that_is_given_up_wakes_those_who_wait() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    let first = chunks.claim(&key, from_ref(&(0..1)));
    let second = chunks.claim(&key, from_ref(&(0..1)));
    drop(first);
    for waiting in second.theirs {
        assert_eq!(waiting.wait(), Fetched::Failed);
    }
    assert_eq!(chunks.claim(&key, from_ref(&(0..1))).mine.len(), 1, "it can be claimed again");
}

#[test]
fn a_ticket_knows_whether_anybody_waits() {
    let case = Case::new();
    let chunks = case.open();
    let key = Key::named("a").expect("a key");
    let mut claim = chunks.claim(&key, &[0..5, 5..9]);
    let (second, first) = (claim.mine.pop().expect("two"), claim.mine.pop().expect("two"));
    assert_eq!((first.range(), second.range()), (0..5, 5..9), "what touches stays apart");
    assert!(!first.is_awaited());
    let own = first.waiting();
    assert!(first.is_awaited() && !second.is_awaited());
    drop(own);
    let other = chunks.claim(&key, from_ref(&(3..4)));
    assert!(first.is_awaited() && !second.is_awaited());
    first.finish(Fetched::Stored);
    assert_eq!(other.theirs.into_iter().map(nuthatch_chunks::Waiting::wait).count(), 1);
}

#[test]
fn handles_claim_among_each_other() {
    let case = Case::new();
    let (one, other) = (case.open(), case.open());
    let key = Key::named("a").expect("a key");
    let claimed = one.claim_among_processes(&key, 0..10).expect("a claim").expect("nobody has it");
    assert!(other.claim_among_processes(&key, 9..20).expect("a claim").is_none());
    assert!(other.claim_among_processes(&key, 10..20).expect("a claim").is_some());
    let elsewhere = Key::named("b").expect("a key");
    assert!(other.claim_among_processes(&elsewhere, 0..10).expect("a claim").is_some());
    drop(claimed);
    assert!(other.claim_among_processes(&key, 0..u64::MAX).expect("a claim").is_some());
}
