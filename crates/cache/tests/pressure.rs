//! More is written than there is room for.

use nuthatch_cache::{Cache, Error, Eviction, Options, Session, Turn, Write};

const MEMORY: u64 = 16 << 20;

fn cache(eviction: Eviction) -> Cache {
    Cache::new(Options::new().memory(MEMORY).eviction(eviction)).expect("a cache")
}

/// Short turns, as a server's.
fn in_turns(
    session: &mut Session<'_>,
    numbers: impl Iterator<Item = u64>,
    mut act: impl FnMut(&Turn<'_>, u64),
) {
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        let turn = session.turn();
        for number in numbers.by_ref().take(64) {
            act(&turn, number);
        }
    }
}

fn value(number: u64, len: usize) -> Vec<u8> {
    number.to_le_bytes().iter().copied().cycle().take(len).collect()
}

#[test]
fn the_newest_items_stay_and_the_budget_holds() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let count = 500_000_u64;
    in_turns(&mut session, 0..count, |turn, number| {
        let key = number.to_le_bytes();
        assert!(turn.set(&key, &value(number, 100), &Write::new()).is_ok());
        if number.is_multiple_of(10_000) {
            let stats = cache.stats();
            assert!(stats.memory <= MEMORY, "{stats:?}");
        }
    });
    let stats = cache.stats();
    assert!(stats.memory <= MEMORY, "{stats:?}");
    assert_eq!(stats.items + stats.evicted, count, "{stats:?}");
    // 110 bytes and a slot of the index each.
    assert!(stats.items > MEMORY / 150, "{stats:?}");
    let turn = session.turn();
    let mut there = 0;
    for number in 0..count {
        if let Some(item) = turn.get(&number.to_le_bytes()) {
            assert_eq!(item.value(), value(number, 100));
            there += 1;
        }
    }
    assert_eq!(there, stats.items);
    let newest = (count - 10_000..count).filter(|n| turn.peek(&n.to_le_bytes()).is_some());
    assert_eq!(newest.count(), 10_000);
    assert!(cache.stats().misses_evicted > 0);
}

/// The ghost queue is made when the first item is evicted, and was not counted until later.
#[test]
fn the_budget_holds_when_the_first_item_is_evicted() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let mut evicted = 0;
    for number in 0..2_000_000_u64 {
        session.turn().set(&number.to_le_bytes(), b"", &Write::new()).map(drop).expect("room");
        if number.is_multiple_of(1000) || evicted == 0 {
            let stats = cache.stats();
            assert!(stats.memory <= MEMORY, "{stats:?}");
            evicted = stats.evicted;
        }
    }
    assert!(evicted > 100_000, "{evicted}");
}

#[test]
fn what_is_asked_for_outlives_a_scan() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let hot = 0..20_000_u64;
    in_turns(&mut session, hot.clone(), |turn, number| {
        turn.set(&number.to_le_bytes(), &[1; 100], &Write::new()).map(drop).expect("room");
        turn.get(&number.to_le_bytes()).expect("just stored");
        turn.get(&number.to_le_bytes()).expect("just stored");
    });
    in_turns(&mut session, 100_000..600_000, |turn, number| {
        turn.set(&number.to_le_bytes(), &[2; 100], &Write::new()).map(drop).expect("room");
        let hot = number % 20_000;
        let _ = turn.get(&hot.to_le_bytes());
    });
    let turn = session.turn();
    let kept = hot.filter(|number| turn.peek(&number.to_le_bytes()).is_some()).count();
    assert!(kept > 19_000, "{kept} of 20,000");
}

/// Each item was evicted just before its turn came again: a few percent were found.
#[test]
fn a_loop_over_more_than_fits_finds_most_of_what_does() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    in_turns(&mut session, 0..300_000, |turn, number| {
        turn.set(&number.to_le_bytes(), &[1; 100], &Write::new()).map(drop).expect("room");
    });
    let fits = cache.len();
    let keys = fits * 6 / 5;
    let (passes, mut found) = (10, 0);
    in_turns(&mut session, 0..passes * keys, |turn, number| {
        let key = (1_u64 << 40 | number % keys).to_le_bytes();
        if turn.get(&key).is_some() {
            found += u64::from(number >= 5 * keys);
        } else {
            turn.set(&key, &[2; 100], &Write::new()).map(drop).expect("room");
        }
    });
    // Five passes in which all but a sixth could be found.
    assert!(found > 5 * fits * 7 / 10, "{found} of {}", 5 * fits);
}

#[test]
fn without_eviction_writes_fail_and_nothing_is_lost() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let mut stored = 0;
    in_turns(&mut session, 0..300_000, |turn, number| {
        match turn.set(&number.to_le_bytes(), &value(number, 100), &Write::new()) {
            Ok(_) => {
                assert_eq!(stored, number, "no write succeeds after one failed");
                stored += 1;
            }
            Err(error) => assert!(matches!(error, Error::Full), "{error}"),
        }
    });
    assert!((MEMORY / 150..300_000).contains(&stored), "{stored}");
    assert_eq!(cache.len(), stored);
    let turn = session.turn();
    for number in 0..stored {
        let item = turn.get(&number.to_le_bytes()).expect("nothing is evicted");
        assert_eq!(item.value(), value(number, 100));
    }
    drop(turn);
    // What is removed makes room again, at the latest in the next turns.
    in_turns(&mut session, 0..stored / 2, |turn, number| {
        assert!(turn.remove(&(number * 2).to_le_bytes()));
    });
    in_turns(&mut session, 0..stored / 4, |turn, number| {
        let key = (1_u64 << 40 | number).to_le_bytes();
        turn.set(&key, &value(number, 100), &Write::new()).map(drop).expect("room");
    });
    let turn = session.turn();
    for number in 0..stored / 2 {
        assert!(turn.get(&(number * 2 + 1).to_le_bytes()).is_some(), "{number}");
    }
}

