//! Lookups of keys that were prefetched, after the index has changed.

use nuthatch_cache::{BatchKey, Cache, Eviction, Expiry, Guard, Options, Write};

const KEYS: u64 = 20_000;

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn cache() -> Cache {
    Cache::new(Options::new().memory(64 << 20).eviction(Eviction::None)).expect("a cache")
}

fn set(guard: &Guard<'_>, number: u64, value: &[u8]) {
    guard.set(&key(number), value, &Write::new()).map(drop).expect("room");
}

/// Prefetches all keys, and half as many that have no item.
fn prefetched(cache: &Cache, guard: &Guard<'_>) -> Vec<BatchKey> {
    let numbers = 0..KEYS * 3 / 2;
    let mut keys: Vec<_> =
        numbers.map(|number| BatchKey::to_read(cache.hash(&key(number)))).collect();
    guard.prefetch(&mut keys);
    keys
}

/// Asserts that `get_prefetched` returns what `get` returns for each key. Returns how many keys
/// have an item.
fn count_found(guard: &Guard<'_>, keys: &[BatchKey]) -> usize {
    let has_item = |(number, prefetched): (u64, &BatchKey)| {
        let item = guard.get_prefetched(&key(number), prefetched);
        let item = item.map(|item| (item.key().to_vec(), item.value().to_vec()));
        let expected = guard.get(&key(number)).map(|item| item.value().to_vec());
        assert_eq!(item, expected.map(|value| (key(number).to_vec(), value)), "{number}");
        item.is_some()
    };
    (0..).zip(keys).filter(|key| has_item(*key)).count()
}

#[test]
fn get_prefetched_finds_items_and_counts_as_get_does() {
    let cache = cache();
    let mut session = cache.session().expect("room");
    let guard = session.guard();
    (0..KEYS).for_each(|number| set(&guard, number, b"value"));
    let keys = prefetched(&cache, &guard);
    assert_eq!(count_found(&guard, &keys), KEYS as usize);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses_absent), (2 * KEYS, KEYS), "as other lookups");
    let frequency = guard.peek(&key(1)).expect("the item").frequency();
    assert_eq!(frequency, 2, "reads of prefetched keys are counted");
}

/// A regression of this would only be slow: every lookup would search the index again.
#[test]
fn items_are_found_at_their_prefetched_position() {
    let cache = cache();
    let mut session = cache.session().expect("room");
    let guard = session.guard();
    (0..KEYS).for_each(|number| set(&guard, number, b"value"));
    let keys = prefetched(&cache, &guard);
    let found = (0..KEYS).zip(&keys).filter(|(number, prefetched)| {
        let item = guard.try_get_prefetched(&key(*number), prefetched);
        item.is_some_and(|item| item.key() == key(*number))
    });
    let found = found.count() as u64;
    assert!(found > KEYS * 9 / 10, "{found} of {KEYS}: the others are beyond two lines");
    assert_eq!(cache.stats().hits, found);
    let absent = (KEYS..).zip(&keys[KEYS as usize..]);
    assert_eq!(
        absent.filter(|(n, it)| guard.try_get_prefetched(&key(*n), it).is_some()).count(),
        0
    );
    assert_eq!(cache.stats().misses_absent, 0, "the caller looks the key up, which counts a miss");
}

#[test]
fn an_item_that_has_expired_is_a_miss_after_its_prefetch() {
    let cache = cache();
    let mut session = cache.session().expect("room");
    let guard = session.guard();
    let write = Write::new().expiry(Expiry::At(guard.now_ms()));
    guard.set(&key(1), b"value", &write).map(drop).expect("room");
    let mut keys = [BatchKey::to_read(cache.hash(&key(1)))];
    guard.prefetch(&mut keys);
    assert!(guard.try_get_prefetched(&key(1), &keys[0]).is_none());
    assert_eq!((cache.stats().hits, cache.stats().misses_expired), (0, 0));
    assert!(guard.get_prefetched(&key(1), &keys[0]).is_none());
    assert_eq!((cache.stats().hits, cache.stats().misses_expired), (0, 1));
}

#[test]
fn a_write_after_the_prefetch_is_seen() {
    let cache = cache();
    let mut session = cache.session().expect("room");
    let guard = session.guard();
    (0..KEYS).for_each(|number| set(&guard, number, b"value"));
    let keys = prefetched(&cache, &guard);
    for number in (0..KEYS).step_by(3) {
        set(&guard, number, b"another value");
        assert!(guard.remove(&key(number + 1)));
    }
    let removed = KEYS.div_ceil(3);
    assert_eq!(count_found(&guard, &keys), (KEYS - removed) as usize);
    // New items get the slots of removed ones.
    (KEYS..KEYS * 3 / 2).for_each(|number| set(&guard, number, b"new"));
    assert_eq!(count_found(&guard, &keys), (KEYS * 3 / 2 - removed) as usize);
}

