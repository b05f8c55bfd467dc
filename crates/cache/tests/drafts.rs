//! Values that are received piece by piece into their place.

use nuthatch_cache::{
    Cache, Condition, Draft, Error, Eviction, Expiry, Options, Outcome, Result, Session, Turn,
    Write,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

const MIB: usize = 1 << 20;
const MEMORY: u64 = 64 << 20;

fn cache(eviction: Eviction) -> Arc<Cache> {
    let options = Options::new().memory(MEMORY).eviction(eviction);
    Arc::new(Cache::new(options).expect("a cache"))
}

/// Bytes that tell their number and where they are.
fn value(number: u64, len: usize) -> Vec<u8> {
    let word = |at: u64| (number << 32 ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
    (0..len.div_ceil(8) as u64).flat_map(word).take(len).collect()
}

/// Pushes as a server does: where there is no room, in a turn for which some was made.
fn push(turn: &mut Turn<'_>, draft: &mut Draft, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match draft.push(turn, &bytes[..bytes.len().min(16 << 10)]) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(Error::Full) if turn.renew() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn whole(cache: &Arc<Cache>, session: &mut Session<'_>, key_most: usize, value: &[u8]) -> Draft {
    let mut turn = session.turn();
    let mut draft = match turn.draft(cache, key_most, value.len()) {
        Err(Error::Full) if turn.renew() => turn.draft(cache, key_most, value.len()),
        other => other,
    }
    .expect("room");
    push(&mut turn, &mut draft, value).expect("room");
    draft
}

fn store(session: &mut Session<'_>, draft: &Draft) {
    let value = draft.value().expect("whole");
    session.turn().set(b"k", value, &Write::new()).map(drop).expect("no room is needed");
}

fn settle(session: &mut Session<'_>) {
    (0..1000).for_each(|_| drop(session.turn()));
}

fn flood(session: &mut Session<'_>) {
    for number in 0..MEMORY / 1000 {
        let key = (number << 8).to_le_bytes();
        let mut turn = session.turn();
        if turn.set(&key, &[7; 1000], &Write::new()).is_err() && turn.renew() {
            turn.set(&key, &[7; 1000], &Write::new()).map(drop).expect("room");
        }
    }
}

#[test]
fn a_draft_becomes_an_item_where_it_lies() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let longest = vec![b'k'; Cache::KEY_MOST];
    for (key, len) in [(&b"k"[..], 140_000), (b"", 300_001), (&*longest, 9 * MIB + 7)] {
        let stored = value(1, len);
        let draft = whole(&cache, &mut session, key.len(), &stored);
        assert_eq!((draft.missing(), draft.value_len()), (0, len));
        let write = Write::new().flags(7).cas(9).expires_in_ms(60_000).marks(2);
        let turn = session.turn();
        turn.set(key, draft.value().expect("whole"), &write).map(drop).expect("room");
        let item = turn.get(key).expect("just stored");
        assert!(item.value() == stored && item.key() == key);
        assert_eq!(item.value().as_ptr(), draft.value().expect("whole").as_ptr());
        assert_eq!((item.flags(), item.cas(), item.marks()), (7, Some(9), 2));
        assert!(item.expires_ms().is_some());
        drop(draft);
        assert_eq!(cache.drafted(), 0);
        assert!(turn.get(key).expect("it stays").value() == stored);
        assert!(turn.remove(key));
        drop(turn);
        settle(&mut session);
        assert_eq!(cache.stats().memory_large, 0);
    }
}

#[test]
fn a_draft_takes_what_has_come_and_gives_it_back() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = value(1, 20 * MIB);
    for come in [0, 1, 200_000, 7 * MIB, 20 * MIB - 1, 20 * MIB] {
        let mut turn = session.turn();
        let mut draft = turn.draft(&cache, 10, stored.len()).expect("room");
        push(&mut turn, &mut draft, &stored[..come]).expect("room");
        assert_eq!(draft.missing(), stored.len() - come);
        assert_eq!(draft.value().is_some(), come == stored.len());
        assert!(cache.drafted() >= stored.len() as u64);
        let large = cache.stats().memory_large as usize;
        assert!(large >= come && large <= come + MIB, "{large} of {come}");
        drop(turn);
        drop(draft);
        settle(&mut session);
        assert_eq!((cache.drafted(), cache.stats().memory_large), (0, 0));
    }
    // The addresses are there again.
    let draft = whole(&cache, &mut session, 10, &stored);
    assert!(draft.value() == Some(&*stored));
}

