//! Many threads at once: every value that is read is complete, and was written under its key.

use nuthatch_cache::{
    Cache, Condition, Error, Eviction, Guard, Item, Options, Outcome, Session, Write,
};
use nuthatch_testing::random::Random;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const MEMORY: u64 = 16 << 20;

/// Makes a test fail instead of hang if a thread never ends its guard.
const PATIENCE: Duration = Duration::from_mins(2);

/// Builds a value that contains its key and shows whether it is complete.
fn value(key: u64, random: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&key.to_le_bytes());
    out.extend_from_slice(&random.to_le_bytes());
    let mut filler = Random::new(key ^ random);
    for _ in 0..random % 60 {
        out.extend_from_slice(&filler.next_u64().to_le_bytes());
    }
}

fn check(key: u64, bytes: &[u8]) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!(word(0), key, "a value of another key");
    let mut expected = Vec::new();
    value(key, word(8), &mut expected);
    assert_eq!(bytes, expected, "an incomplete value");
}

/// Runs one random command. Returns `false` if there was no memory: other threads hold guards.
fn step<'t>(
    guard: &'t Guard<'_>,
    (random, keys): (&mut Random, u64),
    items: &mut Vec<(u64, Item<'t>)>,
) -> bool {
    let key = random.next_u64() % keys;
    let name = key.to_le_bytes();
    let mut buffer = Vec::new();
    value(key, random.next_u64(), &mut buffer);
    let write = match random.next_u64() % 10 {
        0..4 => {
            items.extend(guard.get(&name).map(|item| (key, item)));
            return true;
        }
        4 => {
            guard.remove(&name);
            return true;
        }
        5 => Write::new().condition(Condition::Present),
        6 | 7 => Write::new().expires_in_ms(1 + random.next_u64() % 20),
        _ => Write::new(),
    };
    match guard.set(&name, &buffer, &write) {
        Ok(_) => true,
        Err(Error::Full) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Runs up to 32 commands with each guard. A guard that finds no memory is renewed.
fn work(session: &mut Session<'_>, seed: u64, keys: u64, guards: usize) {
    let mut random = Random::new(seed);
    for _ in 0..guards {
        let mut guard = session.guard();
        let mut items = Vec::new();
        let all = (0..32).all(|_| step(&guard, (&mut random, keys), &mut items));
        // Items that were read stay until the guard ends, even if they were evicted.
        for (key, item) in items {
            check(key, item.value());
        }
        if !all {
            assert!(guard.renew(), "no memory, although other threads end their guards");
        }
    }
}

#[test]
fn values_are_complete_while_other_threads_write_and_evict() {
    for keys in [100, 200_000] {
        // A writer waits for other threads, however long they are descheduled.
        let options = Options::new().memory(MEMORY).guard_wait(PATIENCE);
        let cache = Cache::new(options).expect("a cache");
        thread::scope(|scope| {
            for seed in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    let mut session = cache.session().expect("a session");
                    work(&mut session, seed, keys, 5_000);
                });
            }
        });
        let stats = cache.stats();
        assert!(stats.memory <= MEMORY, "{stats:?}");
    }
}

/// Builds a value with a segment of its own, whose every word contains its key.
fn large(key: u64, random: u64) -> Vec<u8> {
    let word = (key << 32 | random).to_le_bytes();
    word.repeat(20_000 + random as usize % 200_000)
}

#[test]
fn large_values_are_complete_while_other_threads_replace_and_evict_them() {
    let memory = 64 << 20;
    // A writer waits for other threads, however long they are descheduled.
    let options = Options::new().memory(memory).guard_wait(PATIENCE);
    let cache = Cache::new(options).expect("a cache");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|seed| {
                let cache = &cache;
                scope.spawn(move || {
                    let mut session = cache.session().expect("a session");
                    let mut random = Random::new(seed);
                    for _ in 0..1_500 {
                        let (key, number) = (random.next_u64() % 60, random.next_u64() % 100_000);
                        let value = large(key, number);
                        let mut guard = session.guard();
                        if number % 4 == 0 {
                            guard.remove(&key.to_le_bytes());
                        } else if guard.set(&key.to_le_bytes(), &value, &Write::new()).is_err() {
                            assert!(guard.renew());
                        }
                        // Ordinary and large items compete for memory.
                        let small = (1_u64 << 40 | number).to_le_bytes();
                        let _ = guard.set(&small, &value[..20_000], &Write::new());
                        let stats = cache.stats();
                        assert!(stats.memory <= memory, "{stats:?}");
                    }
                })
            })
            .collect();
        let reader = || {
            let mut session = cache.session().expect("a session");
            let mut key = 0_u64;
            while !done.load(Ordering::Relaxed) {
                key = (key + 1) % 60;
                let guard = session.guard();
                let Some(item) = guard.get(&key.to_le_bytes()) else { continue };
                let first = item.value().first_chunk().expect("eight bytes");
                let random = u64::from_le_bytes(*first) & 0xffff_ffff;
                assert!(item.value() == large(key, random), "an incomplete value");
            }
        };
        scope.spawn(reader);
        scope.spawn(reader);
        let ended: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "a writer failed");
    });
    assert!(cache.stats().evicted > 0);
}

