//! Writing more than fits.

use nuthatch_cache::{Cache, Error, Eviction, Guard, Options, Session, Write};
use nuthatch_testing::random::Random;

const MEMORY: u64 = 16 << 20;

fn cache(eviction: Eviction) -> Cache {
    Cache::new(Options::new().memory(MEMORY).eviction(eviction)).expect("a cache")
}

/// Uses short guards, like a server.
fn in_short_guards(
    session: &mut Session<'_>,
    numbers: impl Iterator<Item = u64>,
    mut operation: impl FnMut(&Guard<'_>, u64),
) {
    let mut numbers = numbers.peekable();
    while numbers.peek().is_some() {
        let guard = session.guard();
        for number in numbers.by_ref().take(64) {
            operation(&guard, number);
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
    in_short_guards(&mut session, 0..count, |guard, number| {
        let key = number.to_le_bytes();
        assert!(guard.set(&key, &value(number, 100), &Write::new()).is_ok());
        if number.is_multiple_of(10_000) {
            let stats = cache.stats();
            assert!(stats.memory <= MEMORY, "{stats:?}");
        }
    });
    let stats = cache.stats();
    assert!(stats.memory <= MEMORY, "{stats:?}");
    assert_eq!(stats.items + stats.evicted, count, "{stats:?}");
    // Each takes 110 bytes and an index slot.
    assert!(stats.items > MEMORY / 150, "{stats:?}");
    let guard = session.guard();
    let mut there = 0;
    for number in 0..count {
        if let Some(item) = guard.get(&number.to_le_bytes()) {
            assert_eq!(item.value(), value(number, 100));
            there += 1;
        }
    }
    assert_eq!(there, stats.items);
    let newest = (count - 10_000..count).filter(|n| guard.peek(&n.to_le_bytes()).is_some());
    assert_eq!(newest.count(), 10_000);
    assert!(cache.stats().misses_evicted > 0);
}

/// Regression test: the ghost queue is created at the first eviction, and its memory was not
/// counted until later.
#[test]
fn the_budget_holds_when_the_first_item_is_evicted() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let mut evicted = 0;
    for number in 0..2_000_000_u64 {
        session.guard().set(&number.to_le_bytes(), b"", &Write::new()).map(drop).expect("room");
        if number.is_multiple_of(1000) || evicted == 0 {
            let stats = cache.stats();
            assert!(stats.memory <= MEMORY, "{stats:?}");
            evicted = stats.evicted;
        }
    }
    assert!(evicted > 100_000, "{evicted}");
}

#[test]
fn items_that_are_read_outlive_a_pass_over_many_keys() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let hot = 0..20_000_u64;
    in_short_guards(&mut session, hot.clone(), |guard, number| {
        guard.set(&number.to_le_bytes(), &[1; 100], &Write::new()).map(drop).expect("room");
        guard.get(&number.to_le_bytes()).expect("just stored");
        guard.get(&number.to_le_bytes()).expect("just stored");
    });
    in_short_guards(&mut session, 100_000..600_000, |guard, number| {
        guard.set(&number.to_le_bytes(), &[2; 100], &Write::new()).map(drop).expect("room");
        let hot = number % 20_000;
        let _ = guard.get(&hot.to_le_bytes());
    });
    let guard = session.guard();
    let kept = hot.filter(|number| guard.peek(&number.to_le_bytes()).is_some()).count();
    assert!(kept > 19_000, "{kept} of 20,000");
}

/// Regression test: each item was evicted just before it was read again, and a few percent of the
/// reads were hits.
#[test]
fn a_loop_over_more_keys_than_fit_hits_most_of_those_that_fit() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    in_short_guards(&mut session, 0..300_000, |guard, number| {
        guard.set(&number.to_le_bytes(), &[1; 100], &Write::new()).map(drop).expect("room");
    });
    let fits = cache.len();
    let keys = fits * 6 / 5;
    let (passes, mut found) = (10, 0);
    in_short_guards(&mut session, 0..passes * keys, |guard, number| {
        let key = (1_u64 << 40 | number % keys).to_le_bytes();
        if guard.get(&key).is_some() {
            found += u64::from(number >= 5 * keys);
        } else {
            guard.set(&key, &[2; 100], &Write::new()).map(drop).expect("room");
        }
    });
    // Five passes in which all but a sixth could be hits.
    assert!(found > 5 * fits * 7 / 10, "{found} of {}", 5 * fits);
}

