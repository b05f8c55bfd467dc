//! Synthetic traces. The same seed generates the same trace.

use super::trace::{Recorder, Trace};
use nuthatch_bench::{Distribution, Draws, Random};

/// Bytes of a key, and of a value in traces with items of one size.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: u32 = 1008;

/// Bytes of an item: key and value.
const ITEM_BYTES: u64 = KEY_BYTES as u64 + VALUE_BYTES as u64;

/// Distinct keys of a skewed trace per item that fits into the budget.
const KEYS_PER_ITEM: u32 = 4;

/// Parameters of the log-normal distribution of value sizes, in bytes. Sizes are clamped to the
/// minimum and maximum.
const SIZE_MEDIAN: f64 = 512.0;
const SIZE_SPREAD: f64 = 1.5;
const MIN_SIZE: f64 = 64.0;
const MAX_SIZE: f64 = 65_536.0;
/// Approximate mean of the value sizes, in bytes.
const SIZE_MEAN: u64 = 1_500;

/// Number of requests after which the drifting trace adds a new most popular key.
const REQUESTS_PER_NEW_KEY: usize = 32;

/// Number of popularity phases of the shifting trace. Each phase gives the ranks to other keys.
const PHASES: usize = 4;

/// The kind of a generated trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Requests the key of rank r with a probability proportional to 1 / r^exponent.
    Zipf(f64),
    /// A Zipf trace with exponent 1, interrupted by scans over keys that are requested only once.
    Scan,
    /// A repeated scan over all keys, which need slightly more memory than the budget.
    Loop,
    /// A Zipf trace with exponent 1, in which the popular keys change at every phase.
    Shift,
    /// A Zipf trace with exponent 1, in which new keys become popular continuously and old ones
    /// fade.
    Drift,
    /// A Zipf trace with exponent 0.9 and values from 64 bytes to 64 KiB.
    Sizes,
}

/// All kinds of traces, with their names.
pub(crate) const KINDS: [(&str, Kind); 10] = [
    ("zipf-0.8", Kind::Zipf(0.8)),
    ("zipf-0.9", Kind::Zipf(0.9)),
    ("zipf-1.0", Kind::Zipf(1.0)),
    ("zipf-1.1", Kind::Zipf(1.1)),
    ("zipf-1.2", Kind::Zipf(1.2)),
    ("zipf-scan", Kind::Scan),
    ("loop", Kind::Loop),
    ("shift", Kind::Shift),
    ("drift", Kind::Drift),
    ("sizes", Kind::Sizes),
];

/// The parameters of a generated trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Number of requests.
    pub(crate) requests: usize,
    /// The memory budget in bytes for which the trace is generated.
    pub(crate) memory: u64,
    pub(crate) seed: u64,
}

impl Plan {
    /// Returns the number of items that fit into the budget without any overhead. A cache holds
    /// fewer.
    fn room(&self) -> u32 {
        (self.memory / ITEM_BYTES).min(u64::from(u32::MAX / KEYS_PER_ITEM)) as u32
    }

    pub(crate) fn trace(&self, name: &str, kind: Kind) -> Trace {
        let mut recorder = Recorder::default();
        let room = self.room();
        let keys = room * KEYS_PER_ITEM;
        let draws = |exponent, keys| Draws::new(Distribution::Zipf(exponent), keys, self.seed);
        let mut add = |number: u64, bytes| _ = recorder.push(&key(number), bytes);
        match kind {
            Kind::Zipf(exponent) => {
                let mut draws = draws(exponent, keys);
                (0..self.requests).for_each(|_| add(u64::from(draws.draw()), VALUE_BYTES));
            }
            Kind::Scan => {
                let mut draws = draws(1.0, keys);
                // A skewed phase has four times as many requests as the scan after it.
                let (skewed, pass) = (4 * room as usize, room as usize);
                for at in 0..self.requests {
                    let scanned = at % (skewed + pass) >= skewed;
                    let number = if scanned { at as u64 + (1 << 32) } else { draws.draw().into() };
                    add(number, VALUE_BYTES);
                }
            }
            Kind::Loop => (0..self.requests).for_each(|at| {
                add(at as u64 % u64::from(room.max(1)), VALUE_BYTES);
            }),
            Kind::Shift => {
                let mut draws = draws(1.0, keys);
                let shift = |at: usize| (at * PHASES / self.requests) as u64;
                let of = |key: u32, at| {
                    (u64::from(key) + shift(at) * u64::from(keys) / PHASES as u64) % u64::from(keys)
                };
                (0..self.requests).for_each(|at| add(of(draws.draw(), at), VALUE_BYTES));
            }
            Kind::Drift => {
                let mut draws = draws(1.0, keys);
                // The newest key has rank 0. Each new key increases the rank of all older keys by
                // one.
                let newest = |at: usize| u64::from(keys) + (at / REQUESTS_PER_NEW_KEY) as u64;
                let of = |rank: u32, at| newest(at) - u64::from(rank);
                (0..self.requests).for_each(|at| add(of(draws.rank(), at), VALUE_BYTES));
            }
            Kind::Sizes => {
                let keys =
                    (u64::from(KEYS_PER_ITEM) * self.memory / SIZE_MEAN).min(u32::MAX.into());
                let mut draws = draws(0.9, keys as u32);
                (0..self.requests).for_each(|_| {
                    let number = u64::from(draws.draw());
                    add(number, mixed_size(number, self.seed));
                });
            }
        }
        recorder.finish(name.to_owned())
    }
}

