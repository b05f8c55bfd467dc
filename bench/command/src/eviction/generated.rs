//! Traces that are made, the same for the same seed.

use super::trace::{Recorder, Trace};
use nuthatch_bench::{Distribution, Draws, Random};

/// Bytes of a key and of a value, where all are alike.
const KEY_BYTES: usize = 16;
const VALUE_BYTES: u32 = 1008;

/// Bytes of an item.
const ITEM_BYTES: u64 = KEY_BYTES as u64 + VALUE_BYTES as u64;

/// Keys of skewed traces, for each item that would fit if the budget held nothing else.
const KEYS_EACH: u32 = 4;

/// Values of mixed sizes: the logarithm of their bytes follows the normal law.
const SIZE_MEDIAN: f64 = 512.0;
const SIZE_SPREAD: f64 = 1.5;
const MIN_SIZE: f64 = 64.0;
const MAX_SIZE: f64 = 65_536.0;
/// About what those bytes are on average.
const SIZE_MEAN: u64 = 1_500;

/// Requests after which the ranks of all keys move on by one while popularity drifts.
const DRIFT: usize = 32;

/// How often all popularity is given out anew.
const SHIFTS: usize = 4;

/// A kind of trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// The key of rank r is asked for as often as 1 / r to this power.
    Zipf(f64),
    /// Zipf 1, and between, one pass after the other over keys that are asked for only once.
    Scan,
    /// All keys in turn, again and again, somewhat more than there is room for.
    Loop,
    /// Zipf 1, in which other keys become the popular ones from time to time.
    Shift,
    /// Zipf 1, in which new keys become popular all the time, and fade.
    Drift,
    /// Zipf 0.9 over values from 64 bytes to 64 KiB.
    Sizes,
}

/// All of them, by name.
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

/// How a trace is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Number of requests.
    pub(crate) requests: usize,
    /// The budget in bytes that it is made for.
    pub(crate) memory: u64,
    pub(crate) seed: u64,
}

impl Plan {
    /// Items that would fit if the budget held nothing else: a few more than do.
    fn room(&self) -> u32 {
        (self.memory / ITEM_BYTES).min(u64::from(u32::MAX / KEYS_EACH)) as u32
    }

    pub(crate) fn trace(&self, name: &str, kind: Kind) -> Trace {
        let mut recorder = Recorder::default();
        let room = self.room();
        let keys = room * KEYS_EACH;
        let draws = |exponent, keys| Draws::new(Distribution::Zipf(exponent), keys, self.seed);
        let mut add = |number: u64, bytes| _ = recorder.push(&key(number), bytes);
        match kind {
            Kind::Zipf(exponent) => {
                let mut draws = draws(exponent, keys);
                (0..self.requests).for_each(|_| add(u64::from(draws.draw()), VALUE_BYTES));
            }
            Kind::Scan => {
                let mut draws = draws(1.0, keys);
                // Four times the room of Zipf, then a pass over as much as the room.
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
                let shift = |at: usize| (at * SHIFTS / self.requests) as u64;
                let of = |key: u32, at| {
                    (u64::from(key) + shift(at) * u64::from(keys) / SHIFTS as u64) % u64::from(keys)
                };
                (0..self.requests).for_each(|at| add(of(draws.draw(), at), VALUE_BYTES));
            }
            Kind::Drift => {
                let mut draws = draws(1.0, keys);
                // The newest of all has the first rank; what had a rank has a later one next.
                let newest = |at: usize| u64::from(keys) + (at / DRIFT) as u64;
                let of = |rank: u32, at| newest(at) - u64::from(rank);
                (0..self.requests).for_each(|at| add(of(draws.rank(), at), VALUE_BYTES));
            }
            Kind::Sizes => {
                let keys = (u64::from(KEYS_EACH) * self.memory / SIZE_MEAN).min(u32::MAX.into());
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

/// Bytes of a key's value.
fn mixed_size(number: u64, seed: u64) -> u32 {
    let mut random = Random::new(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    // Box and Muller's way from two even numbers to a normal one.
    let (radius, turn) = (1.0 - random.fraction(), random.fraction());
    let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos();
    let bytes = (SIZE_MEDIAN.ln() + SIZE_SPREAD * normal).exp();
    #[expect(clippy::cast_sign_loss, reason = "clamped to what is above zero")]
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

    /// How often the item that is asked for most is asked for, in part of a trace.
    fn favourite(requests: &[u32]) -> (u32, usize) {
        let mut counts = std::collections::HashMap::new();
        for item in requests {
            *counts.entry(*item).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|(item, count)| (*count, *item)).expect("a request")
    }

    #[test]
    fn the_seed_decides_all() {
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
    fn the_more_skewed_a_trace_the_fewer_its_keys() {
        let keys: Vec<_> = KINDS[..5].iter().map(|(name, _)| made(name).items.len()).collect();
        assert!(keys.is_sorted_by(|one, next| one > next), "{keys:?}");
    }

    #[test]
    fn passes_meet_each_key_once() {
        let trace = made("zipf-scan");
        let scanned = &trace.requests[4000..5000];
        assert!(scanned.is_sorted_by(|one, next| one + 1 == *next));
        let again = trace.requests.iter().filter(|item| scanned.contains(item)).count();
        assert_eq!(again, 1000);
    }

    #[test]
    fn a_loop_asks_for_all_in_turn() {
        let trace = made("loop");
        assert_eq!(trace.items.len(), 1000);
        assert!(trace.requests.iter().zip((0..1000).cycle()).all(|(item, at)| *item == at));
    }

    #[test]
    fn popularity_moves_on() {
        for name in ["shift", "drift"] {
            let requests = made(name).requests;
            let [first, last] = [&requests[..5000], &requests[15_000..]].map(favourite);
            assert_ne!(first.0, last.0, "{name}");
        }
        let requests = made("zipf-1.0").requests;
        assert_eq!(favourite(&requests[..5000]).0, favourite(&requests[15_000..]).0);
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
