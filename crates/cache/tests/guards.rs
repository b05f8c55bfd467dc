//! Writers that find no memory while another session holds a guard.

use nuthatch_cache::{Cache, Error, Eviction, Options, Session, Write};
use std::thread;
use std::time::Duration;

const MEMORY: u64 = 64 << 20;
const LARGE: usize = 4 << 20;

/// Makes a test fail instead of hang if a guard never ends.
const PATIENCE: Duration = Duration::from_mins(2);

fn cache(guard_wait: Duration) -> Cache {
    let options = Options::new().memory(MEMORY).eviction(Eviction::S3Fifo);
    Cache::new(options.guard_wait(guard_wait)).expect("a cache")
}

fn set(session: &mut Session<'_>, number: u64, len: usize) -> Result<(), Error> {
    let mut guard = session.guard();
    let set = |guard: &nuthatch_cache::Guard<'_>| {
        guard.set(&number.to_le_bytes(), &vec![7; len], &Write::new()).map(drop)
    };
    match set(&guard) {
        Err(Error::Full) if guard.renew() => set(&guard),
        result => result,
    }
}

/// Fills the cache with large items, in the order of their numbers.
fn fill(session: &mut Session<'_>) {
    for number in 0..40 {
        set(session, number, LARGE).expect("no session holds a guard");
    }
}

/// A guard keeps all memory that eviction frees, until a writer waits for it.
#[test]
fn a_write_waits_until_another_session_ends_its_guard() {
    let cache = cache(PATIENCE);
    let mut reader = cache.session().expect("a session");
    fill(&mut reader);
    thread::scope(|scope| {
        let guard = reader.guard();
        let item = guard.get(&39_u64.to_le_bytes()).expect("the newest is there");
        let writer = scope.spawn(|| {
            let mut session = cache.session().expect("a session");
            // More than fits without the memory that the guard keeps.
            (100..120).try_for_each(|number| set(&mut session, number, LARGE))
        });
        while cache.stats().guard_waits == 0 {
            assert!(!writer.is_finished(), "it cannot have memory yet");
            thread::yield_now();
        }
        assert!(item.value().iter().all(|byte| *byte == 7), "what a guard keeps stays as it is");
        drop(guard);
        writer.join().expect("no panic").expect("room");
    });
    assert!(cache.stats().memory <= MEMORY);
}

#[test]
fn a_write_fails_if_a_guard_is_held_for_longer_than_it_waits() {
    let cache = cache(Duration::from_millis(1));
    let mut reader = cache.session().expect("a session");
    fill(&mut reader);
    let guard = reader.guard();
    let mut session = cache.session().expect("a session");
    let failed = (100..120).find_map(|number| set(&mut session, number, LARGE).err());
    assert!(matches!(failed, Some(Error::Full)), "{failed:?}");
    assert!(cache.stats().guard_waits > 0);
    // Items can be read meanwhile, and writes succeed later.
    assert!(session.guard().get(&39_u64.to_le_bytes()).is_none_or(|item| item.value()[0] == 7));
    drop(guard);
    (100..120).for_each(|number| set(&mut session, number, LARGE).expect("room"));
}
