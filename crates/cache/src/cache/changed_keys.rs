//! The keys that sessions changed while items of an earlier run are restored. An item of such a key
//! must not be restored: it would replace a newer value, or return after its removal.

use crate::hash::KeyHash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// There is one bit for this many bytes of the budget.
const BUDGET_PER_BIT: u64 = 32;

/// Maximum number of bits: 16 MiB.
const MAX_BITS: u64 = 1 << 27;

/// One bit for each group of hashes, which is set if one of its keys was changed.
pub(crate) struct ChangedKeys {
    words: Box<[AtomicU64]>,
    /// Whether all keys were changed.
    pub(super) all: AtomicBool,
}

impl ChangedKeys {
    /// Creates a set without keys, for a budget in bytes.
    pub(super) fn new(memory: u64) -> Self {
        let bits = (memory / BUDGET_PER_BIT).next_power_of_two().min(MAX_BITS);
        let words = (0..bits / u64::from(u64::BITS)).map(|_| AtomicU64::new(0)).collect();
        Self { words, all: AtomicBool::new(false) }
    }

    /// Returns the word and the mask of the bit of a key.
    fn bit(&self, hash: KeyHash) -> (&AtomicU64, u64) {
        let bit = hash.without_partition() as usize % (self.words.len() * u64::BITS as usize);
        (&self.words[bit / u64::BITS as usize], 1 << (bit % u64::BITS as usize))
    }

    pub(super) fn add(&self, hash: KeyHash) {
        let (word, mask) = self.bit(hash);
        word.fetch_or(mask, Ordering::Relaxed);
    }

    /// Returns whether a key was changed, or another of its group.
    pub(super) fn has(&self, hash: KeyHash) -> bool {
        let (word, mask) = self.bit(hash);
        self.all.load(Ordering::Relaxed) || word.load(Ordering::Relaxed) & mask != 0
    }

    /// Returns the bytes that the set takes.
    pub(super) fn memory(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }
}
