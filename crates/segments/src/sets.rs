//! The index: sets of words that tell where parts lie. Anybody reads and changes them at any time,
//! each with one atomic instruction, and no word is believed: the head of the record it leads to
//! says what is there.

use crate::layout::{GRAIN, index, word};
use crate::map::Words;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    pub(crate) offset: u64,
}

/// How often a part was used, as far as it is counted.
pub(crate) const USES_MOST: u64 = (1 << word::USES_BITS) - 1;

fn encode(tag: u64, place: Place, uses: u64) -> u64 {
    uses << word::USES_SHIFT
        | tag << word::TAG_SHIFT
        | u64::from(place.slot) << word::SLOT_SHIFT
        | place.offset / GRAIN
}

fn place_of(found: u64) -> Place {
    let slot = (found >> word::SLOT_SHIFT) & ((1 << word::SLOT_BITS) - 1);
    let offset = (found & ((1 << word::OFFSET_BITS) - 1)) * GRAIN;
    Place { slot: slot as u32, offset }
}

fn tag_of(found: u64) -> u64 {
    (found >> word::TAG_SHIFT) & ((1 << word::TAG_BITS) - 1)
}

fn uses_of(found: u64) -> u64 {
    found >> word::USES_SHIFT
}

/// The sets of an index.
#[derive(Clone, Copy)]
pub(crate) struct Sets<'a> {
    words: &'a Words,
    /// Where the first begins.
    from: usize,
    /// How many there are: a power of two.
    count: u64,
}

impl<'a> Sets<'a> {
    pub(crate) fn new(words: &'a Words, from: usize, count: u64) -> Self {
        Self { words, from, count }
    }

    #[inline]
    fn set(&self, hash: u64) -> &'a [AtomicU64; index::WAYS] {
        // The lower bits are the tag.
        let number = (hash >> word::TAG_BITS) & (self.count - 1);
        self.words.words(self.from + number as usize * index::SET_LEN)
    }

    #[inline]
    fn tag(hash: u64) -> u64 {
        hash & ((1 << word::TAG_BITS) - 1)
    }

    /// The words of a hash and where they lead; there may be some that have only the same tag.
    #[inline]
    pub(crate) fn of(&self, hash: u64) -> impl Iterator<Item = (&'a AtomicU64, Place)> + use<'a> {
        let tag = Self::tag(hash);
        self.set(hash).iter().filter_map(move |word| {
            let found = word.load(Ordering::Acquire);
            (found != 0 && tag_of(found) == tag).then(|| (word, place_of(found)))
        })
    }

    /// Enters a place for a hash. If the set is full, the word that is used least gives way, one
    /// that leads nowhere first.
    pub(crate) fn insert(&self, hash: u64, place: Place, uses: u64, gone: impl Fn(Place) -> bool) {
        let new = encode(Self::tag(hash), place, uses);
        let set = self.set(hash);
        // Somebody else may take the word that was chosen; sooner or later one is got.
        for _ in 0..1000 {
            let rank = |found: u64| match found {
                0 => 0,
                _ if gone(place_of(found)) => 1,
                _ => 2 + uses_of(found),
            };
            let found = set.iter().map(|word| (word.load(Ordering::Relaxed), word));
            let Some((old, word)) = found.min_by_key(|(found, _)| rank(*found)) else { return };
            if word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Takes a place of a hash out.
    pub(crate) fn remove(&self, hash: u64, place: Place) {
        self.change(hash, place, |_| 0);
    }

    /// Counts a use.
    pub(crate) fn count_use(&self, hash: u64, place: Place) {
        self.change(hash, place, |found| {
            if uses_of(found) < USES_MOST { found + (1 << word::USES_SHIFT) } else { found }
        });
    }

    /// Takes one from the uses.
    pub(crate) fn forget_use(&self, hash: u64, place: Place) {
        self.change(hash, place, |found| found - (uses_of(found).min(1) << word::USES_SHIFT));
    }

    /// Has a hash lead to another place, if it led to one. Its uses become one less.
    pub(crate) fn lead_on(&self, hash: u64, old: Place, new: Place) -> bool {
        self.change(hash, old, |found| {
            encode(Self::tag(hash), new, uses_of(found).saturating_sub(1))
        })
    }

    /// How often the part of a hash was used, if it is at a place.
    pub(crate) fn uses(&self, hash: u64, place: Place) -> Option<u64> {
        let (word, _) = self.of(hash).find(|(_, found)| *found == place)?;
        Some(uses_of(word.load(Ordering::Relaxed)))
    }

    /// Changes the word of a hash that leads to a place. Whether there is one.
    fn change(&self, hash: u64, place: Place, to: impl Fn(u64) -> u64) -> bool {
        for word in self.set(hash) {
            let mut found = word.load(Ordering::Acquire);
            while found != 0 && tag_of(found) == Self::tag(hash) && place_of(found) == place {
                let new = to(found);
                let order = (Ordering::AcqRel, Ordering::Acquire);
                match word.compare_exchange(found, new, order.0, order.1) {
                    Ok(_) => return true,
                    Err(other) => found = other,
                }
            }
        }
        false
    }

    /// Takes out all words that lead to places which are gone. How many there were.
    pub(crate) fn sweep(&self, is_gone: impl Fn(Place) -> bool) -> u64 {
        let mut taken = 0;
        for number in 0..self.count as usize {
            for word in self.words.words::<{ index::WAYS }>(self.from + number * index::SET_LEN) {
                let found = word.load(Ordering::Relaxed);
                if found != 0 && is_gone(place_of(found)) {
                    let order = Ordering::Relaxed;
                    let done = word.compare_exchange(found, 0, order, order);
                    taken += u64::from(done.is_ok());
                }
            }
        }
        taken
    }

    /// How many words lead somewhere, and how many there are.
    pub(crate) fn fill(&self) -> (u64, u64) {
        let sets = 0..self.count as usize;
        let words = sets.flat_map(|number| {
            self.words.words::<{ index::WAYS }>(self.from + number * index::SET_LEN)
        });
        let used = words.filter(|word| word.load(Ordering::Relaxed) != 0).count();
        (used as u64, self.count * index::WAYS as u64)
    }
}