/// All tables grow, and are split several times.
#[test]
fn growth_after_the_prefetch_loses_no_item() {
    let cache = cache();
    let mut session = cache.session().expect("room");
    let guard = session.guard();
    (0..KEYS).for_each(|number| set(&guard, number, b"value"));
    let keys = prefetched(&cache, &guard);
    for number in KEYS * 2..KEYS * 20 {
        set(&guard, number, b"value");
        // The pages of tables that were split still contain the slots of earlier values.
        set(&guard, number * 7 % KEYS, &number.to_le_bytes());
        if number.is_multiple_of(KEYS) {
            assert_eq!(count_found(&guard, &keys), KEYS as usize);
        }
    }
    assert_eq!(count_found(&guard, &keys), KEYS as usize);
    guard.clear();
    assert_eq!(count_found(&guard, &keys), 0);
    (0..KEYS).for_each(|number| set(&guard, number, b"after the removal of all"));
    assert_eq!(count_found(&guard, &keys), KEYS as usize);
}

/// A table without lines still refers to its last pages, with what they contained.
#[test]
fn removed_items_are_not_found_when_keys_are_prefetched_again() {
    let cache = cache();
    let mut session = cache.session().expect("room");
    let guard = session.guard();
    (0..KEYS).for_each(|number| set(&guard, number, b"value"));
    guard.clear();
    assert_eq!(count_found(&guard, &prefetched(&cache, &guard)), 0);
    drop(guard);
    let mut guard = session.guard();
    (0..KEYS).for_each(|number| set(&guard, number, b"value"));
    guard.begin_exclusive();
    guard.clear();
    guard.end_exclusive();
    assert_eq!(count_found(&guard, &prefetched(&cache, &guard)), 0);
}

/// Each table has a version of its own. After removals of all items, and splits, the table of a key
/// may be another one with the same version, and the pages of the old one still contain its slots.
#[test]
fn another_table_with_the_same_version_is_recognized() {
    for clears in 0..16 {
        let cache = cache();
        let mut session = cache.session().expect("room");
        let mut guard = session.guard();
        // So many that the tables are split.
        (0..24_000).for_each(|number| set(&guard, number, b"value"));
        for _ in 0..clears {
            guard.clear();
            (0..600).for_each(|number| set(&guard, number, b"value"));
        }
        let keys = prefetched(&cache, &guard);
        guard.begin_exclusive();
        guard.clear();
        guard.end_exclusive();
        assert_eq!(count_found(&guard, &keys), 0, "{clears} times");
        (0..600).for_each(|number| set(&guard, number, b"another value"));
        assert_eq!(count_found(&guard, &keys), 600, "{clears} times");
        let keys = prefetched(&cache, &guard);
        (0..KEYS).for_each(|number| set(&guard, number, b"a third value"));
        assert_eq!(count_found(&guard, &keys), KEYS as usize, "{clears} times");
    }
}

/// Keys can be prefetched by a cache with other contents, in which their items are elsewhere.
#[test]
fn what_another_cache_has_found_is_not_used() {
    let caches = [1, 9].map(|share| {
        let options = Options::new().memory(64 << 20).eviction(Eviction::None).seed(7);
        let cache = Cache::new(options).expect("a cache");
        let mut session = cache.session().expect("room");
        let guard = session.guard();
        for number in (0..KEYS * share).filter(|number| number % share == 0) {
            set(&guard, number % KEYS, &[share as u8; 40]);
        }
        drop(guard);
        drop(session);
        cache
    });
    for (one, other) in [(&caches[0], &caches[1]), (&caches[1], &caches[0])] {
        let (mut first, mut second) =
            (one.session().expect("room"), other.session().expect("room"));
        let keys = prefetched(one, &first.guard());
        count_found(&second.guard(), &keys);
    }
}

#[test]
fn get_prefetched_compares_the_key() {
    let cache = cache();
    let mut session = cache.session().expect("room");
    let guard = session.guard();
    set(&guard, 1, b"one");
    let mut keys = [BatchKey::to_read(cache.hash(&key(1)))];
    guard.prefetch(&mut keys);
    assert!(guard.get_prefetched(&key(2), &keys[0]).is_none());
    assert_eq!(guard.get_prefetched(&key(1), &keys[0]).expect("the item").value(), b"one");
    assert_eq!(keys[0].hash(), cache.hash(&key(1)));
}