#[test]
fn without_eviction_writes_fail_and_nothing_is_lost() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let mut stored = 0;
    in_short_guards(&mut session, 0..300_000, |guard, number| {
        match guard.set(&number.to_le_bytes(), &value(number, 100), &Write::new()) {
            Ok(_) => {
                assert_eq!(stored, number, "no write succeeds after one failed");
                stored += 1;
            }
            Err(error) => assert!(matches!(error, Error::Full), "{error}"),
        }
    });
    assert!((MEMORY / 150..300_000).contains(&stored), "{stored}");
    assert_eq!(cache.len(), stored);
    let guard = session.guard();
    for number in 0..stored {
        let item = guard.get(&number.to_le_bytes()).expect("nothing is evicted");
        assert_eq!(item.value(), value(number, 100));
    }
    drop(guard);
    // Removed items make room again, at the latest under the next guards.
    in_short_guards(&mut session, 0..stored / 2, |guard, number| {
        assert!(guard.remove(&(number * 2).to_le_bytes()));
    });
    in_short_guards(&mut session, 0..stored / 4, |guard, number| {
        let key = (1_u64 << 40 | number).to_le_bytes();
        guard.set(&key, &value(number, 100), &Write::new()).map(drop).expect("room");
    });
    let guard = session.guard();
    for number in 0..stored / 2 {
        assert!(guard.get(&(number * 2 + 1).to_le_bytes()).is_some(), "{number}");
    }
}

/// Regression test: each write that found no memory moved items up to ten thousand times, which
/// freed nothing: two items fill three quarters of a segment, and a third does not fit into the
/// rest.
#[test]
fn writes_that_do_not_fit_do_not_move_items_without_freeing_memory() {
    const LEN: usize = 100_000;
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let mut stored = 0_u64;
    while session.guard().set(&stored.to_le_bytes(), &value(stored, LEN), &Write::new()).is_ok() {
        stored += 1;
    }
    assert!(stored > MEMORY / 2 / LEN as u64, "{stored} are stored");
    let large = vec![1; MEMORY as usize / 2];
    let refuse = |session: &mut Session<'_>| {
        let before = cache.stats().moved_bytes;
        for _ in 0..10 {
            let mut guard = session.guard();
            for _ in 0..2 {
                let refused = guard.set(b"large", &large, &Write::new());
                assert!(matches!(refused, Err(Error::Full)), "{refused:?}");
                guard.renew();
            }
        }
        cache.stats().moved_bytes - before
    };
    let moved = refuse(&mut session);
    assert_eq!(moved, 0, "no item was removed, so that moving frees nothing");

    // A few segments have removed bytes now. Their items move once.
    for number in (0..stored).step_by(16) {
        assert!(session.guard().remove(&number.to_le_bytes()));
    }
    let (first, second) = (refuse(&mut session), refuse(&mut session));
    // The other item of each such segment, with its key and header.
    let limit = stored.div_ceil(16) * (LEN as u64 + 100);
    assert!((1..=limit).contains(&first), "{first} bytes were moved, of {limit}");
    assert_eq!(second, 0, "the segments are full again");
    for number in (0..stored).filter(|number| number % 16 != 0) {
        let guard = session.guard();
        let item = guard.get(&number.to_le_bytes()).expect("nothing is evicted");
        assert!(item.value() == value(number, LEN), "{number}");
    }
}

#[test]
fn overwriting_takes_no_more_memory() {
    for eviction in [Eviction::None, Eviction::S3Fifo] {
        let cache = cache(eviction);
        let mut session = cache.session().expect("a session");
        in_short_guards(&mut session, 0..1_000_000, |guard, number| {
            let key = (number * 7919 % 50_000).to_le_bytes();
            let len = 20 + number as usize % 200;
            guard.set(&key, &value(number, len), &Write::new()).map(drop).expect("room");
        });
        let stats = cache.stats();
        assert_eq!((stats.items, stats.evicted), (50_000, 0), "{eviction:?}: {stats:?}");
        let guard = session.guard();
        for number in 950_000..1_000_000_u64 {
            let item = guard.get(&(number * 7919 % 50_000).to_le_bytes()).expect("there");
            assert_eq!(item.value(), value(number, 20 + number as usize % 200));
        }
    }
}

