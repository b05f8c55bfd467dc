//! Items that have a segment of their own.

use nuthatch_cache::{
    Cache, Clock, Condition, Error, Eviction, Expiry, Guard, ManualClock, Options, Outcome, Result,
    Session, Write,
};
use nuthatch_testing::random;
use std::sync::Arc;

const MIB: usize = 1 << 20;
const MEMORY: u64 = 64 << 20;

fn cache(eviction: Eviction) -> Cache {
    Cache::new(Options::new().memory(MEMORY).eviction(eviction)).expect("a cache")
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Writes as a server does: without memory, again under the next guard.
fn set(guard: &mut Guard<'_>, number: u64, value: &[u8], write: &Write<'_>) -> Result<Outcome> {
    match guard.set(&key(number), value, write) {
        Err(Error::Full) if guard.renew() => guard.set(&key(number), value, write),
        other => other,
    }
}

fn store(session: &mut Session<'_>, number: u64, value: &[u8]) {
    let stored = set(&mut session.guard(), number, value, &Write::new());
    assert_eq!(stored.expect("room"), Outcome::Stored);
}

/// Begins guards until the memory freed under earlier ones is available.
fn settle(session: &mut Session<'_>) {
    for _ in 0..1000 {
        drop(session.guard());
    }
}

#[test]
fn a_value_may_have_five_eighths_of_the_budget_and_no_more() {
    for memory in [16 << 20, 17_000_001, 64 << 20, 300 << 20] {
        let cache = Cache::new(Options::new().memory(memory)).expect("a cache");
        let mut session = cache.session().expect("a session");
        let most = cache.max_value_len();
        assert!(most > memory as usize / 8 * 5 - 100_000, "{most} of {memory}");
        let longest = random::bytes(1, most + 1);
        let key = vec![b'k'; Cache::MAX_KEY_LEN];
        let guard = session.guard();
        guard.set(&key, &longest[..most], &Write::new()).map(drop).expect("room");
        assert!(guard.get(&key).expect("just stored").value() == &longest[..most]);
        let refused = guard.set(&key, &longest, &Write::new()).map(drop);
        match refused.expect_err("too long") {
            Error::TooLong { what: "value", len, max: limit } => {
                assert_eq!((len, limit), (most + 1, most));
            }
            other => panic!("{other}"),
        }
        assert!(guard.get(&key).is_some(), "the old one is still there");
    }
}

#[test]
fn a_value_of_512_mib_is_kept_in_2_gib() {
    let cache = Cache::new(Options::new().memory(2 << 30)).expect("a cache");
    assert_eq!(cache.max_value_len(), 512 * MIB);
    let mut session = cache.session().expect("a session");
    let mut longest = vec![0; 512 * MIB];
    longest[..5].copy_from_slice(b"begin");
    longest[512 * MIB - 3..].copy_from_slice(b"end");
    let guard = session.guard();
    guard.set(b"key", &longest, &Write::new().flags(7)).map(drop).expect("room");
    drop(longest);
    let item = guard.get(b"key").expect("just stored");
    assert_eq!((item.value().len(), item.flags(), item.key()), (512 * MIB, 7, &b"key"[..]));
    assert_eq!((&item.value()[..5], &item.value()[512 * MIB - 3..]), (&b"begin"[..], &b"end"[..]));
    drop(guard);
    let large = cache.stats().memory_large;
    assert!((512 << 20..513 << 20).contains(&large), "{large}");
    assert!(session.guard().remove(b"key"));
    settle(&mut session);
    assert_eq!(cache.stats().memory_large, 0);
}

#[test]
fn the_newest_large_item_stays_and_the_budget_holds() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    // From items in ordinary segments to half of the budget.
    let lens =
        [100, 60_000, 70_000, 131_000, 300_000, MIB, 5 * MIB, 20 * MIB, cache.max_value_len()];
    for number in 0..500_u64 {
        let len = lens[number as usize * 7 % 26 % lens.len()];
        let stored = random::bytes(number, len - number as usize % 50);
        store(&mut session, number, &stored);
        let stats = cache.stats();
        assert!(stats.memory <= MEMORY, "{stats:?}");
        let guard = session.guard();
        assert!(guard.get(&key(number)).expect("the newest").value() == stored, "{number}");
    }
    let stats = cache.stats();
    assert_eq!(stats.items + stats.evicted, 500, "{stats:?}");
    assert!(stats.moved_bytes < 200 * MEMORY, "{stats:?}");
}

