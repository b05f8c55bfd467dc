//! What the systems are asked: keys in an order that no cache can guess, the same in every run.

use crate::random::Random;
use crate::rows::Texts;

/// Lookups of one round at most. They are drawn from all keys, so that fewer than there are keys
/// still reach every part of a store.
const MOST: u32 = 4_000_000;

/// The keys of one round, made before any clock starts.
#[derive(Debug)]
pub struct Lookups {
    hits: Texts,
    misses: Texts,
}

/// The keys of [`Lookups`], ready to be handed to lookups.
#[derive(Clone, Debug)]
pub struct Keys<'a> {
    /// Keys that are there.
    pub hits: Vec<&'a [u8]>,
    /// As many that are not, each the same as a key that is there but for its last character: a
    /// tree has to go all the way to its leaves to know.
    pub misses: Vec<&'a [u8]>,
}

impl Lookups {
    /// Lookups in [`Rows::of_texts`](crate::Rows::of_texts).
    pub fn in_texts(rows: u32) -> Self {
        let hits = Texts::numbered("key", drawn(rows, MOST));
        let mut misses = Texts::default();
        for hit in (0..hits.len()).map(|at| hits.get(at)) {
            let (digits, last) = hit.split_at(hit.len() - 1);
            misses.push(&[digits, letter(last)]);
        }
        Self { hits, misses }
    }

    /// Lookups in [`Rows::of_vectors`](crate::Rows::of_vectors).
    pub fn in_vectors(rows: u32) -> Self {
        Self { hits: Texts::numbered("vec", drawn(rows, MOST)), misses: Texts::default() }
    }

    /// The keys as bytes.
    pub fn keys(&self) -> Keys<'_> {
        Keys { hits: self.hits.bytes().collect(), misses: self.misses.bytes().collect() }
    }
}

/// A letter for each digit.
fn letter(digit: &str) -> &'static str {
    const LETTERS: &str = "abcdefghij";
    let at = digit.parse().unwrap_or(0);
    &LETTERS[at..=at]
}

/// What is drawn is the same in every run.
pub(crate) const SEED: u64 = 2026;

/// At most `most` of the numbers below `count`, in random order, none twice.
fn drawn(count: u32, most: u32) -> Vec<u32> {
    let mut random = Random::new(SEED);
    let mut numbers: Vec<u32> = (0..count).collect();
    let take = count.min(most);
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
    fn misses_are_hits_but_for_the_last_character() {
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