#[test]
fn a_draft_takes_no_more_than_it_misses() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let turn = session.turn();
    let mut draft = turn.draft(&cache, 1, 300_000).expect("room");
    let bytes = value(1, 300_010);
    let mut taken = 0;
    while draft.missing() > 0 {
        taken += draft.push(&turn, &bytes[taken..]).expect("room");
    }
    assert_eq!((taken, draft.push(&turn, b"more").expect("none")), (300_000, 0));
    assert!(draft.value() == Some(&bytes[..300_000]));
}

/// The largest value there is, in the memory that a cache has by default.
#[test]
fn a_draft_of_512_mib_fits_the_default_budget() {
    let cache = Arc::new(Cache::new(Options::new()).expect("a cache"));
    assert_eq!(cache.value_most(), 512 * MIB);
    let mut session = cache.session().expect("a session");
    let piece = value(1, MIB);
    for _ in 0..2 {
        let mut turn = session.turn();
        let mut draft = turn.draft(&cache, 1, 512 * MIB).expect("room");
        (0..512).for_each(|_| push(&mut turn, &mut draft, &piece).expect("room"));
        drop(turn);
        store(&mut session, &draft);
        drop(draft);
        let turn = session.turn();
        let item = turn.get(b"k").expect("just stored");
        assert!(item.value().chunks(MIB).all(|chunk| chunk == piece));
        assert_eq!(item.value().len(), 512 * MIB);
        assert!(cache.stats().memory <= 1 << 30, "{:?}", cache.stats());
    }
}

#[test]
fn a_draft_that_is_refused_can_be_stored_later() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = value(1, MIB);
    let draft = whole(&cache, &mut session, 3, &stored);
    let value = draft.value().expect("whole");
    let turn = session.turn();
    let set = |condition| {
        turn.set(b"key", value, &Write::new().flags(5).condition(condition)).expect("an outcome")
    };
    assert_eq!(set(Condition::Present), Outcome::Missing);
    assert_eq!(set(Condition::Cas(7)), Outcome::Missing);
    turn.set(b"key", b"old", &Write::new().cas(8).expires_in_ms(60_000)).map(drop).expect("room");
    assert_eq!(set(Condition::Absent), Outcome::Exists);
    assert_eq!(set(Condition::Cas(7)), Outcome::Exists);
    assert_eq!(set(Condition::Value(b"other")), Outcome::Exists);
    let none = turn.set_by(b"key", value, |item| (None, item.map(|item| item.value().len())));
    assert_eq!(none.expect("no room is needed"), Some(3));
    assert_eq!(turn.get(b"key").expect("as it was").value(), b"old");
    let expires = turn.get(b"key").and_then(|item| item.expires_ms());
    let kept = Write::new().expiry(Expiry::Keep).condition(Condition::Cas(8));
    assert_eq!(turn.set(b"key", value, &kept).expect("room"), Outcome::Stored);
    let item = turn.get(b"key").expect("just stored");
    assert!(item.value() == stored && item.expires_ms() == expires && expires.is_some());
    assert_eq!(item.value().as_ptr(), value.as_ptr());
    // A draft is one item; others with its value are copies.
    assert!(turn.set(b"copy", value, &Write::new()).is_ok());
    let copy = turn.get(b"copy").expect("just stored");
    assert!(copy.value() == stored && copy.value().as_ptr() != value.as_ptr());
}

