//! Items that stay in memory after their guard ended.

use nuthatch_cache::{Cache, Error, Eviction, ItemRef, Options, Session, Write};
use nuthatch_testing::random;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

const MEMORY: u64 = 32 << 20;

/// Lengths of a short item, of a longer one, and of one with a segment of its own.
const LENS: [usize; 3] = [100, 50_000, 3 << 20];

fn cache(eviction: Eviction) -> Arc<Cache> {
    Arc::new(Cache::new(Options::new().memory(MEMORY).eviction(eviction)).expect("a cache"))
}

fn store(session: &mut Session<'_>, number: u64, value: &[u8]) {
    let mut guard = session.guard();
    let key = number.to_le_bytes();
    match guard.set(&key, value, &Write::new()) {
        Err(Error::Full) if guard.renew() => {
            guard.set(&key, value, &Write::new()).map(drop).expect("room");
        }
        other => other.map(drop).expect("room"),
    }
}

fn item_ref(cache: &Arc<Cache>, session: &mut Session<'_>, number: u64) -> ItemRef {
    let guard = session.guard();
    guard.item_ref(cache, &guard.get(&number.to_le_bytes()).expect("there"))
}

/// Stores more than fits.
fn flood(session: &mut Session<'_>) {
    for number in 0..3000_u64 {
        let len = LENS[number as usize % LENS.len()].min(300_000);
        store(session, 1 << 40 | number, &random::bytes(number, len));
    }
}

#[test]
fn an_item_ref_outlives_changes_of_its_key() {
    type Operation = fn(&mut Session<'_>);
    let operations: [Operation; 5] = [
        |session| assert!(session.guard().remove(&0_u64.to_le_bytes())),
        |session| store(session, 0, b"another"),
        |session| store(session, 0, &random::bytes(9, 4 << 20)),
        |session| session.guard().clear(),
        flood,
    ];
    for len in LENS {
        for operation in operations {
            let cache = cache(Eviction::S3Fifo);
            let mut session = cache.session().expect("a session");
            let stored = random::bytes(0, len);
            store(&mut session, 0, &stored);
            let item_ref = item_ref(&cache, &mut session, 0);
            operation(&mut session);
            flood(&mut session);
            assert!(item_ref.value() == stored && item_ref.as_ref() == stored);
            assert_eq!(item_ref.item().key(), 0_u64.to_le_bytes());
            let stats = cache.stats();
            assert!(stats.memory <= MEMORY, "{stats:?}");
            assert!((len as u64..len as u64 + 30).contains(&stats.memory_referenced), "{stats:?}");
            // The cache stays as long as an item reference.
            drop(session);
            drop(cache);
            assert!(item_ref.value() == stored);
        }
    }
}

#[test]
fn memory_is_freed_when_the_last_item_ref_is_dropped() {
    for len in LENS {
        let cache = cache(Eviction::None);
        let mut session = cache.session().expect("a session");
        store(&mut session, 0, &random::bytes(0, len));
        let item_refs = [(); 3].map(|()| item_ref(&cache, &mut session, 0));
        assert!(session.guard().remove(&0_u64.to_le_bytes()));
        // Seals the segment of the item.
        for number in 0..20_000 {
            store(&mut session, 1, &random::bytes(number, 100));
        }
        let one = cache.referenced_bytes() / 3;
        assert!((len as u64..len as u64 + 30).contains(&one), "{one} of {len}");
        let before = cache.stats().memory_large;
        assert!(len < 1 << 20 || before > len as u64, "{before} of {len}");
        let (send, receive) = mpsc::channel::<ItemRef>();
        let ender = thread::spawn(move || receive.into_iter().for_each(drop));
        for item_ref in item_refs {
            assert_eq!(cache.stats().memory_large, before);
            send.send(item_ref).expect("a thread that drops references");
        }
        drop(send);
        ender.join().expect("no panic");
        (0..100).for_each(|_| drop(session.guard()));
        let stats = cache.stats();
        assert_eq!((stats.memory_referenced, stats.memory_large), (0, 0), "{stats:?}");
    }
}

/// Another session removes the item under the guard that adds the reference, so its segment is
/// already retired. A segment that is freed twice would be used twice.
#[test]
fn an_item_ref_keeps_an_item_removed_under_the_same_guard() {
    for len in LENS {
        let cache = cache(Eviction::S3Fifo);
        let [mut one, mut other] = [(); 2].map(|()| cache.session().expect("a session"));
        let mut kept = Vec::new();
        for round in 0..200_u64 {
            let stored = random::bytes(round, len);
            store(&mut one, 0, &stored);
            // Into another segment, so that the previous one can be retired.
            store(&mut one, 1, &random::bytes(round, 120_000));
            let guard = one.guard();
            let item = guard.get(&0_u64.to_le_bytes()).expect("there");
            assert!(other.guard().remove(&0_u64.to_le_bytes()));
            // One reference ends before the guard, and one stays.
            drop(guard.item_ref(&cache, &item));
            let item_ref = guard.item_ref(&cache, &item);
            drop(guard.item_ref(&cache, &item));
            drop(guard);
            if round % 20 < 3 {
                kept.push((round, item_ref));
                drop(kept.drain(..kept.len().saturating_sub(4)));
            }
            flood_lightly(&mut other, round);
            for (round, item_ref) in &kept {
                assert!(item_ref.value() == random::bytes(*round, len), "round {round}");
            }
        }
        drop(kept);
        (0..100).for_each(|_| drop(one.guard()));
        let stats = cache.stats();
        assert_eq!(stats.memory_referenced, 0, "{stats:?}");
        assert!(stats.memory <= MEMORY, "{stats:?}");
    }
}

fn flood_lightly(session: &mut Session<'_>, round: u64) {
    for number in 0..8 {
        store(
            session,
            1 << 50 | round << 8 | number,
            &random::bytes(number, 70_000 * number as usize),
        );
    }
}

#[test]
fn item_refs_that_are_never_dropped_only_reduce_the_memory_for_others() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let mut item_refs = Vec::new();
    for number in 0..7 {
        store(&mut session, number, &random::bytes(number, 3 << 20));
        item_refs.push(item_ref(&cache, &mut session, number));
    }
    for _ in 0..3 {
        flood(&mut session);
        let stats = cache.stats();
        assert!(stats.memory <= MEMORY && stats.memory_referenced >= 21 << 20, "{stats:?}");
        assert!(
            item_refs
                .iter()
                .zip(0..)
                .all(|(l, number)| l.value() == random::bytes(number, 3 << 20))
        );
    }
    // More than is left.
    let mut guard = session.guard();
    let longest = random::bytes(7, cache.max_value_len());
    assert!(matches!(guard.set(b"longest", &longest, &Write::new()), Err(Error::Full)));
    assert!(!guard.renew() || guard.set(b"longest", &longest, &Write::new()).is_err());
    drop(guard);
    drop(item_refs);
    store(&mut session, 8, &longest);
}

