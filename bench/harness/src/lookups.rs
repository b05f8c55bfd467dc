//! The keys of lookups, in a random order that is the same in every run.

use crate::random::{Random, SEED};
use crate::rows::Texts;

/// Maximum number of lookups in a round. They are drawn from all keys, so they reach all parts of a
/// larger store.
const MAX_LOOKUPS: u32 = 4_000_000;

/// The keys of one round, generated before the clock starts.
#[derive(Debug)]
pub struct Lookups {
    hits: Texts,
    misses: Texts,
}

/// The keys of [`Lookups`], as slices of bytes.
#[derive(Clone, Debug)]
pub struct Keys<'a> {
    /// Keys that are present.
    pub hits: Vec<&'a [u8]>,
    /// The same number of absent keys. Each differs from a present key only in its last character,
    /// so that a tree must descend to its leaves.
    pub misses: Vec<&'a [u8]>,
}

impl Lookups {
    /// Returns lookups in [`Rows::of_texts`](crate::Rows::of_texts).
    pub fn in_texts(rows: u32) -> Self {
        let hits = Texts::numbered("key", drawn(rows, MAX_LOOKUPS));
        let mut misses = Texts::default();
        for hit in (0..hits.len()).map(|at| hits.get(at)) {
            let (digits, last) = hit.split_at(hit.len() - 1);
            misses.push(&[digits, letter(last)]);
        }
        Self { hits, misses }
    }

    /// Returns lookups in [`Rows::of_vectors`](crate::Rows::of_vectors).
    pub fn in_vectors(rows: u32) -> Self {
        Self { hits: Texts::numbered("vec", drawn(rows, MAX_LOOKUPS)), misses: Texts::default() }
    }

    /// Returns the keys as bytes.
    pub fn keys(&self) -> Keys<'_> {
        Keys { hits: self.hits.bytes().collect(), misses: self.misses.bytes().collect() }
    }
}

/// Returns the letter that replaces a digit.
fn letter(digit: &str) -> &'static str {
    const LETTERS: &str = "abcdefghij";
    let at = digit.parse().unwrap_or(0);
    &LETTERS[at..=at]
}

/// Returns at most `max_count` of the numbers below `count`, distinct and in random order.
fn drawn(count: u32, max_count: u32) -> Vec<u32> {
    let mut random = Random::new(SEED);
    let mut numbers: Vec<u32> = (0..count).collect();
    let take = count.min(max_count);
    for at in 0..take {
        let other = at + random.below(count - at);
        numbers.swap(at as usize, other as usize);
    }
    numbers.truncate(take as usize);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_drawn_once_each_and_out_of_order() {
        let numbers = drawn(1000, 1000);
        assert!(!numbers.is_sorted());
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..1000));
        assert_eq!(drawn(1000, 1000), numbers, "the same in every run");
    }

    #[test]
    fn a_part_is_drawn_from_all_numbers() {
        let numbers = drawn(1000, 100);
        assert_eq!(numbers.len(), 100);
        assert!(numbers.iter().any(|number| *number >= 900));
    }

    #[test]
    fn misses_differ_from_hits_in_the_last_character() {
        let lookups = Lookups::in_texts(20);
        let keys = lookups.keys();
        assert_eq!((keys.hits.len(), keys.misses.len()), (20, 20));
        for (hit, miss) in keys.hits.iter().zip(&keys.misses) {
            let last = hit.len() - 1;
            assert_eq!(hit[..last], miss[..last]);
            assert_eq!(miss[last], hit[last] - b'0' + b'a');
        }
    }
}