/// Where head and key have no room before it, or a part of it is wanted, it is copied.
#[test]
fn what_does_not_fit_a_draft_is_copied() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = value(1, MIB);
    let draft = whole(&cache, &mut session, 3, &stored);
    let value = draft.value().expect("whole");
    let turn = session.turn();
    let long = [b'k'; 100];
    turn.set(&long, value, &Write::new()).map(drop).expect("room");
    turn.set(b"end", &value[10..], &Write::new()).map(drop).expect("room");
    turn.set(b"cut", &value[..MIB - 10], &Write::new()).map(drop).expect("room");
    drop(turn);
    drop(draft);
    settle(&mut session);
    let turn = session.turn();
    assert!(turn.get(&long).expect("stored").value() == stored);
    assert!(turn.get(b"end").expect("stored").value() == &stored[10..]);
    assert!(turn.get(b"cut").expect("stored").value() == &stored[..MIB - 10]);
}

#[test]
fn drafts_are_held_to_a_part_of_the_budget() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let turn = session.turn();
    let most = cache.value_most();
    assert!(most > MEMORY as usize / 8 * 5 - 100_000);
    let longest = turn.draft(&cache, Cache::KEY_MOST, most).expect("room");
    assert!(matches!(turn.draft(&cache, 1, MIB), Err(Error::Full)));
    assert!(matches!(turn.draft(&cache, 1, most + 1), Err(Error::TooLong { .. })));
    drop(longest);
    let halves: Vec<_> = (0..2).map(|_| turn.draft(&cache, 1, most / 2).expect("room")).collect();
    assert!(turn.draft(&cache, 1, MIB).is_err());
    drop(halves);
    assert_eq!(cache.drafted(), 0);
    turn.draft(&cache, 1, MIB).expect("room again");
}

#[test]
fn room_is_made_for_drafts_as_they_come_and_they_for_others() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    flood(&mut session);
    for round in 0..20_u64 {
        let len = [cache.value_most(), 3 * MIB, 17 * MIB, 400_000][round as usize % 4];
        let stored = value(round, len);
        let draft = whole(&cache, &mut session, 1, &stored);
        let stats = cache.stats();
        assert!(stats.memory <= MEMORY, "{stats:?}");
        if round % 3 > 0 {
            store(&mut session, &draft);
            drop(draft);
            assert!(session.turn().get(b"k").expect("just stored").value() == stored);
        }
    }
}

#[test]
fn an_item_that_was_a_draft_is_evicted_as_others_are() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let draft = whole(&cache, &mut session, 1, &value(1, 3 * MIB));
    store(&mut session, &draft);
    drop(draft);
    let evicted = cache.stats().evicted;
    flood(&mut session);
    flood(&mut session);
    assert!(session.turn().peek(b"k").is_none());
    assert!(cache.stats().evicted > evicted);
    settle(&mut session);
    assert_eq!(cache.stats().memory_large, 0);
}

/// Its bytes stay while the draft does, whatever becomes of the item.
#[test]
fn a_draft_outlives_its_item() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = value(1, 5 * MIB);
    let draft = whole(&cache, &mut session, 1, &stored);
    store(&mut session, &draft);
    assert!(session.turn().remove(b"k"));
    flood(&mut session);
    settle(&mut session);
    assert!(draft.value() == Some(&*stored));
    assert!(cache.stats().memory_large >= stored.len() as u64);
    drop(draft);
    settle(&mut session);
    assert_eq!(cache.stats().memory_large, 0);
}