#[test]
fn a_large_item_that_is_read_stays_in_place() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let [hot, cold] = [1_u64, 2].map(|number| random::bytes(number, 4 * MIB));
    store(&mut session, 1, &hot);
    store(&mut session, 2, &cold);
    let place = session.guard().get(&key(1)).expect("stored").value().as_ptr().addr();
    let mut moved_bytes = 0;
    for number in 0..2_000_000_u64 {
        let mut guard = session.guard();
        set(&mut guard, 1 << 40 | number, &[0; 100], &Write::new()).map(drop).expect("room");
        if number % 1000 == 0 {
            let there = guard.get(&key(1)).expect("read often").value().as_ptr().addr();
            assert_eq!(there, place, "at {number}");
            moved_bytes = cache.stats().moved_bytes;
        }
    }
    let guard = session.guard();
    assert!(guard.get(&key(1)).expect("read often").value() == hot);
    assert!(guard.get(&key(2)).is_none(), "not read");
    assert!(moved_bytes < 4 << 20, "{moved_bytes}");
}

/// A few of them fill the small queue, whose share is in bytes.
#[test]
fn large_items_that_are_not_read_evict_each_other() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let hot = 0..200_000_u64;
    for number in hot.clone() {
        store(&mut session, number, &[1; 100]);
        session.guard().get(&key(number)).expect("just stored");
    }
    for number in 0..400_000_u64 {
        store(&mut session, 1 << 40 | number, &[2; 100]);
    }
    let kept = |guard: &Guard<'_>| hot.clone().filter(|n| guard.peek(&key(*n)).is_some()).count();
    let before = kept(&session.guard());
    assert!(before > 190_000, "{before}");
    for number in 0..30_u64 {
        store(&mut session, 1 << 50 | number, &random::bytes(number, 15 * MIB));
    }
    let after = kept(&session.guard());
    assert!(after > before * 9 / 10, "{after} of {before}");
}

/// Regression test: each write under a guard evicted another large item, since memory becomes
/// available only after the guard.
#[test]
fn writes_of_one_guard_evict_no_more_large_items_than_necessary() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let large = random::bytes(0, MIB);
    let mut filled = 0;
    while cache.stats().evicted == 0 {
        store(&mut session, filled, &large);
        filled += 1;
    }
    for round in 0..100_u64 {
        let before = cache.stats().evicted;
        let guard = session.guard();
        for number in 0..1000 {
            let key = key(1 << 40 | round << 20 | number);
            guard.set(&key, &[0; 100], &Write::new()).map(drop).expect("room");
        }
        let evicted = cache.stats().evicted - before;
        assert!(evicted <= 2 || evicted > 500, "{evicted} in round {round}");
    }
}

#[test]
fn an_item_that_can_never_fit_evicts_nothing() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    for number in 0..10 {
        store(&mut session, number, &random::bytes(number, MIB));
    }
    cache.reserve(MEMORY / 10 * 7);
    let mut guard = session.guard();
    let longest = random::bytes(99, cache.max_value_len());
    let refused = set(&mut guard, 99, &longest, &Write::new()).expect_err("no room");
    assert!(matches!(refused, Error::Full), "{refused}");
    assert!((0..10).all(|number| guard.get(&key(number)).is_some()));
    drop(guard);
    cache.reserve(0);
    store(&mut session, 99, &longest);
}

