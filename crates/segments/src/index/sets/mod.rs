//! The sets of words that point to records. Any process reads and changes words at any time, with
//! one atomic instruction each. A word is only a hint: the head of the record is compared before
//! the record is used.
//!
//! A part has two sets (partial-key cuckoo hashing, Fan et al., `CoNEXT` 2014). Its word is in the
//! first set, its home, if that has a free word, otherwise in the second set, marked with the bit
//! "away". The sixteenth word of a set counts the words that are away from it, so a lookup that
//! finds nothing at home seldom reads the second set. If both sets are full, a word of the home
//! moves to its own second set. The second set of a word follows from the first set and the tag, so
//! words can be moved, and sets doubled, without reading a record.

use super::shape::Shape;
use super::word::{
    AWAY, MAX_USES, Place, TAG_IN_WORD, TAG_MASK, count_shift, encode, place_of, tag_of, uses_of,
};
use crate::layout::{index, word};
use crate::map::Words;
use crate::work_counters;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of attempts to exchange a word while other processes change it.
const MAX_TRIES: usize = 1000;

/// The result of entering a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Inserted {
    Done,
    /// Both sets are full: the index must grow, or another word must be displaced.
    Full,
}

/// The sets of an index.
#[derive(Clone, Copy)]
pub(crate) struct Sets<'a> {
    words: &'a Words,
    shape: &'a Shape,
}

/// A set: words that point to parts, and one with counters.
type Set = [AtomicU64; index::WAYS + 1];

/// The words with the tag of a hash, and the places that they point to.
pub(crate) struct Candidates<'a> {
    set: &'a Set,
    /// One bit for each word of the set that had the tag and was not returned yet.
    remaining: u32,
    at_home: bool,
    sets: Sets<'a>,
    hash: u64,
}

/// Returns a bit for each word of a set that has a tag, without a branch.
#[inline]
fn with_tag(set: &Set, tag: u64) -> u32 {
    let mut found = 0;
    for (bit, word) in set[..index::WAYS].iter().enumerate() {
        let other = (word.load(Ordering::Acquire) ^ tag << word::TAG_SHIFT) & TAG_IN_WORD;
        found |= u32::from(other == 0) << bit;
    }
    found
}

impl<'a> Iterator for Candidates<'a> {
    type Item = (&'a AtomicU64, Place);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.hash & TAG_MASK;
        loop {
            while self.remaining != 0 {
                let word = &self.set[self.remaining.trailing_zeros() as usize];
                self.remaining &= self.remaining - 1;
                let found = word.load(Ordering::Acquire);
                if tag_of(found) == tag && found != 0 {
                    return Some((word, place_of(found)));
                }
            }
            let counts = self.set[index::WAYS].load(Ordering::Acquire);
            if !self.at_home || counts & (0xFF << count_shift(tag)) == 0 {
                return None;
            }
            self.at_home = false;
            self.set = self.sets.away_of(self.hash);
            self.remaining = with_tag(self.set, tag);
        }
    }
}

impl<'a> Sets<'a> {
    #[inline]
    pub(crate) fn new(words: &'a Words, shape: &'a Shape) -> Self {
        Self { words, shape }
    }

