//! Values that are received in pieces, in place.

use nuthatch_cache::{
    Cache, Condition, Error, Eviction, Expiry, Guard, Options, Outcome, PendingValue, Result,
    Session, Write,
};
use nuthatch_testing::random::{self, Random};
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

const MIB: usize = 1 << 20;
const MEMORY: u64 = 64 << 20;

fn cache(eviction: Eviction) -> Arc<Cache> {
    let options = Options::new().memory(MEMORY).eviction(eviction);
    Arc::new(Cache::new(options).expect("a cache"))
}

/// Pushes as a server does: without memory, again under the next guard.
fn push(guard: &mut Guard<'_>, pending: &mut PendingValue, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match pending.push(guard, &bytes[..bytes.len().min(16 << 10)]) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(Error::Full) if guard.renew() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn whole(
    cache: &Arc<Cache>,
    session: &mut Session<'_>,
    max_key_len: usize,
    value: &[u8],
) -> PendingValue {
    let mut guard = session.guard();
    let mut pending = match guard.begin_value(cache, max_key_len, value.len()) {
        Err(Error::Full) if guard.renew() => guard.begin_value(cache, max_key_len, value.len()),
        other => other,
    }
    .expect("room");
    push(&mut guard, &mut pending, value).expect("room");
    pending
}

fn store(session: &mut Session<'_>, pending: &PendingValue) {
    let value = pending.value().expect("whole");
    session.guard().set(b"k", value, &Write::new()).map(drop).expect("no room is needed");
}

fn settle(session: &mut Session<'_>) {
    (0..1000).for_each(|_| drop(session.guard()));
}

fn flood(session: &mut Session<'_>) {
    for number in 0..MEMORY / 1000 {
        let key = (number << 8).to_le_bytes();
        let mut guard = session.guard();
        if guard.set(&key, &[7; 1000], &Write::new()).is_err() && guard.renew() {
            guard.set(&key, &[7; 1000], &Write::new()).map(drop).expect("room");
        }
    }
}

#[test]
fn a_pending_value_becomes_an_item_in_place() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let longest = vec![b'k'; Cache::MAX_KEY_LEN];
    for (key, len) in [(&b"k"[..], 140_000), (b"", 300_001), (&*longest, 9 * MIB + 7)] {
        let stored = random::bytes(1, len);
        let pending = whole(&cache, &mut session, key.len(), &stored);
        assert_eq!((pending.remaining(), pending.value_len()), (0, len));
        let write = Write::new().flags(7).cas(9).expires_in_ms(60_000).protocol_bits(2);
        let guard = session.guard();
        guard.set(key, pending.value().expect("whole"), &write).map(drop).expect("room");
        let item = guard.get(key).expect("just stored");
        assert!(item.value() == stored && item.key() == key);
        assert_eq!(item.value().as_ptr(), pending.value().expect("whole").as_ptr());
        assert_eq!((item.flags(), item.cas(), item.protocol_bits()), (7, Some(9), 2));
        assert!(item.expires_ms().is_some());
        drop(pending);
        assert_eq!(cache.pending_bytes(), 0);
        assert!(guard.get(key).expect("it stays").value() == stored);
        assert!(guard.remove(key));
        drop(guard);
        settle(&mut session);
        assert_eq!(cache.stats().memory_large, 0);
    }
}

#[test]
fn a_pending_value_is_charged_as_it_grows_and_freed_when_dropped() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = random::bytes(1, 20 * MIB);
    for come in [0, 1, 200_000, 7 * MIB, 20 * MIB - 1, 20 * MIB] {
        let mut guard = session.guard();
        let mut pending = guard.begin_value(&cache, 10, stored.len()).expect("room");
        push(&mut guard, &mut pending, &stored[..come]).expect("room");
        assert_eq!(pending.remaining(), stored.len() - come);
        assert_eq!(pending.value().is_some(), come == stored.len());
        assert!(cache.pending_bytes() >= stored.len() as u64);
        let large = cache.stats().memory_large as usize;
        assert!(large >= come && large <= come + MIB, "{large} of {come}");
        drop(guard);
        drop(pending);
        settle(&mut session);
        assert_eq!((cache.pending_bytes(), cache.stats().memory_large), (0, 0));
    }
    // The addresses are free again.
    let pending = whole(&cache, &mut session, 10, &stored);
    assert!(pending.value() == Some(&*stored));
}