#[test]
fn without_eviction_large_items_fail_and_nothing_is_lost() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let (mut stored, mut failed) = (Vec::new(), 0);
    for number in 0..100_u64 {
        let stored_value = random::bytes(number, MIB + number as usize * 10_000);
        match set(&mut session.guard(), number, &stored_value, &Write::new()) {
            Ok(_) => stored.push(number),
            Err(error) => {
                assert!(matches!(error, Error::Full), "{error}");
                failed += 1;
            }
        }
        let stats = cache.stats();
        assert!(stats.memory <= MEMORY, "{stats:?}");
    }
    assert!(stored.len() > 35 && failed > 30, "{} stored, {failed} not", stored.len());
    let there = |guard: &Guard<'_>, number: u64| {
        let item = guard.get(&key(number)).expect("nothing is evicted");
        assert!(item.value() == random::bytes(number, MIB + number as usize * 10_000), "{number}");
    };
    let guard = session.guard();
    for number in &stored {
        there(&guard, *number);
    }
    drop(guard);
    // Removed items make room, under the same guard or the next.
    for (at, number) in stored.iter().enumerate().filter(|(at, _)| at % 2 == 0) {
        let mut guard = session.guard();
        assert!(guard.remove(&key(*number)));
        let new = random::bytes(1000 + at as u64, MIB);
        set(&mut guard, 1000 + at as u64, &new, &Write::new()).map(drop).expect("room");
    }
    let guard = session.guard();
    for (at, number) in stored.iter().enumerate() {
        match at % 2 {
            0 => assert!(guard.get(&key(1000 + at as u64)).is_some()),
            _ => there(&guard, *number),
        }
    }
    assert_eq!(cache.stats().evicted, 0);
}

/// Ordinary items are compacted to make room for a large one.
#[test]
fn without_eviction_compaction_makes_room_for_a_large_item() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    for number in 0..400_000_u64 {
        store(&mut session, number, &random::bytes(number, 100));
    }
    for number in (0..400_000_u64).filter(|number| number % 4 != 0) {
        assert!(session.guard().remove(&key(number)));
    }
    let large = random::bytes(1 << 40, 23 * MIB);
    store(&mut session, 1 << 40, &large);
    let stats = cache.stats();
    assert!(stats.memory <= MEMORY && stats.evicted == 0, "{stats:?}");
    let guard = session.guard();
    assert!(guard.get(&key(1 << 40)).expect("stored").value() == large);
    for number in (0..400_000_u64).filter(|number| number % 4 == 0) {
        assert_eq!(
            guard.get(&key(number)).expect("nothing is evicted").value(),
            random::bytes(number, 100)
        );
    }
}

#[test]
fn short_and_long_values_replace_each_other() {
    for eviction in [Eviction::None, Eviction::S3Fifo] {
        let cache = cache(eviction);
        let mut session = cache.session().expect("a session");
        for round in 0..300_u64 {
            let len = if round % 2 == 0 { 3 * MIB + round as usize } else { 10 };
            let stored = random::bytes(round, len);
            for number in 0..2 {
                store(&mut session, number, &stored);
                assert!(session.guard().get(&key(number)).expect("stored").value() == stored);
            }
        }
        settle(&mut session);
        let stats = cache.stats();
        assert_eq!((stats.items, stats.evicted, stats.memory_large), (2, 0, 0), "{stats:?}");
    }
}

