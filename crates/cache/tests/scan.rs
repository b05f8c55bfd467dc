//! Iterating over all items.

use nuthatch_cache::{Cache, Options, Write};
use nuthatch_testing::random::Random;
use std::collections::HashSet;

fn cache_of(keys: u64) -> Cache {
    let cache = Cache::new(Options::new().memory(64 << 20).seed(3)).expect("a cache");
    fill(&cache, 0..keys);
    cache
}

fn fill(cache: &Cache, keys: std::ops::Range<u64>) {
    let mut session = cache.session().expect("a session");
    for key in keys {
        let guard = session.guard();
        guard.set(&key.to_le_bytes(), b"value", &Write::new()).map(drop).expect("room");
    }
}

fn key_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

#[test]
fn a_scan_finds_every_key() {
    for keys in [0, 1, 10, 1_000, 50_000] {
        let cache = cache_of(keys);
        let mut session = cache.session().expect("a session");
        let mut found = Vec::new();
        let mut cursor = 0;
        loop {
            cursor = session.guard().scan(cursor, 10, |item| found.push(key_of(item.key())));
            if cursor == 0 {
                break;
            }
        }
        // Nothing changed meanwhile: each key is found once.
        found.sort_unstable();
        assert_eq!(found, (0..keys).collect::<Vec<_>>());
    }
}

#[test]
fn a_scan_finds_every_key_that_stays_while_others_change() {
    let cache = cache_of(20_000);
    let mut session = cache.session().expect("a session");
    let mut found = HashSet::new();
    let (mut cursor, mut next) = (0, 1_000_000);
    loop {
        cursor = session.guard().scan(cursor, 50, |item| {
            found.insert(key_of(item.key()));
        });
        if cursor == 0 {
            break;
        }
        // The index grows meanwhile.
        fill(&cache, next..next + 60);
        next += 60;
        if next.is_multiple_of(7) {
            session.guard().remove(&(next - 7).to_le_bytes());
        }
    }
    assert_eq!(cache.stats().evicted, 0);
    assert!(cache.len() > 40_000, "{}", cache.len());
    assert_eq!((0..20_000).filter(|key| !found.contains(key)).count(), 0);
}

#[test]
fn expired_items_are_not_found() {
    let cache = cache_of(10);
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    guard.set(b"over", b"", &Write::new().expires_in_ms(0)).map(drop).expect("room");
    let mut found = 0;
    assert_eq!(guard.scan(0, usize::MAX, |item| found += usize::from(item.key() == b"over")), 0);
    assert_eq!(found, 0);
}

#[test]
fn a_scan_with_an_arbitrary_cursor_ends() {
    let cache = cache_of(100);
    let mut session = cache.session().expect("a session");
    for cursor in [u64::MAX, 1 << 63, 1 << 50] {
        assert_eq!(session.guard().scan(cursor, 1, |_| ()), 0);
    }
    let mut cursor = 1 << 40;
    while cursor != 0 {
        let next = session.guard().scan(cursor, 1, |_| ());
        assert!(next == 0 || next > cursor);
        cursor = next;
    }
}

#[test]
fn every_key_can_be_picked_at_random() {
    let cache = cache_of(100);
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    let mut seeds = Random::new(1);
    let chosen = (0..20_000)
        .map(|_| guard.random(seeds.next_u64()).expect("an item"))
        .map(|item| key_of(item.key()));
    assert_eq!(chosen.collect::<HashSet<_>>().len(), 100);
    guard.clear();
    assert!(guard.random(1).is_none());
}
