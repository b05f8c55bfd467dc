//! Several items are stored together, or none of them is.

use nuthatch_cache::{Cache, Error, Eviction, Guard, Options, Session, Write};

const MEMORY: u64 = 16 << 20;

fn cache(eviction: Eviction) -> Cache {
    Cache::new(Options::new().memory(MEMORY).eviction(eviction)).expect("a cache")
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Stores items together, and again if there was no memory.
fn set_all(session: &mut Session<'_>, items: &[([u8; 8], Vec<u8>)]) -> Result<(), Error> {
    let mut guard = session.guard();
    guard.begin_exclusive();
    let set = |guard: &Guard<'_>| {
        guard.set_all(items.iter().map(|(key, value)| (&key[..], &value[..])), &Write::new())
    };
    match set(&guard) {
        Err(Error::Full) if guard.renew() => set(&guard),
        result => result,
    }
}

/// Stores items of a length one by one until there is no memory. Returns their number.
fn fill(session: &mut Session<'_>, len: usize) -> u64 {
    let mut stored = 0;
    while session.guard().set(&key(stored), &vec![1; len], &Write::new()).is_ok() {
        stored += 1;
    }
    stored
}

#[test]
fn without_memory_for_all_nothing_changes() {
    for (len, count) in [(1000, 2000_u64), (50_000, 60), (400_000, 10), (0, 20_000)] {
        let cache = cache(Eviction::None);
        let mut session = cache.session().expect("a session");
        let stored = fill(&mut session, len);
        // Memory for some of them.
        let removed = (0..count / 4).filter(|number| session.guard().remove(&key(*number)));
        assert_eq!(removed.count() as u64, count / 4);
        let items = |range: std::ops::Range<u64>, byte: u8| -> Vec<_> {
            range.map(|number| (key(number), vec![byte; len.max(40)])).collect()
        };
        // Existing and new keys, alternating.
        let mut all = items(stored - count / 2..stored + count, 2);
        all.sort_by_key(|(key, _)| key[0]);
        for _ in 0..3 {
            let result = set_all(&mut session, &all);
            assert!(matches!(result, Err(Error::Full)), "{len}: {result:?}");
            let guard = session.guard();
            let value = |number: u64| guard.peek(&key(number)).map(|item| item.value().to_vec());
            assert!((stored..stored + count).all(|number| value(number).is_none()), "{len}");
            let old = |number| value(number).is_some_and(|value| value == vec![1; len]);
            assert!((count / 4..stored).all(old), "{len}");
            assert_eq!(cache.len(), stored - count / 4);
        }
        // The memory of items that were not published is available.
        let few = items(0..count / 8, 3);
        let result = set_all(&mut session, &few);
        // Removed items with empty values fill no segment.
        assert!(result.is_ok() || len == 0, "{len}: {result:?}");
        assert!(cache.stats().memory <= MEMORY);
    }
}

#[test]
fn all_are_stored_and_the_last_value_of_a_key_stays() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    for round in 0..50_u64 {
        let number = |at: u64| round * 10 + at % 20;
        let len = |at: u64| [0, 100, 30_000, 300_000][at as usize % 4];
        let items: Vec<_> =
            (0..40).map(|at| (key(number(at)), vec![(at + round) as u8; len(at)])).collect();
        set_all(&mut session, &items).expect("room");
        let guard = session.guard();
        for at in 20..40 {
            let item = guard.get(&key(number(at))).expect("just stored");
            assert!(item.value() == vec![(at + round) as u8; len(at)], "{at} in round {round}");
        }
        let stats = cache.stats();
        assert!(stats.memory <= MEMORY, "{stats:?}");
    }
    assert!(cache.stats().evicted > 0);
}

#[test]
fn a_key_that_is_too_long_prevents_all_writes() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    let long = vec![0; Cache::MAX_KEY_LEN + 1];
    let items = [(&b"short"[..], &b"value"[..]), (&long[..], &b""[..])];
    let result = guard.set_all(items.into_iter(), &Write::new());
    assert!(matches!(result, Err(Error::TooLong { what: "key", .. })), "{result:?}");
    assert!(guard.get(b"short").is_none());
}

#[test]
fn each_value_has_its_own_mark() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    let items: [(&[u8], &[u8], bool); 2] = [(b"one", b"1", true), (b"two", b"2", false)];
    guard.set_all_encoded(items.into_iter(), &Write::new()).expect("room");
    let marked = |key: &[u8]| guard.get(key).map(|item| item.is_compressed());
    assert_eq!((marked(b"one"), marked(b"two")), (Some(true), Some(false)));
    let write = Write::new().compressed(true);
    guard.set_all([(&b"three"[..], &b"3"[..])].into_iter(), &write).expect("room");
    assert_eq!(marked(b"three"), Some(true));
}