#[test]
fn a_pending_value_accepts_no_more_than_it_misses() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    let mut pending = guard.begin_value(&cache, 1, 300_000).expect("room");
    let bytes = random::bytes(1, 300_010);
    let mut taken = 0;
    while pending.remaining() > 0 {
        taken += pending.push(&guard, &bytes[taken..]).expect("room");
    }
    assert_eq!((taken, pending.push(&guard, b"more").expect("none")), (300_000, 0));
    assert!(pending.value() == Some(&bytes[..300_000]));
}

/// The longest value, with the default budget.
#[test]
fn a_pending_value_of_512_mib_fits_the_default_budget() {
    let cache = Arc::new(Cache::new(Options::new()).expect("a cache"));
    assert_eq!(cache.max_value_len(), 512 * MIB);
    let mut session = cache.session().expect("a session");
    let piece = random::bytes(1, MIB);
    for _ in 0..2 {
        let mut guard = session.guard();
        let mut pending = guard.begin_value(&cache, 1, 512 * MIB).expect("room");
        (0..512).for_each(|_| push(&mut guard, &mut pending, &piece).expect("room"));
        drop(guard);
        store(&mut session, &pending);
        drop(pending);
        let guard = session.guard();
        let item = guard.get(b"k").expect("just stored");
        assert!(item.value().chunks(MIB).all(|chunk| chunk == piece));
        assert_eq!(item.value().len(), 512 * MIB);
        assert!(cache.stats().memory <= 1 << 30, "{:?}", cache.stats());
    }
}

#[test]
fn a_pending_value_whose_condition_fails_can_be_stored_later() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = random::bytes(1, MIB);
    let pending = whole(&cache, &mut session, 3, &stored);
    let value = pending.value().expect("whole");
    let guard = session.guard();
    let set = |condition| {
        guard.set(b"key", value, &Write::new().flags(5).condition(condition)).expect("an outcome")
    };
    assert_eq!(set(Condition::Present), Outcome::Missing);
    assert_eq!(set(Condition::Cas(7)), Outcome::Missing);
    guard.set(b"key", b"old", &Write::new().cas(8).expires_in_ms(60_000)).map(drop).expect("room");
    assert_eq!(set(Condition::Absent), Outcome::Exists);
    assert_eq!(set(Condition::Cas(7)), Outcome::Exists);
    assert_eq!(set(Condition::Value(b"other")), Outcome::Exists);
    let none = guard.set_by(b"key", value, |item| (None, item.map(|item| item.value().len())));
    assert_eq!(none.expect("no room is needed"), Some(3));
    assert_eq!(guard.get(b"key").expect("as it was").value(), b"old");
    let expires = guard.get(b"key").and_then(|item| item.expires_ms());
    let kept = Write::new().expiry(Expiry::Keep).condition(Condition::Cas(8));
    assert_eq!(guard.set(b"key", value, &kept).expect("room"), Outcome::Stored);
    let item = guard.get(b"key").expect("just stored");
    assert!(item.value() == stored && item.expires_ms() == expires && expires.is_some());
    assert_eq!(item.value().as_ptr(), value.as_ptr());
    // A pending value becomes one item; writes of the same bytes under other keys are copies.
    assert!(guard.set(b"copy", value, &Write::new()).is_ok());
    let copy = guard.get(b"copy").expect("just stored");
    assert!(copy.value() == stored && copy.value().as_ptr() != value.as_ptr());
}