    /// Returns a set with its counters.
    #[inline]
    fn all(&self, set: u64) -> &'a Set {
        work_counters::count_step();
        self.words.words(self.shape.start + set as usize * index::SET_LEN)
    }

    /// Returns the words of a set that point to parts.
    #[inline]
    fn set(&self, set: u64) -> &'a [AtomicU64] {
        &self.all(set)[..index::WAYS]
    }

    /// Returns the second set of a hash.
    #[cold]
    fn away_of(&self, hash: u64) -> &'a Set {
        self.all(self.shape.other(self.shape.home(hash), hash & TAG_MASK))
    }

    /// Returns whether words with a tag may be away from their home.
    fn has_away(&self, home: u64, tag: u64) -> bool {
        let counts = self.all(home)[index::WAYS].load(Ordering::Acquire);
        counts & (0xFF << count_shift(tag)) != 0
    }

    /// Returns the words with the tag of a hash. Other hashes may have the same tag.
    #[inline]
    pub(crate) fn lookup(&self, hash: u64) -> Candidates<'a> {
        let set = self.all(self.shape.home(hash));
        let remaining = with_tag(set, hash & TAG_MASK);
        Candidates { set, remaining, at_home: true, sets: *self, hash }
    }

    /// Enters a place for a hash, unless a word points there already. Words that point to places
    /// for which `is_gone` returns true are free.
    pub(crate) fn insert(
        &self,
        hash: u64,
        place: Place,
        uses: u64,
        is_gone: impl Fn(Place) -> bool,
    ) -> Inserted {
        if !self.words.is_writable() || self.lookup(hash).any(|(_, found)| found == place) {
            return Inserted::Done;
        }
        self.insert_at(self.shape.home(hash), encode(hash & TAG_MASK, place, uses), is_gone)
    }

    /// Enters a word, at home or away, and moves another word away if necessary.
    fn insert_at(&self, home: u64, new: u64, is_gone: impl Fn(Place) -> bool) -> Inserted {
        if self.put_into(home, new, &is_gone) {
            return Inserted::Done;
        }
        let tag = tag_of(new);
        if self.put_away(home, self.shape.other(home, tag), new, &is_gone) {
            return Inserted::Done;
        }
        if self.make_room(home, &is_gone) && self.put_into(home, new, &is_gone) {
            return Inserted::Done;
        }
        Inserted::Full
    }

    /// Stores a word in a set that has a free word.
    fn put_into(&self, set: u64, new: u64, is_gone: &impl Fn(Place) -> bool) -> bool {
        self.set(set).iter().any(|word| {
            let found = word.load(Ordering::Relaxed);
            (found == 0 || is_gone(place_of(found))) && self.replace(set, word, found, new)
        })
    }

    /// Stores a word in its second set.
    fn put_away(&self, home: u64, set: u64, new: u64, is_gone: &impl Fn(Place) -> bool) -> bool {
        // Increments the counter first: a reader that then finds nothing in the second set only
        // loses time, but without the counter it would miss the word.
        self.count_away(home, tag_of(new), true);
        let is_stored = self.put_into(set, new | AWAY, is_gone);
        if !is_stored {
            self.count_away(home, tag_of(new), false);
        }
        is_stored
    }

    /// Increments or decrements the counter of words that are away from their home. A damaged
    /// counter stays within its bits.
    fn count_away(&self, home: u64, tag: u64, increment: bool) {
        let (counts, one) = (&self.all(home)[index::WAYS], 1_u64 << count_shift(tag));
        let bound = if increment { one * 0xFF } else { 0 };
        let change = |found: u64| {
            let next = if increment { found.wrapping_add(one) } else { found.wrapping_sub(one) };
            (found & (one * 0xFF) != bound).then_some(next)
        };
        let _ = counts.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }

    /// Moves a word that is at home to its second set. A reader that does not find it at home finds
    /// it there.
    fn make_room(&self, home: u64, is_gone: &impl Fn(Place) -> bool) -> bool {
        self.set(home).iter().any(|word| {
            let found = word.load(Ordering::Acquire);
            if found == 0 || found & AWAY != 0 {
                return found == 0;
            }
            let away = self.shape.other(home, tag_of(found));
            self.put_away(home, away, found, is_gone) && {
                let is_moved = self.replace(home, word, found, 0);
                if !is_moved {
                    // Another process changed it meanwhile; the copy has the old value.
                    self.remove_word(away, found | AWAY);
                }
                is_moved
            }
        })
    }

    /// Removes a word from a set.
    fn remove_word(&self, set: u64, old: u64) {
        let found = self.set(set).iter().find(|word| word.load(Ordering::Relaxed) == old);
        if let Some(word) = found {
            self.replace(set, word, old, 0);
        }
    }

    /// Exchanges a word of a set for that of another part, or for none.
    fn replace(&self, set: u64, word: &AtomicU64, old: u64, new: u64) -> bool {
        // Sequentially consistent with `Index::is_copied`.
        let is_done = word.compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if is_done && old & AWAY != 0 {
            self.count_away(self.shape.other(set, tag_of(old)), tag_of(old), false);
        }
        is_done
    }

    /// Enters a place for a hash in place of the least used word at home. Returns whether it
    /// replaced a word.
    pub(crate) fn displace(&self, hash: u64, place: Place) -> bool {
        let home = self.shape.home(hash);
        let new = encode(hash & TAG_MASK, place, 0);
        // Another process may change the chosen word first.
        for _ in 0..MAX_TRIES {
            let found = self.set(home).iter().map(|word| (word.load(Ordering::Relaxed), word));
            let rank = |found: u64| if found == 0 { 0 } else { 1 + uses_of(found) };
            let Some((old, word)) = found.min_by_key(|(found, _)| rank(*found)) else { break };
            if self.replace(home, word, old, new) {
                return old != 0;
            }
        }
        false
    }

    /// Removes a place of a hash. Returns whether a word pointed there.
    pub(crate) fn remove(&self, hash: u64, place: Place) -> bool {
        self.change(hash, place, |_| 0)
    }

    /// Increments the use count of a part.
    pub(crate) fn count_use(&self, hash: u64, place: Place) {
        self.change(hash, place, |found| {
            if uses_of(found) < MAX_USES { found + (1 << word::USES_SHIFT) } else { found }
        });
    }

    /// Decrements the use count of a part.
    pub(crate) fn decrement_use(&self, hash: u64, place: Place) {
        self.change(hash, place, |found| found - (uses_of(found).min(1) << word::USES_SHIFT));
    }

    /// Points the word of a hash from one place to another and decrements its use count. Returns
    /// whether there was such a word.
    pub(crate) fn redirect(&self, hash: u64, old: Place, new: Place) -> bool {
        self.change(hash, old, |found| {
            encode(tag_of(found), new, uses_of(found).saturating_sub(1)) | found & AWAY
        })
    }

    /// Returns the use count of a part, if a word points to its place.
    pub(crate) fn uses(&self, hash: u64, place: Place) -> Option<u64> {
        let (word, _) = self.lookup(hash).find(|(_, found)| *found == place)?;
        Some(uses_of(word.load(Ordering::Relaxed)))
    }

    /// Changes the word of a hash that points to a place. Returns whether there is one.
    fn change(&self, hash: u64, place: Place, to: impl Fn(u64) -> u64) -> bool {
        if !self.words.is_writable() {
            return false;
        }
        let (home, tag) = (self.shape.home(hash), hash & TAG_MASK);
        let mut has_changed = false;
        // A word that is being moved is in both sets.
        for set in [home, self.shape.other(home, tag)] {
            for word in self.set(set) {
                let mut found = word.load(Ordering::Acquire);
                while found != 0 && tag_of(found) == tag && place_of(found) == place {
                    let new = to(found);
                    let is_done = match new {
                        0 => self.replace(set, word, found, 0),
                        _ => word
                            .compare_exchange(found, new, Ordering::SeqCst, Ordering::Relaxed)
                            .is_ok(),
                    };
                    if is_done {
                        has_changed = true;
                        break;
                    }
                    found = word.load(Ordering::Acquire);
                }
            }
            if has_changed || !self.has_away(home, tag) {
                break;
            }
        }
        has_changed
    }

    /// Removes all words that point to places which no longer exist. Returns their number. A
    /// read-only index keeps them.
    pub(crate) fn sweep(&self, is_gone: impl Fn(Place) -> bool) -> u64 {
        let mut removed = 0;
        let is_writable = self.words.is_writable();
        for set in 0..=self.shape.mask {
            for word in self.set(set) {
                let found = word.load(Ordering::Relaxed);
                if found != 0 && is_gone(place_of(found)) {
                    removed += u64::from(!is_writable || self.replace(set, word, found, 0));
                }
            }
        }
        removed
    }

    /// Copies all words into twice as many sets. Returns the number of words that found no space.
    pub(crate) fn copy_into(&self, doubled: &Sets<'_>, is_gone: impl Fn(Place) -> bool) -> u64 {
        let bits = self.shape.mask.count_ones();
        let grown = self.shape.grown_mask.count_ones();
        let mut without_space = 0;
        for set in 0..=self.shape.mask {
            for word in self.set(set) {
                let found = word.load(Ordering::SeqCst);
                if found == 0 || is_gone(place_of(found)) {
                    continue;
                }
                let tag = tag_of(found);
                let home = if found & AWAY == 0 { set } else { self.shape.other(set, tag) };
                let home = home | (tag >> grown & 1) << bits;
                let inserted = doubled.insert_at(home, found & !AWAY, |_| false);
                without_space += u64::from(inserted == Inserted::Full);
            }
        }
        without_space
    }

    /// Returns all places that words point to, without duplicates.
    pub(crate) fn places(&self) -> Vec<Place> {
        let sets = (0..=self.shape.mask).flat_map(|set| self.set(set));
        let words = sets.map(|word| word.load(Ordering::Acquire)).filter(|found| *found != 0);
        let mut places: Vec<_> = words.map(place_of).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Returns the number of used words, and of all words.
    pub(crate) fn used_and_total_words(&self) -> (u64, u64) {
        let words = (0..=self.shape.mask).flat_map(|set| self.set(set));
        let used = words.filter(|word| word.load(Ordering::Relaxed) != 0).count();
        (used as u64, (self.shape.mask + 1) * index::WAYS as u64)
    }
}

#[cfg(test)]
mod tests;