/// Several items of a few bytes share a removed bit; some of them are removed and others are not.
#[test]
fn short_items_stay_when_their_neighbours_are_overwritten() {
    const KEYS: u64 = 300_000;
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    let mut last = vec![0_u32; KEYS as usize];
    let mut random = Random::new(1);
    in_short_guards(&mut session, 0..3_000_000, |guard, number| {
        let key = if number < KEYS { number } else { random.below(KEYS) };
        last[key as usize] = number as u32;
        let (key, value) = ((key as u32).to_le_bytes(), (number as u32).to_le_bytes());
        guard.set(&key, &value, &Write::new()).map(drop).expect("room");
    });
    assert!(cache.stats().moved_bytes > 0, "segments were reclaimed");
    let guard = session.guard();
    for (key, last) in (0..KEYS as u32).zip(last) {
        let item = guard.get(&key.to_le_bytes()).expect("it is still there");
        assert_eq!(item.value(), last.to_le_bytes());
    }
}

#[test]
fn expired_items_are_removed_before_others_are_evicted() {
    let cache = cache(Eviction::None);
    let mut session = cache.session().expect("a session");
    in_short_guards(&mut session, 0..1_000_000, |guard, number| {
        // Expires at once.
        let write = Write::new().expires_in_ms(0);
        guard.set(&number.to_le_bytes(), &value(number, 100), &write).map(drop).expect("room");
    });
    assert!(cache.stats().expired > 800_000);
}

#[test]
fn reserved_memory_is_returned_to_the_system() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let mut fill = |from: u64| {
        in_short_guards(&mut session, from..from + 200_000, |guard, number| {
            guard.set(&number.to_le_bytes(), &[0; 100], &Write::new()).map(drop).expect("room");
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

/// Regression test: one session was reclaiming a segment, a few items at a time. Another session
/// emptied it and it was reused. The first one continued in the middle of the new items.
#[test]
fn reclaiming_a_segment_stops_when_it_is_reused() {
    let cache = cache(Eviction::S3Fifo);
    let [mut one, mut other] = [(); 2].map(|()| cache.session().expect("a session"));
    for round in 0..40_u64 {
        let numbers = |part: u64, count: u64| {
            let first = (round * 2 + part) << 32;
            first..first + count
        };
        // Until memory is short, and some more: a victim is left half processed.
        in_short_guards(&mut one, numbers(0, 130_000 + round * 61), |guard, number| {
            guard
                .set(&number.to_le_bytes(), &value(number, 100), &Write::new())
                .map(drop)
                .expect("room");
        });
        other.guard().clear();
        // Other lengths, so that items start at other addresses.
        let len = 20 + round as usize * 3;
        in_short_guards(&mut other, numbers(1, 60_000), |guard, number| {
            guard
                .set(&number.to_le_bytes(), &value(number, len), &Write::new())
                .map(drop)
                .expect("room");
        });
        let guard = other.guard();
        for number in numbers(1, 60_000) {
            if let Some(item) = guard.get(&number.to_le_bytes()) {
                assert_eq!(item.value(), value(number, len));
            }
        }
    }
}

/// A conditional write that another session precedes is written again, at the same address. The
/// item exists, and is evicted like others.
#[test]
fn an_item_rewritten_at_its_address_is_evicted_like_others() {
    let cache = cache(Eviction::S3Fifo);
    let mut session = cache.session().expect("a session");
    let keys = 0..200_u64;
    in_short_guards(&mut session, keys.clone(), |guard, number| {
        let key = number.to_le_bytes();
        let mut tries = 0;
        let stored = guard.set_by(&key, &value(number, 5000), |_| {
            tries += 1;
            if tries == 1 {
                guard.set(&key, b"faster", &Write::new()).map(drop).expect("room");
            }
            (Some(Write::new()), ())
        });
        stored.expect("room");
        assert_eq!(tries, 2);
    });
    in_short_guards(&mut session, 1000..100_000, |guard, number| {
        assert!(guard.set(&number.to_le_bytes(), &value(number, 1000), &Write::new()).is_ok());
    });
    let guard = session.guard();
    assert_eq!(keys.filter(|number| guard.peek(&number.to_le_bytes()).is_some()).count(), 0);
}