#[test]
fn without_eviction_a_draft_is_refused_at_its_start_or_where_others_were_faster() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let stored = value(1, 30 * MIB);
    let mut turn = session.turn();
    let mut draft = turn.draft(&cache, 1, stored.len()).expect("room");
    push(&mut turn, &mut draft, &stored[..MIB]).expect("room");
    drop(turn);
    let mut number = 0_u64;
    while session.turn().set(&number.to_le_bytes(), &stored[..100_000], &Write::new()).is_ok() {
        number += 1;
        assert!(number < 10_000, "room without an end");
    }
    let mut turn = session.turn();
    assert!(matches!(push(&mut turn, &mut draft, &stored[MIB..]), Err(Error::Full)));
    assert!(matches!(turn.draft(&cache, 1, 30 * MIB), Err(Error::Full)));
    drop(turn);
    drop(draft);
    settle(&mut session);
    let turn = session.turn();
    assert!((0..number).all(|number| turn.get(&number.to_le_bytes()).is_some()));
}

/// Drafts that begin, grow, are stored and given up in any order, beside other writes.
#[test]
fn drafts_are_as_a_model_says() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let (mut model, mut drafts) = (HashMap::new(), Vec::<(Draft, Vec<u8>)>::new());
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..3_000_u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let key = (random >> 40) % 5;
        let len = 100_000 + (random >> 20) as usize % 2_000_000;
        let mut turn = session.turn();
        match random % 6 {
            0 if drafts.len() < 3 => {
                if let Ok(draft) = turn.draft(&cache, 8, len) {
                    drafts.push((draft, value(round, len)));
                }
            }
            1 => drop((!drafts.is_empty()).then(|| drafts.swap_remove(0))),
            2 => assert_eq!(turn.remove(&key.to_le_bytes()), model.remove(&key).is_some()),
            3 => {
                let copied = value(round, len);
                if turn.set(&key.to_le_bytes(), &copied, &Write::new()).is_ok() {
                    model.insert(key, copied);
                }
            }
            _ => {
                let Some((mut draft, stored)) = drafts.pop() else { continue };
                let come = stored.len() - draft.missing();
                let next = (come + len / 2).min(stored.len());
                if push(&mut turn, &mut draft, &stored[come..next]).is_err() {
                    continue;
                }
                match draft.value() {
                    None => drafts.push((draft, stored)),
                    Some(whole) => {
                        turn.set(&key.to_le_bytes(), whole, &Write::new())
                            .map(drop)
                            .expect("no room");
                        model.insert(key, stored);
                    }
                }
            }
        }
        for key in 0..5_u64 {
            let item = turn.peek(&key.to_le_bytes());
            let same = item.map(|item| item.value()) == model.get(&key).map(Vec::as_slice);
            assert!(same, "round {round}, key {key}");
        }
        assert!(cache.stats().memory <= MEMORY);
    }
    assert!(!model.is_empty());
    drop(drafts);
    session.turn().clear();
    settle(&mut session);
    assert_eq!((cache.stats().memory_large, cache.drafted()), (0, 0));
}

/// Two who have the same draft: one makes an item of it, and the other gets a copy.
#[test]
fn a_draft_becomes_one_item_though_two_threads_store_it() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let stored = value(1, MIB);
    for _ in 0..20 {
        let draft = whole(&cache, &mut session, 5, &stored);
        let bytes = draft.value().expect("whole");
        thread::scope(|scope| {
            for key in [&b"one"[..], b"other"] {
                let cache = &cache;
                scope.spawn(move || {
                    let mut session = cache.session().expect("a session");
                    let turn = session.turn();
                    turn.set(key, bytes, &Write::new()).map(drop).expect("room");
                });
            }
        });
        let turn = session.turn();
        let items = [&b"one"[..], b"other"].map(|key| turn.get(key).expect("stored"));
        assert!(items.iter().all(|item| item.value() == stored));
        let same = items.iter().filter(|item| item.value().as_ptr() == bytes.as_ptr());
        assert_eq!(same.count(), 1);
    }
}

#[test]
#[should_panic(expected = "the cache of this turn")]
fn a_draft_is_of_the_cache_of_its_turn() {
    let (one, other) = (cache(Eviction::S3Fifo), cache(Eviction::S3Fifo));
    let mut session = one.session().expect("a session");
    let _ = session.turn().draft(&other, 1, MIB);
}
