//! Items that stay after a turn.

use nuthatch_cache::{Cache, Error, Eviction, Lease, Options, Session, Write};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

const MEMORY: u64 = 32 << 20;

/// Lengths of an item among others, of a longer one, and of one with a segment of its own.
const LENS: [usize; 3] = [100, 50_000, 3 << 20];

fn cache(eviction: Eviction) -> Arc<Cache> {
    Arc::new(Cache::new(Options::new().memory(MEMORY).eviction(eviction)).expect("a cache"))
}

fn value(number: u64, len: usize) -> Vec<u8> {
    let word = |at: u64| (number << 32 ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
    (0..len.div_ceil(8) as u64).flat_map(word).take(len).collect()
}

fn store(session: &mut Session<'_>, number: u64, value: &[u8]) {
    let mut turn = session.turn();
    let key = number.to_le_bytes();
    match turn.set(&key, value, &Write::new()) {
        Err(Error::Full) if turn.renew() => {
            turn.set(&key, value, &Write::new()).map(drop).expect("room");
        }
        other => other.map(drop).expect("room"),
    }
}

fn lease(cache: &Arc<Cache>, session: &mut Session<'_>, number: u64) -> Lease {
    let turn = session.turn();
    turn.lease(cache, &turn.get(&number.to_le_bytes()).expect("there"))
}

/// Everything there is room for, and more.
fn flood(session: &mut Session<'_>) {
    for number in 0..3000_u64 {
        let len = LENS[number as usize % LENS.len()].min(300_000);
        store(session, 1 << 40 | number, &value(number, len));
    }
}

#[test]
fn a_lease_outlives_whatever_becomes_of_the_key() {
    type Act = fn(&mut Session<'_>);
    let acts: [Act; 5] = [
        |session| assert!(session.turn().remove(&0_u64.to_le_bytes())),
        |session| store(session, 0, b"another"),
        |session| store(session, 0, &value(9, 4 << 20)),
        |session| session.turn().clear(),
        flood,
    ];
    for len in LENS {
        for act in acts {
            let cache = cache(Eviction::S3Fifo);
            let mut session = cache.session().expect("a session");
            let stored = value(0, len);
            store(&mut session, 0, &stored);
            let lease = lease(&cache, &mut session, 0);
            act(&mut session);
            flood(&mut session);
            assert!(lease.value() == stored && lease.as_ref() == stored);
            assert_eq!(lease.item().key(), 0_u64.to_le_bytes());
            let stats = cache.stats();
            assert!(stats.memory <= MEMORY, "{stats:?}");
            assert!((len as u64..len as u64 + 30).contains(&stats.memory_leased), "{stats:?}");
            // The cache stays as long as its lease does.
            drop(session);
            drop(cache);
            assert!(lease.value() == stored);
        }
    }
}

#[test]
fn memory_comes_back_when_the_last_lease_ends() {
    for len in LENS {
        let cache = cache(Eviction::None);
        let mut session = cache.session().expect("a session");
        store(&mut session, 0, &value(0, len));
        let leases = [(); 3].map(|()| lease(&cache, &mut session, 0));
        assert!(session.turn().remove(&0_u64.to_le_bytes()));
        // Seals the segment that the item lies in.
        for number in 0..20_000 {
            store(&mut session, 1, &value(number, 100));
        }
        let one = cache.leased() / 3;
        assert!((len as u64..len as u64 + 30).contains(&one), "{one} of {len}");
        let before = cache.stats().memory_large;
        assert!(len < 1 << 20 || before > len as u64, "{before} of {len}");
        let (send, receive) = mpsc::channel::<Lease>();
        let ender = thread::spawn(move || receive.into_iter().for_each(drop));
        for lease in leases {
            assert_eq!(cache.stats().memory_large, before);
            send.send(lease).expect("a thread that ends leases");
        }
        drop(send);
        ender.join().expect("no panic");
        (0..100).for_each(|_| drop(session.turn()));
        let stats = cache.stats();
        assert_eq!((stats.memory_leased, stats.memory_large), (0, 0), "{stats:?}");
    }
}

/// The item is removed by another session in the turn in which the lease is taken: its segment is
/// retired already. What is freed twice would be given out twice.
#[test]
fn a_lease_of_what_was_removed_in_the_same_turn_keeps_it() {
    for len in LENS {
        let cache = cache(Eviction::S3Fifo);
        let [mut one, mut other] = [(); 2].map(|()| cache.session().expect("a session"));
        let mut kept = Vec::new();
        for round in 0..200_u64 {
            let stored = value(round, len);
            store(&mut one, 0, &stored);
            // Into another segment, so that the one before it may be over.
            store(&mut one, 1, &value(round, 120_000));
            let turn = one.turn();
            let item = turn.get(&0_u64.to_le_bytes()).expect("there");
            assert!(other.turn().remove(&0_u64.to_le_bytes()));
            // One that ends in the turn, and one that stays.
            drop(turn.lease(&cache, &item));
            let lease = turn.lease(&cache, &item);
            drop(turn.lease(&cache, &item));
            drop(turn);
            if round % 20 < 3 {
                kept.push((round, lease));
                drop(kept.drain(..kept.len().saturating_sub(4)));
            }
            flood_lightly(&mut other, round);
            for (round, lease) in &kept {
                assert!(lease.value() == value(*round, len), "round {round}");
            }
        }
        drop(kept);
        (0..100).for_each(|_| drop(one.turn()));
        let stats = cache.stats();
        assert_eq!(stats.memory_leased, 0, "{stats:?}");
        assert!(stats.memory <= MEMORY, "{stats:?}");
    }
}

fn flood_lightly(session: &mut Session<'_>, round: u64) {
    for number in 0..8 {
        store(session, 1 << 50 | round << 8 | number, &value(number, 70_000 * number as usize));
    }
}

#[test]
fn leases_that_never_end_take_memory_from_the_others_and_no_more() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let mut leases = Vec::new();
    for number in 0..7 {
        store(&mut session, number, &value(number, 3 << 20));
        leases.push(lease(&cache, &mut session, number));
    }
    for _ in 0..3 {
        flood(&mut session);
        let stats = cache.stats();
        assert!(stats.memory <= MEMORY && stats.memory_leased >= 21 << 20, "{stats:?}");
        assert!(leases.iter().zip(0..).all(|(l, number)| l.value() == value(number, 3 << 20)));
    }
    // More than is left.
    let mut turn = session.turn();
    let longest = value(7, cache.value_most());
    assert!(matches!(turn.set(b"longest", &longest, &Write::new()), Err(Error::Full)));
    assert!(!turn.renew() || turn.set(b"longest", &longest, &Write::new()).is_err());
    drop(turn);
    drop(leases);
    store(&mut session, 8, &longest);
}

#[test]
#[should_panic(expected = "the cache of this turn")]
fn a_lease_is_of_the_cache_of_its_turn() {
    let (one, other) = (cache(Eviction::S3Fifo), cache(Eviction::S3Fifo));
    let mut session = one.session().expect("a session");
    store(&mut session, 0, b"value");
    let turn = session.turn();
    let item = turn.get(&0_u64.to_le_bytes()).expect("there");
    turn.lease(&other, &item);
}

/// Leases are read and end in another thread, while items are replaced, removed and evicted.
#[test]
fn leases_are_whole_in_other_threads() {
    // So much that what is under lease leaves room.
    let memory = 4 * MEMORY;
    let cache = Arc::new(Cache::new(Options::new().memory(memory)).expect("a cache"));
    let (send, receive) = mpsc::sync_channel::<Lease>(4);
    thread::scope(|scope| {
        scope.spawn(move || {
            for lease in receive {
                let stored = lease.value();
                let round = u64::from_le_bytes(stored[..8].try_into().expect("eight bytes")) >> 32;
                assert!(stored == value(round, stored.len()), "round {round}");
            }
        });
        let writers = [0_u64, 1].map(|writer| {
            let cache = &cache;
            scope.spawn(move || {
                let mut session = cache.session().expect("a session");
                for round in 0..400 {
                    let len = LENS[(round * 5 + writer) as usize % LENS.len()];
                    store(&mut session, round * 7 % 40, &value(round << 1 | writer, len));
                    if round % 4 == 0 {
                        session.turn().remove(&(round % 40).to_le_bytes());
                    }
                }
            })
        });
        let mut session = cache.session().expect("a session");
        let mut number = 0_u64;
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            number = (number + 1) % 40;
            let turn = session.turn();
            let lease = turn.get(&number.to_le_bytes()).map(|item| turn.lease(&cache, &item));
            drop(turn);
            if let Some(lease) = lease
                && send.send(lease).is_err()
            {
                break;
            }
        }
        drop(send);
    });
    let stats = cache.stats();
    assert!(stats.memory <= memory && stats.memory_leased == 0, "{stats:?}");
}