#[test]
fn no_increment_is_lost() {
    let cache = Cache::new(Options::new().memory(MEMORY)).expect("a cache");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = cache.session().expect("a session");
                for round in 0..10_000_u64 {
                    let guard = session.guard();
                    let key = (round % 7).to_le_bytes();
                    let add = |item: Option<Item<'_>>, out: &mut Vec<u8>| {
                        let old = item.map_or(0, |item| {
                            u64::from_le_bytes(item.value().try_into().expect("eight bytes"))
                        });
                        out.extend_from_slice(&(old + 1).to_le_bytes());
                        (Some(Write::new()), ())
                    };
                    guard.update(&key, add).expect("room");
                }
            });
        }
    });
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    let count = |key: u64| {
        let item = guard.get(&key.to_le_bytes()).expect("a counter");
        u64::from_le_bytes(item.value().try_into().expect("eight bytes"))
    };
    assert_eq!((0..7).map(count).sum::<u64>(), 40_000);
}

/// Of several threads that store a key if it is absent, one succeeds.
#[test]
fn one_of_several_conditional_writes_succeeds() {
    let cache = Cache::new(Options::new().memory(MEMORY)).expect("a cache");
    let stored = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = cache.session().expect("a session");
                for key in 0..5_000_u64 {
                    let guard = session.guard();
                    let write = Write::new().condition(Condition::Absent);
                    let outcome = guard.set(&key.to_le_bytes(), b"mine", &write).expect("room");
                    if outcome == Outcome::Stored {
                        stored.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(stored.into_inner(), 5_000);
}

/// Readers find every key that stays, while the index grows.
#[test]
fn no_key_is_missed_while_the_index_grows() {
    let cache = Cache::new(Options::new().memory(256 << 20)).expect("a cache");
    let stable = 0..1_000_u64;
    let done = AtomicBool::new(false);
    let mut session = cache.session().expect("a session");
    for key in stable.clone() {
        session.guard().set(&key.to_le_bytes(), b"stays", &Write::new()).map(drop).expect("room");
    }
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut session = cache.session().expect("a session");
                while !done.load(Ordering::Relaxed) {
                    let guard = session.guard();
                    for key in stable.clone() {
                        assert!(guard.get(&key.to_le_bytes()).is_some(), "key {key}");
                    }
                }
            });
        }
        for key in 1_000..1_500_000_u64 {
            let guard = session.guard();
            guard.set(&key.to_le_bytes(), b"", &Write::new()).map(drop).expect("room");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(cache.stats().evicted, 0);
    assert_eq!(cache.len(), 1_500_000);
}

#[test]
fn segments_of_a_closed_session_are_reclaimed_by_others() {
    let cache =
        Cache::new(Options::new().memory(MEMORY).eviction(Eviction::S3Fifo)).expect("a cache");
    for round in 0..500_u64 {
        let mut session = cache.session().expect("a session");
        for key in 0..500_u64 {
            let key = (round << 32 | key).to_le_bytes();
            session.guard().set(&key, &[7; 100], &Write::new()).map(drop).expect("room");
        }
    }
    let stats = cache.stats();
    assert_eq!(stats.stored, 250_000);
    assert!(stats.memory <= MEMORY, "{stats:?}");
}

/// Two keys that are always written together are always seen together.
#[test]
fn changes_under_an_exclusive_guard_are_seen_all_or_none() {
    let cache = Cache::new(Options::new().memory(MEMORY)).expect("a cache");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2_u64)
            .map(|writer| {
                let cache = &cache;
                scope.spawn(move || {
                    let mut session = cache.session().expect("a session");
                    for round in 0..2_000_u64 {
                        let mut guard = session.guard();
                        guard.begin_exclusive();
                        let value = (round << 1 | writer).to_le_bytes();
                        for key in [b"one", b"two"] {
                            guard.set(key, &value, &Write::new()).map(drop).expect("room");
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut session = cache.session().expect("a session");
            while !done.load(Ordering::Relaxed) {
                let guard = session.guard();
                let [one, two] = [b"one", b"two"].map(|key| guard.get(key));
                assert_eq!(one.map(|item| item.value()), two.map(|item| item.value()));
            }
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
        done.store(true, Ordering::Relaxed);
    });
}