#[test]
fn conditions_and_updates_hold_for_large_items() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let mut guard = session.guard();
    let (one, other) = (random::bytes(1, 2 * MIB), random::bytes(2, 3 * MIB));
    let only = |condition| Write::new().condition(condition);
    let set = |guard: &mut Guard<'_>, value: &[u8], write: &Write<'_>| {
        set(guard, 1, value, write).expect("room")
    };
    assert_eq!(set(&mut guard, &one, &only(Condition::Present)), Outcome::Missing);
    assert_eq!(set(&mut guard, &one, &only(Condition::Absent)), Outcome::Stored);
    assert_eq!(set(&mut guard, &other, &only(Condition::Absent)), Outcome::Exists);
    assert_eq!(set(&mut guard, &one, &only(Condition::Value(&other))), Outcome::Exists);
    assert_eq!(set(&mut guard, &other, &only(Condition::Value(&one))), Outcome::Stored);
    let (_, cas) = guard.get_with_cas(&key(1)).expect("room").expect("there");
    assert_eq!(set(&mut guard, &one, &only(Condition::Cas(cas + 1))), Outcome::Exists);
    assert_eq!(set(&mut guard, &one, &only(Condition::Cas(cas)).cas(9)), Outcome::Stored);
    let kept = Write::new().expiry(Expiry::Keep).flags(3);
    for _ in 0..5 {
        drop(guard);
        guard = session.guard();
        guard
            .update(&key(1), |item, out| {
                out.extend_from_slice(item.expect("there").value());
                out.extend_from_slice(&other);
                (Some(kept), ())
            })
            .expect("room");
    }
    let item = guard.get(&key(1)).expect("there");
    assert_eq!((item.value().len(), item.flags(), item.cas()), (17 * MIB, 3, None));
    assert!(item.value()[..2 * MIB] == one && item.value()[14 * MIB..] == other);
}

#[test]
fn expired_large_items_are_removed_before_others_are_evicted() {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let options = Options::new().memory(MEMORY).clock(Arc::<ManualClock>::clone(&clock));
    let cache = Cache::new(options.eviction(Eviction::None)).expect("a cache");
    let mut session = cache.session().expect("a session");
    for number in 0..5 {
        store(&mut session, 1 << 40 | number, &random::bytes(number, MIB));
    }
    for number in 0..2_000_u64 {
        let write = Write::new().expires_in_ms(1000);
        set(&mut session.guard(), number, &random::bytes(number, 2 * MIB), &write)
            .map(drop)
            .expect("room");
        clock.advance(100);
    }
    let guard = session.guard();
    assert!((0..5).all(|number| guard.get(&key(1 << 40 | number)).is_some()));
    assert_eq!((1_980..2_000).filter(|number| guard.get(&key(*number)).is_some()).count(), 9);
    let stats = cache.stats();
    assert!(stats.expired > 1_900 && stats.memory <= MEMORY, "{stats:?}");
    // The clock is set back: expired items that were not examined yet are valid again.
    drop(guard);
    clock.set(clock.now_ms() - 100_000_000);
    assert!(session.guard().get(&key(1_999)).is_some());
}

#[test]
fn a_cleared_cache_returns_its_memory() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    for round in 0..50_u64 {
        for number in 0..4 {
            store(&mut session, number, &random::bytes(round, 10 * MIB));
            store(&mut session, 100 + number, &random::bytes(round, 1000));
        }
        let guard = session.guard();
        guard.clear();
        assert!((0..200).all(|number| guard.get(&key(number)).is_none()));
    }
    settle(&mut session);
    let stats = cache.stats();
    assert_eq!((stats.items, stats.memory_large), (0, 0), "{stats:?}");
}

#[test]
fn statistics_divide_memory_by_kind() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    cache.reserve(1_000_000);
    store(&mut session, 1, &random::bytes(1, 3 * MIB));
    store(&mut session, 2, &random::bytes(2, 100));
    let stats = cache.stats();
    assert_eq!((stats.memory_reserved, stats.memory_referenced), (1_000_000, 0));
    assert!((3 << 20..(3 << 20) + 8192).contains(&stats.memory_large), "{stats:?}");
    assert_eq!(stats.memory_items, 256 << 10);
    assert!((256 << 10..300 << 10).contains(&stats.memory_index), "{stats:?}");
    assert!((1..1 << 20).contains(&stats.memory_metadata), "{stats:?}");
    let all = stats.memory_index + stats.memory_items + stats.memory_large;
    assert_eq!(stats.memory, all + stats.memory_metadata + stats.memory_reserved);
}
