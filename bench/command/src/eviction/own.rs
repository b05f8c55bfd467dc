//! Replays a trace against Nuthatch's cache in this process.

use super::trace::Trace;
use nuthatch_cache::{Cache, Error, Options, Result, Session, Write};

/// Lookups per epoch guard. A server executes batches of about this size.
const LOOKUPS_PER_GUARD: usize = 64;

/// Number of times that the held bytes are measured, evenly spaced over the second half of a trace.
const SAMPLES: usize = 4;

/// The result of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Replayed {
    /// Number of lookups that missed.
    pub(crate) misses: u64,
    /// Maximum of the measured bytes of keys and values in the cache.
    pub(crate) held_bytes: u64,
}

/// Looks up every item of a trace, and stores each item that is absent. Reports the number of
/// completed requests to `tick`.
pub(crate) fn replay(
    trace: &Trace,
    memory: u64,
    seed: u64,
    tick: impl Fn(usize),
) -> Result<Replayed> {
    let cache = Cache::new(Options::new().memory(memory).seed(seed))?;
    let mut session = cache.session()?;
    let values = vec![b'v'; trace.items.max_value_bytes()];
    let (mut misses, mut held) = (0, 0);
    // The first half of the trace fills the cache.
    let parts = trace.requests.chunks(trace.requests.len().div_ceil(2 * SAMPLES).max(1));
    for (number, part) in parts.enumerate() {
        for requests in part.chunks(LOOKUPS_PER_GUARD) {
            let guard = session.guard();
            for item in requests {
                let key = trace.items.key(*item);
                if guard.get(key).is_some() {
                    continue;
                }
                misses += 1;
                let value = &values[..trace.items.value_bytes(*item)];
                match guard.set(key, value, &Write::new()) {
                    // An item that the cache cannot store misses again at its next request.
                    Ok(_) | Err(Error::TooLong { .. } | Error::Full) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        tick(part.len());
        if number >= SAMPLES {
            held = held_bytes(trace, &mut session).max(held);
        }
    }
    // A short trace has fewer parts than [`SAMPLES`].
    let held_bytes = held_bytes(trace, &mut session).max(held);
    Ok(Replayed { misses, held_bytes })
}

/// Returns the bytes of all keys and values in the cache.
fn held_bytes(trace: &Trace, session: &mut Session<'_>) -> u64 {
    let items: Vec<u32> = (0..trace.items.len() as u32).collect();
    let mut bytes = 0;
    for items in items.chunks(LOOKUPS_PER_GUARD) {
        let guard = session.guard();
        let there = items.iter().filter(|item| guard.peek(trace.items.key(**item)).is_some());
        bytes += there.map(|item| trace.items.bytes(*item)).sum::<u64>();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::generated::{Kind, Plan};
    use super::super::trace::Recorder;
    use super::*;

    const MEMORY: u64 = 16 << 20;

    #[test]
    fn items_that_fit_miss_once() {
        let plan = Plan { requests: 100_000, memory: 1 << 20, seed: 1 };
        let trace = plan.trace("zipf", Kind::Zipf(1.0));
        let replayed = replay(&trace, MEMORY, 1, |_| {}).expect("a replay");
        let items = trace.items.len() as u64;
        assert_eq!(replayed, Replayed { misses: items, held_bytes: items * 1024 });
    }

    #[test]
    fn items_are_evicted_to_stay_within_the_budget() {
        let plan = Plan { requests: 300_000, memory: MEMORY, seed: 1 };
        let trace = plan.trace("zipf", Kind::Zipf(0.8));
        let ticked = std::cell::Cell::new(0);
        let tick = |done| ticked.set(ticked.get() + done);
        let replayed = replay(&trace, MEMORY, 1, tick).expect("a replay");
        assert!(replayed.misses > trace.items.len() as u64, "{replayed:?}");
        assert!((MEMORY / 2..MEMORY).contains(&replayed.held_bytes), "{replayed:?}");
        assert_eq!(ticked.get(), 300_000);
    }

    #[test]
    fn items_that_are_too_large_always_miss() {
        let mut recorder = Recorder::default();
        (0..3).for_each(|_| assert!(recorder.push(b"huge", 20 << 20)));
        let trace = recorder.finish("huge".to_owned());
        let replayed = replay(&trace, MEMORY, 1, |_| {}).expect("a replay");
        assert_eq!(replayed, Replayed { misses: 3, held_bytes: 0 });
    }
}
