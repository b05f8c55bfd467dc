//! Expired items do not keep memory, even if other items share their segment.

use nuthatch_cache::{Cache, Clock, Error, Eviction, ManualClock, Options, Session, Write};
use std::sync::Arc;

const MEMORY: u64 = 16 << 20;
const START_MS: u64 = 1_700_000_000_000;

fn cache(eviction: Eviction) -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START_MS));
    let options = Options::new().memory(MEMORY).eviction(eviction);
    let options = options.clock(Arc::<ManualClock>::clone(&clock));
    (Cache::new(options).expect("a cache"), clock)
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

/// Stores an item as the server does: without memory, again under the next guard.
fn store(session: &mut Session<'_>, number: u64, len: usize, write: &Write<'_>) -> bool {
    let (key, value) = (key(number), vec![number as u8; len]);
    let mut guard = session.guard();
    match guard.set(&key, &value, write) {
        Ok(_) => true,
        Err(Error::Full) => guard.renew() && guard.set(&key, &value, write).is_ok(),
        Err(error) => panic!("{error}"),
    }
}

/// Fills the cache with items that expire after 1.5 s, and one in 500 that stays for 280 s, until a
/// write fails. Returns how many were stored.
fn fill_with_mixed_expiries(session: &mut Session<'_>) -> u64 {
    let stored = |number: &u64| {
        let ms = if number.is_multiple_of(500) { 280_000 } else { 1500 };
        store(session, *number, 150, &Write::new().expires_in_ms(ms))
    };
    (0..200_000).take_while(stored).count() as u64
}

#[test]
fn writes_succeed_after_all_but_a_few_items_of_each_segment_expired() {
    let (cache, clock) = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let stored = fill_with_mixed_expiries(&mut session);
    assert!(stored > 60_000, "{stored} stored: {:?}", cache.stats());
    clock.advance(3000);
    for number in 0..stored * 9 / 10 {
        let write = Write::new();
        assert!(store(&mut session, 1 << 32 | number, 150, &write), "{:?}", cache.stats());
    }
    let guard = session.guard();
    let kept = (0..stored).filter(|number| guard.peek(&key(*number)).is_some());
    assert_eq!(kept.count() as u64, stored.div_ceil(500), "what has not expired stays");
    assert_eq!(cache.stats().expired, stored - stored.div_ceil(500));
}

/// Calls `expire_step` until it returns `false`. Returns the number of steps.
fn expire(session: &mut Session<'_>) -> usize {
    let steps = (0..1_000_000).take_while(|_| session.guard().expire_step(500)).count();
    assert!(steps < 1_000_000, "the steps end");
    steps
}

#[test]
fn items_and_memory_are_freed_without_any_write() {
    for eviction in [Eviction::None, Eviction::S3Fifo] {
        let (cache, clock) = cache(eviction);
        let mut session = cache.session().expect("a session");
        assert!(!session.has_expiring());
        for number in 0..50_000 {
            let ms = if number % 500 == 0 { 280_000 } else { 1500 };
            assert!(store(&mut session, number, 150, &Write::new().expires_in_ms(ms)));
        }
        let full = cache.stats();
        clock.advance(1499);
        assert!(session.has_expiring());
        expire(&mut session);
        assert_eq!((cache.len(), cache.stats().expired), (50_000, 0), "none has expired");
        clock.advance(3000);
        // Each step examines few items, so that no client waits for it.
        assert!(expire(&mut session) > 50_000 / 500 / 2);
        assert_eq!((cache.len(), cache.stats().expired), (100, 49_900));
        let rest = cache.stats();
        assert!(rest.memory_items < full.memory_items / 8, "{full:?}, then {rest:?}");
        clock.advance(280_000);
        expire(&mut session);
        assert_eq!((cache.len(), session.has_expiring()), (0, false));
    }
}

#[test]
fn a_few_items_that_expire_early_are_removed_soon_after() {
    let (cache, clock) = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    for number in 0..20_000_u64 {
        // All within five minutes, so that they share segments.
        let ms = 1000 + (number * 7919) % 280_000;
        assert!(store(&mut session, number, 150, &Write::new().expires_in_ms(ms)));
    }
    for _ in 0..280 {
        clock.advance(1000);
        // As often as the server calls it.
        for _ in 0..10 {
            expire(&mut session);
        }
        let now_ms = clock.now_ms();
        let expected = (0..20_000_u64).filter(|n| START_MS + 1000 + n * 7919 % 280_000 > now_ms);
        let (len, expected) = (cache.len(), expected.count() as u64);
        // An item is overdue after a second, and a pass over all segments takes four.
        assert!((expected..expected + 1000).contains(&len), "{len} of {expected} at {now_ms}");
    }
}

#[test]
fn large_items_expire_without_any_write() {
    let (cache, clock) = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    for number in 0..10 {
        assert!(store(&mut session, number, 1 << 20, &Write::new().expires_in_ms(1500)));
    }
    clock.advance(1500);
    expire(&mut session);
    let stats = cache.stats();
    assert_eq!((stats.items, stats.memory_large, stats.expired), (0, 0, 10), "{stats:?}");
}

/// Items in a segment that the session still writes expire, too.
#[test]
fn an_item_in_a_segment_that_is_being_written_expires() {
    let (cache, clock) = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let mut other = cache.session().expect("a session");
    assert!(store(&mut session, 1, 10, &Write::new().expires_in_ms(1000)));
    assert!(store(&mut session, 2, 10, &Write::new().expires_in_ms(60_000)));
    clock.advance(2001);
    expire(&mut other);
    expire(&mut session);
    assert_eq!((cache.len(), cache.stats().expired), (1, 1));
    assert!(store(&mut session, 3, 10, &Write::new().expires_in_ms(1000)));
    clock.advance(2001);
    expire(&mut session);
    assert_eq!((cache.len(), cache.stats().expired), (1, 2));
    // A session that is closed leaves its segments to others.
    drop(session);
    clock.advance(60_000);
    expire(&mut other);
    assert_eq!((cache.len(), cache.stats().memory_items), (0, 0));
}

#[test]
fn items_that_a_clock_set_back_revives_are_not_removed() {
    let (cache, clock) = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    for number in 0..20_000 {
        assert!(store(&mut session, number, 150, &Write::new().expires_in_ms(5000)));
    }
    clock.advance(5000);
    for _ in 0..3 {
        session.guard().expire_step(500);
    }
    let left = cache.len();
    assert!((10_000..19_000).contains(&left), "{left} are left");
    clock.set(START_MS);
    expire(&mut session);
    assert_eq!(cache.len(), left);
    clock.advance(6001);
    expire(&mut session);
    assert_eq!(cache.len(), 0);
}

/// Replaced and removed items share segments with one in 500 that stays.
#[test]
fn without_eviction_the_memory_of_replaced_and_removed_items_is_used_again() {
    let (cache, _) = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let write = Write::new();
    let stored = (0..200_000).take_while(|number| store(&mut session, *number, 150, &write));
    let stored = stored.count() as u64;
    let passing = || (0..stored).filter(|number| number % 500 != 0);
    for round in 0..3 {
        for number in passing() {
            session.guard().remove(&key(number));
        }
        for number in passing().take(stored as usize * 9 / 10) {
            for len in [150, 149, 150] {
                let has_room = store(&mut session, number, len, &write);
                assert!(has_room, "{number} in round {round}: {:?}", cache.stats());
            }
        }
    }
    let guard = session.guard();
    assert!((0..stored).step_by(500).all(|number| guard.peek(&key(number)).is_some()));
}
