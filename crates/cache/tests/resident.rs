//! The budget limits the memory that the process has from the system, not only what is counted.
//! These tests run in a process of their own, since they measure all caches of the process.

use nuthatch_cache::{Cache, Error, Options, Prefill, Session, Write};
use std::sync::Arc;

const MEMORY: u64 = 64 << 20;

/// A huge page that is not full yet, and the ends of others.
const SLACK: u64 = 5 << 20;

/// Returns the bytes of memory of all caches. Their ranges are those for which huge pages are
/// enabled or disabled and that core dumps include, unlike those of sanitizers.
fn resident() -> u64 {
    let smaps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let (mut kib, mut all, mut known) = (0, 0, false);
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("Rss:") => kib = words.next().and_then(|kib| kib.parse().ok()).expect("a number"),
            Some("VmFlags:") => {
                let flags: Vec<_> = words.collect();
                if flags.iter().any(|flag| ["hg", "nh"].contains(flag)) && !flags.contains(&"dd") {
                    all += kib << 10;
                    known = true;
                }
            }
            _ => {}
        }
    }
    assert!(known, "a kernel with huge pages");
    all
}

fn store(session: &mut Session<'_>, number: u64, value: &[u8]) {
    let mut guard = session.guard();
    let key = number.to_le_bytes();
    match guard.set(&key, value, &Write::new()) {
        Err(Error::Full) if guard.renew() => {
            guard.set(&key, value, &Write::new()).map(drop).expect("room");
        }
        other => other.map(drop).expect("room"),
    }
}

/// Stores one value in pieces, and drops another one incomplete.
fn store_pending(cache: &Arc<Cache>, session: &mut Session<'_>, value: &[u8]) {
    for stored in [value.len(), value.len() / 2] {
        let mut guard = session.guard();
        let mut pending = guard.begin_value(cache, 8, value.len()).expect("few others");
        let mut done = 0;
        while done < stored {
            match pending.push(&guard, &value[done..stored.min(done + (1 << 20))]) {
                Ok(len) => done += len,
                Err(error) => assert!(guard.renew(), "{error}"),
            }
        }
        if let Some(value) = pending.value() {
            guard.set(b"pending", value, &Write::new()).map(drop).expect("no room is needed");
        }
    }
}

#[test]
fn the_memory_of_the_process_is_within_the_budget() {
    for has_ahead in [false, true] {
        what_a_cache_takes_is_within_its_budget(has_ahead);
    }
    huge_pages_are_returned_to_the_system();
    what_items_take_does_not_depend_on_the_budget();
}

fn check(what: &str, most: u64) {
    let taken = resident();
    assert!(taken <= most + SLACK, "{what}: {taken} bytes");
}

fn what_a_cache_takes_is_within_its_budget(has_ahead: bool) {
    let longest = vec![7; MEMORY as usize / 8 * 5];
    let cache = Arc::new(Cache::new(Options::new().memory(MEMORY)).expect("a cache"));
    let _ahead = has_ahead.then(|| Prefill::start(&cache).expect("a thread"));
    let mut session = cache.session().expect("a session");
    for round in 0..3_u64 {
        // Ordinary items take all memory.
        for number in 0..400_000 {
            store(&mut session, round << 40 | number, &longest[..150]);
        }
        check("ordinary items", MEMORY);
        assert!(resident() > MEMORY / 2, "this measures the memory of the cache");
        // Large items take it from them.
        for number in 0..500_u64 {
            let len = 140_000 + (number * 7_919_333) as usize % (20 << 20);
            store(&mut session, number % 50, &longest[..len]);
            if number % 3 == 0 {
                session.guard().remove(&(number * 7 % 50).to_le_bytes());
            }
            check("large items", MEMORY);
        }
        store(&mut session, 0, &longest[..cache.max_value_len()]);
        check("the largest", MEMORY);
        store_pending(&cache, &mut session, &longest[..cache.max_value_len()]);
        check("the largest, received in pieces", MEMORY);
        // Reservations take more and more.
        for part in [0, MEMORY / 4, MEMORY / 2, MEMORY / 4 * 3, 0] {
            cache.reserve(part);
            for number in 0..2_000 {
                store(&mut session, 1 << 60 | number, &longest[..150]);
            }
            check("beside others", MEMORY - part);
        }
    }
    let guard = session.guard();
    guard.clear();
    drop(guard);
    (0..2000).for_each(|_| drop(session.guard()));
    assert_eq!(cache.stats().memory_large, 0);
}

/// In a cache of this size, large items have huge pages. The value itself has no pages, since
/// nothing wrote it.
fn huge_pages_are_returned_to_the_system() {
    let len = 150 << 20;
    let cache = Cache::new(Options::new().memory(2 << 30)).expect("a cache");
    let mut session = cache.session().expect("a session");
    let beside = 2 * cache.stats().memory_metadata + (8 << 20);
    for round in 0..4_u64 {
        store(&mut session, 0, &vec![0; len]);
        let replaced = if round == 0 { 0 } else { len as u64 };
        check("a huge item", len as u64 + replaced + beside);
        (0..200).for_each(|_| drop(session.guard()));
        check("a huge item alone", len as u64 + beside);
    }
    assert!(session.guard().remove(&0_u64.to_le_bytes()));
    (0..200).for_each(|_| drop(session.guard()));
    check("nothing", beside);
}

/// A cache with few items took 40 MB at a budget of 16 GiB, as its index followed the budget.
fn what_items_take_does_not_depend_on_the_budget() {
    for memory in [256 << 20, 1 << 30, 16 << 30] {
        let cache = Arc::new(Cache::new(Options::new().memory(memory)).expect("a cache"));
        let _ahead = Prefill::start(&cache).expect("a thread");
        let mut sessions = [(); 2].map(|()| cache.session().expect("a session"));
        let before = resident();
        for items in [10_000, 100_000, 1_000_000] {
            for number in cache.len()..items {
                store(&mut sessions[number as usize % 2], number, &[7; 100]);
            }
            let overhead = (resident() - before).saturating_sub(108 * items);
            let most = (4 << 20).max(16 * items);
            assert!(overhead <= most, "{items} items in {memory} bytes: {overhead} bytes");
        }
    }
}
