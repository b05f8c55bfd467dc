//! Sets of slots.

use super::SLOTS;
use crate::text::InvalidText;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

const WORDS: usize = SLOTS / 64;

/// A set of slots: a bitmap of 2 KiB.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet {
    words: Box<[u64; WORDS]>,
}

/// Adjacent slots, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// The first slot.
    pub first: u16,
    /// The last slot.
    pub last: u16,
}

impl SlotRange {
    /// Iterates over the slots.
    pub fn slots(self) -> impl Iterator<Item = u16> {
        self.first..=self.last
    }

    /// Returns the slots as indexes.
    #[must_use]
    pub fn indexes(self) -> RangeInclusive<usize> {
        usize::from(self.first)..=usize::from(self.last)
    }
}

impl SlotSet {
    /// Returns a set without slots.
    #[must_use]
    pub fn new() -> Self {
        Self { words: Box::new([0; WORDS]) }
    }

    /// Returns the set of all slots.
    #[must_use]
    pub fn all() -> Self {
        Self { words: Box::new([u64::MAX; WORDS]) }
    }

    /// Adds a slot.
    ///
    /// # Panics
    ///
    /// If `slot` is not below 16,384, as in all functions of a set.
    pub fn insert(&mut self, slot: u16) {
        self.words[usize::from(slot) / 64] |= bit(slot);
    }

    /// Removes a slot.
    pub fn remove(&mut self, slot: u16) {
        self.words[usize::from(slot) / 64] &= !bit(slot);
    }

    /// Returns whether the set has a slot.
    #[must_use]
    pub fn contains(&self, slot: u16) -> bool {
        self.words[usize::from(slot) / 64] & bit(slot) != 0
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns whether the set has no slots.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the set as a bitmap: slot 64 i + j is bit j of word i.
    #[must_use]
    pub fn words(&self) -> &[u64; SLOTS / 64] {
        &self.words
    }

    /// Returns whether both sets have a slot in common.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(other.words.iter()).any(|(one, other)| one & other != 0)
    }

    /// Adds all slots of another set.
    pub fn add(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(other.words.iter()) {
            *word |= other;
        }
    }

    /// Removes all slots of another set.
    pub fn subtract(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(other.words.iter()) {
            *word &= !other;
        }
    }

    /// Returns the slots that both sets have.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        let mut common = self.clone();
        for (word, other) in common.words.iter_mut().zip(other.words.iter()) {
            *word &= other;
        }
        common
    }

    /// Iterates over the slots in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(self.words.iter()).flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let low = rest.trailing_zeros() as u16;
                let has_slot = rest != 0;
                rest &= rest.wrapping_sub(1);
                has_slot.then_some(index * 64 + low)
            })
        })
    }

    /// Iterates over the ranges of adjacent slots in ascending order, each as long as possible.
    pub fn ranges(&self) -> impl Iterator<Item = SlotRange> + '_ {
        let mut slots = self.iter().peekable();
        std::iter::from_fn(move || {
            let first = slots.next()?;
            let mut last = first;
            while slots.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            Some(SlotRange { first, last })
        })
    }
}

fn bit(slot: u16) -> u64 {
    1 << (slot % 64)
}

impl Default for SlotSet {
    fn default() -> Self {
        Self::new()
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Self {
        let mut set = Self::new();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

impl fmt::Display for SlotRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(f, "{}", self.first);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Ranges with commas, such as `0-5,7`; `none` without slots.
impl fmt::Display for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (number, range) in self.ranges().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{range}")?;
        }
        Ok(())
    }
}

/// Parses ranges with commas, in ascending order, as they are printed.
impl FromStr for SlotSet {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let invalid = || InvalidText::new("slots such as 0-5,7", text);
        let slot = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|slot| usize::from(*slot) < SLOTS);
            number.filter(|_| is_number).ok_or_else(invalid)
        };
        let mut set = Self::new();
        if text == "none" {
            return Ok(set);
        }
        let mut end = 0;
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (slot(first)?, slot(last)?);
            if first > last || first < end {
                return Err(invalid());
            }
            end = last + 1;
            (first..=last).for_each(|slot| set.insert(slot));
        }
        Ok(set)
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_testing::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn a_set_agrees_with_a_tree() {
        let mut random = Random::new(19);
        let (mut set, mut tree) = (SlotSet::new(), BTreeSet::new());
        for _ in 0..2000 {
            let slot = random.below(SLOTS as u64) as u16;
            if random.below(3) == 0 {
                set.remove(slot);
                tree.remove(&slot);
            } else {
                set.insert(slot);
                tree.insert(slot);
            }
        }
        assert_eq!(set.len(), tree.len());
        assert!(set.iter().eq(tree.iter().copied()));
        let of_ranges = set.ranges().flat_map(|range| range.first..=range.last);
        assert!(of_ranges.eq(tree.iter().copied()));
        let mut rest = SlotSet::all();
        rest.subtract(&set);
        assert!(!rest.intersects(&set));
        assert!(rest.common(&set).is_empty());
        rest.add(&set);
        assert_eq!(rest, SlotSet::all());
        assert_eq!(rest.common(&set), set);
    }

    #[test]
    fn ranges_are_printed_with_commas() {
        let text = |slots: &[u16]| slots.iter().copied().collect::<SlotSet>().to_string();
        assert_eq!(text(&[]), "none");
        assert_eq!(text(&[5]), "5");
        assert_eq!(text(&[0, 1, 2, 63, 64, 16_383]), "0-2,63-64,16383");
        assert_eq!(SlotSet::all().to_string(), "0-16383");
    }

    #[test]
    fn printed_ranges_are_parsed() {
        for text in ["none", "5", "0-2,63-64,16383", "0-16383"] {
            assert_eq!(text.parse::<SlotSet>().expect(text).to_string(), text);
        }
        for text in ["", "1,", "-1", "1-", "2-1", "16384", "+1", "1 ", "1--2", "1,1", "3-5,4"] {
            let error = text.parse::<SlotSet>().expect_err(text).to_string();
            assert!(error.starts_with("expected slots such as 0-5,7, found"), "{error}");
        }
    }
}
