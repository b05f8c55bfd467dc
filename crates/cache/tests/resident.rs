//! The budget is what the process has of the system, not only what is counted. In a process of its
//! own, since all caches of the process are looked at.

use nuthatch_cache::{Ahead, Cache, Error, Options, Session, Write};
use std::sync::Arc;

const MEMORY: u64 = 64 << 20;

/// A huge page that is not filled yet, and the ends of others.
const SLACK: u64 = 5 << 20;

/// Bytes of memory that caches have. Their ranges are those for which huge pages are wanted, or are
/// not, and which nobody leaves out of core dumps, as sanitizers do with theirs.
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
    assert!(known, "a kernel that knows of huge pages");
    all
}

fn store(session: &mut Session<'_>, number: u64, value: &[u8]) {
    let mut turn = session.turn();
    let key = number.to_le_bytes();
    match turn.set(&key, value, &Write::new()) {
        Err(Error::Full) if turn.renew() => {
            turn.set(&key, value, &Write::new()).map(drop).expect("room");
        }
        other => other.map(drop).expect("room"),
    }
}

/// One is stored in pieces, and one is given up.
fn store_draft(cache: &Arc<Cache>, session: &mut Session<'_>, value: &[u8]) {
    for stored in [value.len(), value.len() / 2] {
        let mut turn = session.turn();
        let mut draft = turn.draft(cache, 8, value.len()).expect("few others");
        let mut done = 0;
        while done < stored {
            match draft.push(&turn, &value[done..stored.min(done + (1 << 20))]) {
                Ok(len) => done += len,
                Err(error) => assert!(turn.renew(), "{error}"),
            }
        }
        if let Some(value) = draft.value() {
            turn.set(b"draft", value, &Write::new()).map(drop).expect("no room is needed");
        }
    }
}

#[test]
fn what_the_process_takes_is_within_the_budget() {
    for has_ahead in [false, true] {
        what_a_cache_takes_is_within_its_budget(has_ahead);
    }
    huge_pages_go_back();
}

fn check(what: &str, most: u64) {
    let taken = resident();
    assert!(taken <= most + SLACK, "{what}: {taken} bytes");
}

fn what_a_cache_takes_is_within_its_budget(has_ahead: bool) {
    let longest = vec![7; MEMORY as usize / 8 * 5];
    let cache = Arc::new(Cache::new(Options::new().memory(MEMORY)).expect("a cache"));
    let _ahead = has_ahead.then(|| Ahead::start(&cache).expect("a thread"));
    let mut session = cache.session().expect("a session");
    for round in 0..5_u64 {
        // Ordinary items take all of it.
        for number in 0..400_000 {
            store(&mut session, round << 40 | number, &longest[..150]);
        }
        check("ordinary items", MEMORY);
        assert!(resident() > MEMORY / 2, "it is the right memory that is looked at");
        // Large ones take it from them.
        for number in 0..500_u64 {
            let len = 140_000 + (number * 7_919_333) as usize % (20 << 20);
            store(&mut session, number % 50, &longest[..len]);
            if number % 3 == 0 {
                session.turn().remove(&(number * 7 % 50).to_le_bytes());
            }
            check("large items", MEMORY);
        }
        store(&mut session, 0, &longest[..cache.value_most()]);
        check("the largest", MEMORY);
        store_draft(&cache, &mut session, &longest[..cache.value_most()]);
        check("the largest, in pieces", MEMORY);
        // Others take more and more.
        for part in [0, MEMORY / 4, MEMORY / 2, MEMORY / 4 * 3, 0] {
            cache.reserve(part);
            for number in 0..2_000 {
                store(&mut session, 1 << 60 | number, &longest[..150]);
            }
            check("beside others", MEMORY - part);
        }
    }
    let turn = session.turn();
    turn.clear();
    drop(turn);
    (0..2000).for_each(|_| drop(session.turn()));
    assert_eq!(cache.stats().memory_large, 0);
}

/// In a cache this large, large items have huge pages. The value has no pages of its own: nobody
/// wrote it.
fn huge_pages_go_back() {
    let len = 150 << 20;
    let cache = Cache::new(Options::new().memory(2 << 30)).expect("a cache");
    let mut session = cache.session().expect("a session");
    let beside = 2 * cache.stats().memory_beside + (8 << 20);
    for round in 0..4_u64 {
        store(&mut session, 0, &vec![0; len]);
        let replaced = if round == 0 { 0 } else { len as u64 };
        check("a huge item", len as u64 + replaced + beside);
        (0..200).for_each(|_| drop(session.turn()));
        check("a huge item alone", len as u64 + beside);
    }
    assert!(session.turn().remove(&0_u64.to_le_bytes()));
    (0..200).for_each(|_| drop(session.turn()));
    check("nothing", beside);
}