#[test]
fn overwriting_takes_no_more_memory() {
    for eviction in [Eviction::None, Eviction::S3Fifo] {
        let cache = cache(eviction);
        let mut session = cache.session().expect("a session");
        in_turns(&mut session, 0..1_000_000, |turn, number| {
            let key = (number * 7919 % 50_000).to_le_bytes();
            let len = 20 + number as usize % 200;
            turn.set(&key, &value(number, len), &Write::new()).map(drop).expect("room");
        });
        let stats = cache.stats();
        assert_eq!((stats.items, stats.evicted), (50_000, 0), "{eviction:?}: {stats:?}");
        let turn = session.turn();
        for number in 950_000..1_000_000_u64 {
            let item = turn.get(&(number * 7919 % 50_000).to_le_bytes()).expect("there");
            assert_eq!(item.value(), value(number, 20 + number as usize % 200));
        }
    }
}

/// Items of a few bytes begin in one granule of a segment, of which some are gone and others not.
#[test]
fn short_items_stay_when_those_beside_them_are_overwritten() {
    const KEYS: u64 = 300_000;
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let mut last = vec![0_u32; KEYS as usize];
    let drawn = |number: u64| (number * number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    in_turns(&mut session, 0..3_000_000, |turn, number| {
        let key = if number < KEYS { number } else { drawn(number) % KEYS };
        last[key as usize] = number as u32;
        let (key, value) = ((key as u32).to_le_bytes(), (number as u32).to_le_bytes());
        turn.set(&key, &value, &Write::new()).map(drop).expect("room");
    });
    assert!(cache.stats().moved_bytes > 0, "segments were reclaimed");
    let turn = session.turn();
    for (key, last) in (0..KEYS as u32).zip(last) {
        let item = turn.get(&key.to_le_bytes()).expect("it is still there");
        assert_eq!(item.value(), last.to_le_bytes());
    }
}

#[test]
fn expired_items_make_room_before_others_go() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    in_turns(&mut session, 0..1_000_000, |turn, number| {
        // Over at once.
        let write = Write::new().expires_in_ms(0);
        turn.set(&number.to_le_bytes(), &value(number, 100), &write).map(drop).expect("room");
    });
    assert!(cache.stats().expired > 800_000);
}

#[test]
fn memory_taken_elsewhere_is_given_up() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let mut fill = |from: u64| {
        in_turns(&mut session, from..from + 200_000, |turn, number| {
            turn.set(&number.to_le_bytes(), &[0; 100], &Write::new()).map(drop).expect("room");
        });
    };
    fill(0);
    let before = cache.len();
    cache.reserve(MEMORY / 2);
    fill(1 << 32);
    let stats = cache.stats();
    assert!(stats.memory <= MEMORY, "{stats:?}");
    assert!(stats.items < before * 2 / 3, "{} of {before}", stats.items);
}

/// A segment that one session was reclaiming, a few items at a time, was emptied by another one and
/// given out anew; the first went on in the middle of what was written there then.
#[test]
fn a_segment_that_is_over_is_reclaimed_no_further() {
    let cache = cache(Eviction::S3Fifo);
    let [mut one, mut other] = [(); 2].map(|()| cache.session().expect("a session"));
    for round in 0..40_u64 {
        let numbers = |part: u64, count: u64| {
            let first = (round * 2 + part) << 32;
            first..first + count
        };
        // Until room is short, and then some: a segment is left half reclaimed.
        in_turns(&mut one, numbers(0, 130_000 + round * 61), |turn, number| {
            turn.set(&number.to_le_bytes(), &value(number, 100), &Write::new())
                .map(drop)
                .expect("room");
        });
        other.turn().clear();
        // Other lengths, so that items begin elsewhere.
        let len = 20 + round as usize * 3;
        in_turns(&mut other, numbers(1, 60_000), |turn, number| {
            turn.set(&number.to_le_bytes(), &value(number, len), &Write::new())
                .map(drop)
                .expect("room");
        });
        let turn = other.turn();
        for number in numbers(1, 60_000) {
            if let Some(item) = turn.get(&number.to_le_bytes()) {
                assert_eq!(item.value(), value(number, len));
            }
        }
    }
}

/// A write that somebody else's comes before is written anew, where it was at first: it is there,
/// and goes when room is short as others do.
#[test]
fn what_was_written_twice_to_one_place_is_evicted_in_its_turn() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let keys = 0..200_u64;
    in_turns(&mut session, keys.clone(), |turn, number| {
        let key = number.to_le_bytes();
        let mut tries = 0;
        let stored = turn.set_by(&key, &value(number, 5000), |_| {
            tries += 1;
            if tries == 1 {
                turn.set(&key, b"faster", &Write::new()).map(drop).expect("room");
            }
            (Some(Write::new()), ())
        });
        stored.expect("room");
        assert_eq!(tries, 2);
    });
    in_turns(&mut session, 1000..100_000, |turn, number| {
        assert!(turn.set(&number.to_le_bytes(), &value(number, 1000), &Write::new()).is_ok());
    });
    let turn = session.turn();
    assert_eq!(keys.filter(|number| turn.peek(&number.to_le_bytes()).is_some()).count(), 0);
}