/// Returns the value size of a key, in bytes.
fn mixed_size(number: u64, seed: u64) -> u32 {
    let mut random = Random::new(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    // The Box-Muller transform: two uniform numbers give one normally distributed number.
    let (radius, turn) = (1.0 - random.fraction(), random.fraction());
    let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos();
    let bytes = (SIZE_MEDIAN.ln() + SIZE_SPREAD * normal).exp();
    #[expect(clippy::cast_sign_loss, reason = "clamped to positive sizes")]
    let bytes = bytes.clamp(MIN_SIZE, MAX_SIZE) as u32;
    bytes
}

fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"key:000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan { requests: 20_000, memory: 1024 * 1000, seed: 7 };

    fn made(name: &str) -> Trace {
        let (name, kind) = KINDS.into_iter().find(|(known, _)| *known == name).expect("a kind");
        PLAN.trace(name, kind)
    }

    /// Returns the most requested item of a part of a trace, and its number of requests.
    fn most_requested(requests: &[u32]) -> (u32, usize) {
        let mut counts = std::collections::HashMap::new();
        for item in requests {
            *counts.entry(*item).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|(item, count)| (*count, *item)).expect("a request")
    }

    #[test]
    fn the_seed_determines_the_trace() {
        for (name, kind) in KINDS {
            let (one, other) = (made(name), made(name));
            assert_eq!(one.requests, other.requests, "{name}");
            assert_eq!(one.requests.len(), PLAN.requests, "{name}");
            assert_eq!(one.items.len(), other.items.len(), "{name}");
            let third = Plan { seed: 8, ..PLAN }.trace(name, kind);
            assert_eq!(one.requests == third.requests, kind == Kind::Loop, "{name}");
            assert_eq!(one.items.are_alike(), kind != Kind::Sizes, "{name}");
        }
    }

    #[test]
    fn skewed_traces_have_fewer_keys() {
        let keys: Vec<_> = KINDS[..5].iter().map(|(name, _)| made(name).items.len()).collect();
        assert!(keys.is_sorted_by(|one, next| one > next), "{keys:?}");
    }

    #[test]
    fn scans_request_each_key_once() {
        let trace = made("zipf-scan");
        let scanned = &trace.requests[4000..5000];
        assert!(scanned.is_sorted_by(|one, next| one + 1 == *next));
        let again = trace.requests.iter().filter(|item| scanned.contains(item)).count();
        assert_eq!(again, 1000);
    }

    #[test]
    fn a_loop_requests_all_keys_in_order() {
        let trace = made("loop");
        assert_eq!(trace.items.len(), 1000);
        assert!(trace.requests.iter().zip((0..1000).cycle()).all(|(item, at)| *item == at));
    }

    #[test]
    fn popular_keys_change() {
        for name in ["shift", "drift"] {
            let requests = made(name).requests;
            let [first, last] = [&requests[..5000], &requests[15_000..]].map(most_requested);
            assert_ne!(first.0, last.0, "{name}");
        }
        let requests = made("zipf-1.0").requests;
        assert_eq!(most_requested(&requests[..5000]).0, most_requested(&requests[15_000..]).0);
    }

    #[test]
    fn sizes_are_spread_around_their_median() {
        let sizes: Vec<u32> = (0..10_000).map(|number| mixed_size(number, 1)).collect();
        let below = sizes.iter().filter(|size| f64::from(**size) < SIZE_MEDIAN).count();
        assert!((4_800..5_200).contains(&below), "{below}");
        let mean = sizes.iter().map(|size| u64::from(*size)).sum::<u64>() / 10_000;
        assert!((SIZE_MEAN * 9 / 10..SIZE_MEAN * 11 / 10).contains(&mean), "{mean}");
        assert!(sizes.iter().all(|size| (64..=65_536).contains(size)));
    }
}
