//! A set of slots as a bitmap that all threads read.

use nuthatch_cluster::slot::{SLOTS, SlotSet};
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = SLOTS / 64;

/// A set of slots that threads read while another one changes it.
///
/// A thread that serves requests reads it within an epoch guard of the cache. So once a slot was
/// removed and all guards that began before have ended, no request that found it is in progress.
pub(super) struct SharedSlots(Box<[AtomicU64; WORDS]>);

impl SharedSlots {
    /// Returns whether the set has a slot.
    #[inline]
    pub(super) fn contains(&self, slot: u16) -> bool {
        let word = self.0.get(usize::from(slot) / 64);
        word.is_some_and(|word| word.load(Ordering::Acquire) >> (slot % 64) & 1 == 1)
    }

    /// Adds slots. The caller holds the lock of the transitions, as for all changes.
    pub(super) fn add(&self, slots: &SlotSet) {
        for (word, slots) in self.0.iter().zip(slots.words()) {
            word.fetch_or(*slots, Ordering::SeqCst);
        }
    }

    /// Removes slots.
    pub(super) fn remove(&self, slots: &SlotSet) {
        for (word, slots) in self.0.iter().zip(slots.words()) {
            word.fetch_and(!slots, Ordering::SeqCst);
        }
    }

    /// Makes it equal to another set.
    pub(super) fn replace(&self, slots: &SlotSet) {
        for (word, slots) in self.0.iter().zip(slots.words()) {
            word.store(*slots, Ordering::SeqCst);
        }
    }

    /// Returns the slots.
    pub(super) fn to_set(&self) -> SlotSet {
        (0..SLOTS as u16).filter(|slot| self.contains(*slot)).collect()
    }

    /// Returns the number of slots.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }
}

impl Default for SharedSlots {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| AtomicU64::new(0))))
    }
}
