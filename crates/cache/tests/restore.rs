//! Restoring items of an earlier run beside sessions that already use the cache.

use nuthatch_cache::{Cache, Clock, Error, Expiry, ManualClock, Options, Session, Write};
use std::sync::Arc;
use std::thread;

const MEMORY: u64 = 16 << 20;

fn cache() -> Cache {
    Cache::new(Options::new().memory(MEMORY)).expect("a cache")
}

/// Restores the value `old` for a key. Returns whether it was restored.
fn restore(session: &mut Session<'_>, key: &[u8]) -> bool {
    session.guard().restore(key, b"old", &Write::new(), 0).expect("room")
}

#[test]
fn an_item_is_restored_with_all_that_belongs_to_it() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options::new().memory(MEMORY).first_cas(1 << 40);
    let cache = Cache::new(options.clock(Arc::<ManualClock>::clone(&clock))).expect("a cache");
    cache.begin_restore();
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    let write = Write::new().expires_in_ms(500).flags(7).cas(9).protocol_bits(2);
    let value = vec![5; 1 << 20];
    assert!(guard.restore(b"key", &value, &write, 3).expect("room"));
    assert!(guard.restore(b"other", b"", &Write::new(), 100).expect("room"));
    let item = guard.peek(b"key").expect("the item");
    assert_eq!((item.value(), item.frequency(), item.flags()), (&value[..], 3, 7));
    assert_eq!((item.expires_ms(), item.cas()), (Some(clock.now_ms() + 500), Some(9)));
    assert_eq!(guard.peek(b"other").map(|item| item.frequency()), Some(3));
    assert_eq!(guard.new_cas(), 1 << 40);
    assert!(!guard.restore(b"past", b"", &Write::new().expires_in_ms(0), 0).expect("room"));
    assert!(guard.peek(b"past").is_none());
}

#[test]
fn keys_that_were_changed_meanwhile_are_not_restored() {
    let cache = cache();
    let [mut session, mut restoring] = [(); 2].map(|()| cache.session().expect("a session"));
    session.guard().set(b"before", b"new", &Write::new()).map(drop).expect("room");
    assert!(!restore(&mut restoring, b"any"), "nothing is restored yet");
    cache.begin_restore();
    let guard = session.guard();
    guard.set(b"replaced", b"new", &Write::new()).map(drop).expect("room");
    guard.set(b"stored and removed", b"new", &Write::new()).map(drop).expect("room");
    assert!(guard.remove(b"stored and removed"));
    assert!(!guard.remove(b"removed before it was there"));
    guard.set(b"expired", b"new", &Write::new().expires_in_ms(0)).map(drop).expect("room");
    drop(guard);
    for key in [
        &b"before"[..],
        b"replaced",
        b"stored and removed",
        b"removed before it was there",
        b"expired",
    ] {
        assert!(!restore(&mut restoring, key), "{}", String::from_utf8_lossy(key));
    }
    assert!(restore(&mut restoring, b"other"));
    assert!(!restore(&mut restoring, b"other"), "it is there");
    // What was restored may change, too.
    assert!(session.guard().remove(b"other"));
    assert!(!restore(&mut restoring, b"other"));
    session.guard().clear();
    assert!(!restore(&mut restoring, b"another"), "all keys were removed");
    cache.end_restore();
    assert!(!restore(&mut restoring, b"yet another"));
    assert_eq!(cache.len(), 0);
}

/// The record of changed keys has two bits for each 64 bytes of the budget.
#[test]
fn nearly_all_other_items_are_restored() {
    let cache = cache();
    cache.begin_restore();
    let [mut session, mut restoring] = [(); 2].map(|()| cache.session().expect("a session"));
    for number in 0..2000_u32 {
        let guard = session.guard();
        guard.set(&number.to_le_bytes(), b"new", &Write::new()).map(drop).expect("room");
    }
    let restored = (0..20_000_u32)
        .filter(|number| restore(&mut restoring, &(number << 12).to_le_bytes()))
        .count();
    assert!((19_800..=20_000).contains(&restored), "{restored}");
    let before = cache.stats().memory_metadata;
    cache.end_restore();
    assert_eq!(before - cache.stats().memory_metadata, MEMORY / 256);
}

#[test]
fn restoring_evicts_nothing() {
    let cache = cache();
    cache.begin_restore();
    let mut session = cache.session().expect("a session");
    let mut restored = 0_u32;
    let full = loop {
        let guard = session.guard();
        match guard.restore(&restored.to_le_bytes(), &[1; 1000], &Write::new(), 0) {
            Ok(is_restored) => assert!(is_restored),
            Err(error) => break error,
        }
        restored += 1;
    };
    assert!(matches!(full, Error::Full), "{full}");
    assert!(restored > 10_000, "{restored}");
    assert_eq!((cache.len(), cache.stats().evicted), (u64::from(restored), 0));
    // Other writes may evict.
    for number in 0..10_000_u32 {
        let mut guard = session.guard();
        let key = [&number.to_le_bytes()[..], b"new"].concat();
        while guard.set(&key, &[2; 1000], &Write::new()).is_err() {
            assert!(guard.renew(), "memory is freed");
        }
    }
    assert!(cache.stats().evicted > 0);
}

/// A client that removes a key sees it missing from then on, whenever the key is restored.
#[test]
fn a_removed_key_stays_removed_while_keys_are_restored() {
    const KEYS: u32 = 30_000;
    let cache = cache();
    cache.begin_restore();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut restoring = cache.session().expect("a session");
            for number in 0..KEYS {
                restore(&mut restoring, &number.to_le_bytes());
            }
        });
        let mut session = cache.session().expect("a session");
        for number in (0..KEYS).rev() {
            let guard = session.guard();
            guard.remove(&number.to_le_bytes());
            assert!(guard.peek(&number.to_le_bytes()).is_none());
        }
    });
    assert_eq!(cache.len(), 0);
}

#[test]
fn an_item_of_another_cache_replaces_that_of_its_key() {
    let cache = cache();
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    guard.set(b"key", b"old", &Write::new()).map(drop).expect("room");
    let write = Write::new().expiry(Expiry::At(u64::MAX >> 17)).flags(7).cas(1 << 50);
    for (key, frequency) in [(b"key", 0), (b"new", 2), (b"two", 100)] {
        guard.receive(key, b"value", &write, frequency).expect("room");
        let item = guard.peek(key).expect("the item");
        assert_eq!((item.value(), item.flags(), item.cas()), (&b"value"[..], 7, Some(1 << 50)));
        assert_eq!(item.expires_ms(), Some(u64::MAX >> 17));
        assert_eq!(item.frequency(), frequency.min(3));
    }
    assert!(guard.new_cas() > 1 << 50, "numbers that are reserved later are greater");
}