/// A value is copied if header and key do not fit in front of it, or if it is only part of a
/// pending value.
#[test]
fn values_that_do_not_match_a_pending_value_are_copied() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = random::bytes(1, MIB);
    let pending = whole(&cache, &mut session, 3, &stored);
    let value = pending.value().expect("whole");
    let guard = session.guard();
    let long = [b'k'; 100];
    guard.set(&long, value, &Write::new()).map(drop).expect("room");
    guard.set(b"end", &value[10..], &Write::new()).map(drop).expect("room");
    guard.set(b"cut", &value[..MIB - 10], &Write::new()).map(drop).expect("room");
    drop(guard);
    drop(pending);
    settle(&mut session);
    let guard = session.guard();
    assert!(guard.get(&long).expect("stored").value() == stored);
    assert!(guard.get(b"end").expect("stored").value() == &stored[10..]);
    assert!(guard.get(b"cut").expect("stored").value() == &stored[..MIB - 10]);
}

#[test]
fn pending_values_together_are_limited_to_a_share_of_the_budget() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let guard = session.guard();
    let most = cache.max_value_len();
    assert!(most > MEMORY as usize / 8 * 5 - 100_000);
    let longest = guard.begin_value(&cache, Cache::MAX_KEY_LEN, most).expect("room");
    assert!(matches!(guard.begin_value(&cache, 1, MIB), Err(Error::Full)));
    assert!(matches!(guard.begin_value(&cache, 1, most + 1), Err(Error::TooLong { .. })));
    drop(longest);
    let halves: Vec<_> =
        (0..2).map(|_| guard.begin_value(&cache, 1, most / 2).expect("room")).collect();
    assert!(guard.begin_value(&cache, 1, MIB).is_err());
    drop(halves);
    assert_eq!(cache.pending_bytes(), 0);
    guard.begin_value(&cache, 1, MIB).expect("memory again");
}

#[test]
fn growing_pending_values_evict_items_and_their_items_are_evicted() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    flood(&mut session);
    for round in 0..20_u64 {
        let len = [cache.max_value_len(), 3 * MIB, 17 * MIB, 400_000][round as usize % 4];
        let stored = random::bytes(round, len);
        let pending = whole(&cache, &mut session, 1, &stored);
        let stats = cache.stats();
        assert!(stats.memory <= MEMORY, "{stats:?}");
        if round % 3 > 0 {
            store(&mut session, &pending);
            drop(pending);
            assert!(session.guard().get(b"k").expect("just stored").value() == stored);
        }
    }
}

#[test]
fn an_item_from_a_pending_value_is_evicted_like_others() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let pending = whole(&cache, &mut session, 1, &random::bytes(1, 3 * MIB));
    store(&mut session, &pending);
    drop(pending);
    let evicted = cache.stats().evicted;
    flood(&mut session);
    flood(&mut session);
    assert!(session.guard().peek(b"k").is_none());
    assert!(cache.stats().evicted > evicted);
    settle(&mut session);
    assert_eq!(cache.stats().memory_large, 0);
}

/// The bytes stay as long as the pending value, even if the item is removed.
#[test]
fn a_pending_value_outlives_its_item() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = random::bytes(1, 5 * MIB);
    let pending = whole(&cache, &mut session, 1, &stored);
    store(&mut session, &pending);
    assert!(session.guard().remove(b"k"));
    flood(&mut session);
    settle(&mut session);
    assert!(pending.value() == Some(&*stored));
    assert!(cache.stats().memory_large >= stored.len() as u64);
    drop(pending);
    settle(&mut session);
    assert_eq!(cache.stats().memory_large, 0);
}

#[test]
fn without_eviction_a_pending_value_fails_at_its_start_or_when_others_used_the_memory() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let stored = random::bytes(1, 30 * MIB);
    let mut guard = session.guard();
    let mut pending = guard.begin_value(&cache, 1, stored.len()).expect("room");
    push(&mut guard, &mut pending, &stored[..MIB]).expect("room");
    drop(guard);
    let mut number = 0_u64;
    while session.guard().set(&number.to_le_bytes(), &stored[..100_000], &Write::new()).is_ok() {
        number += 1;
        assert!(number < 10_000, "unlimited memory");
    }
    let mut guard = session.guard();
    assert!(matches!(push(&mut guard, &mut pending, &stored[MIB..]), Err(Error::Full)));
    assert!(matches!(guard.begin_value(&cache, 1, 30 * MIB), Err(Error::Full)));
    drop(guard);
    drop(pending);
    settle(&mut session);
    let guard = session.guard();
    assert!((0..number).all(|number| guard.get(&number.to_le_bytes()).is_some()));
}

