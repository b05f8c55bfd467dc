//! Offline optimum: a lower bound of the misses of all policies, computed from future requests.

use super::policies::{Order, count};
use super::trace::Trace;

/// The next use of an item that is not requested again.
const NEVER: u32 = u32::MAX;

/// Returns a lower bound of the misses of a cache with this capacity, in bytes of keys and values.
///
/// For items of one size, this is the exact optimum of Belady: the item with the latest next use is
/// evicted, which may be the new item itself. For items of several sizes, the exact optimum is too
/// expensive to compute. The function then returns the lower bound PFOO-L (Berger, Beckmann and
/// Harchol-Balter, "Practical bounds on optimal caching with variable object sizes", 2018).
pub(crate) fn misses(trace: &Trace, capacity: u64, tick: impl Fn(usize)) -> u64 {
    if trace.items.are_alike() {
        belady(trace, capacity, tick)
    } else {
        let misses = bound(trace, capacity);
        tick(trace.requests.len());
        misses
    }
}

/// Returns for each request the index of the next request for the same item, or [`NEVER`].
fn next_uses(trace: &Trace) -> Vec<u32> {
    let mut next = vec![NEVER; trace.items.len()];
    let mut uses = vec![NEVER; trace.requests.len()];
    for (at, item) in trace.requests.iter().enumerate().rev() {
        uses[at] = std::mem::replace(&mut next[*item as usize], at as u32);
    }
    uses
}

fn belady(trace: &Trace, capacity: u64, tick: impl Fn(usize)) -> u64 {
    let uses = next_uses(trace);
    let mut order = Order::new(trace, capacity);
    let mut misses = 0;
    for (at, item) in trace.requests.iter().enumerate() {
        let rank = (NEVER - uses[at], 0);
        if order.remove(*item) {
            order.insert(*item, rank);
        } else {
            misses += 1;
            // All items have one size, so one eviction makes enough room.
            if !order.has_room(*item)
                && let Some((first, other)) = order.first()
                && first < rank
            {
                order.remove(other);
            }
            if order.has_room(*item) {
                order.insert(*item, rank);
            }
        }
        count(at, &tick);
    }
    misses
}

/// Returns the lower bound PFOO-L. A hit occupies an item's bytes from one request to the next. The
/// bound spends the total of capacity multiplied by time on the cheapest hits. It does not require
/// that all items fit at each moment.
fn bound(trace: &Trace, capacity: u64) -> u64 {
    let requests = trace.requests.iter().zip(next_uses(trace)).enumerate();
    let mut costs: Vec<u64> = requests
        .filter(|(_, (item, next))| *next != NEVER && trace.items.bytes(**item) <= capacity)
        .map(|(at, (item, next))| trace.items.bytes(*item) * (u64::from(next) - at as u64))
        .collect();
    costs.sort_unstable();
    let mut left = u128::from(capacity) * trace.requests.len() as u128;
    let hits = costs.into_iter().take_while(|cost| {
        let fits = u128::from(*cost) <= left;
        left = left.saturating_sub(u128::from(*cost));
        fits
    });
    trace.requests.len() as u64 - hits.count() as u64
}

#[cfg(test)]
mod tests {
    use super::super::generated::{KINDS, Plan};
    use super::super::policies::{Policy, tests::letters};
    use super::*;

    #[test]
    fn belady_keeps_the_items_with_the_next_uses() {
        for (text, capacity, expected) in [
            ("", 3, 0),
            ("aaaa", 1, 1),
            ("aaaa", 0, 4),
            ("abcdabcd", 3, 5),
            // c is not admitted: the next uses of a and b come first.
            ("abcabab", 2, 3),
            // The textbook example, for which LRU has ten misses.
            ("abcdabeabcde", 3, 7),
        ] {
            let trace = letters(text);
            assert_eq!(misses(&trace, capacity, |_| {}), expected, "{text} in {capacity}");
        }
    }

    #[test]
    fn the_bound_takes_the_cheapest_hits() {
        // bAbA: the hit of b costs 1 * 2, the hit of A 3 * 2.
        for (capacity, expected) in [(0, 4), (1, 3), (2, 3), (3, 2), (4, 2)] {
            let trace = letters("bAbA");
            assert_eq!(misses(&trace, capacity, |_| {}), expected, "{capacity}");
        }
    }

    #[test]
    fn nothing_beats_the_optimum() {
        for seed in 1..4 {
            let plan = Plan { requests: 20_000, memory: 1024 * 1000, seed };
            for (name, kind) in KINDS {
                let trace = plan.trace(name, kind);
                for capacity in [50_000, 300_000, 900_000] {
                    let best = misses(&trace, capacity, |_| {});
                    assert!(bound(&trace, capacity) <= best, "{name} in {capacity}, seed {seed}");
                    for policy in [Policy::Lru, Policy::Lfu] {
                        let other = policy.misses(&trace, capacity, |_| {});
                        assert!(best <= other, "{name} in {capacity}, seed {seed}: {policy:?}");
                    }
                }
            }
        }
    }
}