#[test]
#[should_panic(expected = "the cache of this guard")]
fn an_item_ref_with_another_cache_panics() {
    let (one, other) = (cache(Eviction::S3Fifo), cache(Eviction::S3Fifo));
    let mut session = one.session().expect("a session");
    store(&mut session, 0, b"value");
    let guard = session.guard();
    let item = guard.get(&0_u64.to_le_bytes()).expect("there");
    guard.item_ref(&other, &item);
}

/// Returns a value that begins with its number.
fn numbered(number: u64, len: usize) -> Vec<u8> {
    [&number.to_le_bytes(), &random::bytes(number, len - 8)[..]].concat()
}

/// References are read and dropped in other threads, while items are replaced, removed and evicted.
#[test]
fn item_refs_are_complete_in_other_threads() {
    // Enough memory for all referenced items and more.
    let memory = 4 * MEMORY;
    let cache = Arc::new(Cache::new(Options::new().memory(memory)).expect("a cache"));
    let (send, receive) = mpsc::sync_channel::<ItemRef>(4);
    thread::scope(|scope| {
        scope.spawn(move || {
            for item_ref in receive {
                let stored = item_ref.value();
                let number = u64::from_le_bytes(stored[..8].try_into().expect("eight bytes"));
                assert!(stored == numbered(number, stored.len()), "number {number}");
            }
        });
        let writers = [0_u64, 1].map(|writer| {
            let cache = &cache;
            scope.spawn(move || {
                let mut session = cache.session().expect("a session");
                for round in 0..400 {
                    let len = LENS[(round * 5 + writer) as usize % LENS.len()];
                    store(&mut session, round * 7 % 40, &numbered(round << 1 | writer, len));
                    if round % 4 == 0 {
                        session.guard().remove(&(round % 40).to_le_bytes());
                    }
                }
            })
        });
        let mut session = cache.session().expect("a session");
        let mut number = 0_u64;
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            number = (number + 1) % 40;
            let guard = session.guard();
            let item_ref =
                guard.get(&number.to_le_bytes()).map(|item| guard.item_ref(&cache, &item));
            drop(guard);
            if let Some(item_ref) = item_ref
                && send.send(item_ref).is_err()
            {
                break;
            }
        }
        drop(send);
    });
    let stats = cache.stats();
    assert!(stats.memory <= memory && stats.memory_referenced == 0, "{stats:?}");
}