/// Pending values that begin, grow, are stored and dropped in random order, beside other writes.
#[test]
fn pending_values_match_a_model() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let (mut model, mut pending_values) = (HashMap::new(), Vec::<(PendingValue, Vec<u8>)>::new());
    let mut random = Random::new(1);
    for round in 0..3_000_u64 {
        let key = random.below(5);
        let len = 100_000 + random.below(2_000_000) as usize;
        let mut guard = session.guard();
        match random.below(6) {
            0 if pending_values.len() < 3 => {
                if let Ok(pending) = guard.begin_value(&cache, 8, len) {
                    pending_values.push((pending, random::bytes(round, len)));
                }
            }
            1 => drop((!pending_values.is_empty()).then(|| pending_values.swap_remove(0))),
            2 => assert_eq!(guard.remove(&key.to_le_bytes()), model.remove(&key).is_some()),
            3 => {
                let copied = random::bytes(round, len);
                if guard.set(&key.to_le_bytes(), &copied, &Write::new()).is_ok() {
                    model.insert(key, copied);
                }
            }
            _ => {
                let Some((mut pending, stored)) = pending_values.pop() else { continue };
                let come = stored.len() - pending.remaining();
                let next = (come + len / 2).min(stored.len());
                if push(&mut guard, &mut pending, &stored[come..next]).is_err() {
                    continue;
                }
                match pending.value() {
                    None => pending_values.push((pending, stored)),
                    Some(whole) => {
                        guard
                            .set(&key.to_le_bytes(), whole, &Write::new())
                            .map(drop)
                            .expect("no room");
                        model.insert(key, stored);
                    }
                }
            }
        }
        for key in 0..5_u64 {
            let item = guard.peek(&key.to_le_bytes());
            let same = item.map(|item| item.value()) == model.get(&key).map(Vec::as_slice);
            assert!(same, "round {round}, key {key}");
        }
        assert!(cache.stats().memory <= MEMORY);
    }
    assert!(!model.is_empty());
    drop(pending_values);
    session.guard().clear();
    settle(&mut session);
    assert_eq!((cache.stats().memory_large, cache.pending_bytes()), (0, 0));
}

/// Two threads store the same pending value: one makes an item of it, the other copies.
#[test]
fn two_threads_that_store_a_pending_value_make_one_item_of_it() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = random::bytes(1, MIB);
    for _ in 0..20 {
        let pending = whole(&cache, &mut session, 5, &stored);
        let bytes = pending.value().expect("whole");
        thread::scope(|scope| {
            for key in [&b"one"[..], b"other"] {
                let cache = &cache;
                scope.spawn(move || {
                    let mut session = cache.session().expect("a session");
                    let guard = session.guard();
                    guard.set(key, bytes, &Write::new()).map(drop).expect("room");
                });
            }
        });
        let guard = session.guard();
        let items = [&b"one"[..], b"other"].map(|key| guard.get(key).expect("stored"));
        assert!(items.iter().all(|item| item.value() == stored));
        let same = items.iter().filter(|item| item.value().as_ptr() == bytes.as_ptr());
        assert_eq!(same.count(), 1);
    }
}

#[test]
#[should_panic(expected = "the cache of this guard")]
fn a_pending_value_with_another_cache_panics() {
    let (one, other) = (cache(Eviction::S3Fifo), cache(Eviction::S3Fifo));
    let mut session = one.session().expect("a session");
    let _ = session.guard().begin_value(&other, 1, MIB);
}
