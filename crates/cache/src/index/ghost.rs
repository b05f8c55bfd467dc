//! The ghost queue of S3-FIFO: remembers recently evicted keys without their values.
//!
//! A key that returns soon after its eviction from the small queue was evicted too early, so it is
//! stored in the main queue. "Soon" means within the promotion window: about the number of
//! evictions that an unread item survives in the main queue. Without that limit, a loop over more
//! keys than fit would evict each item from the main queue just before it is read again.
//!
//! The queue stores fingerprints of keys in lines of 30. The hash of a key selects its line, and a
//! new fingerprint replaces the oldest of its line. All lines get about the same number of keys. So
//! the position of a fingerprint in its line gives the approximate number of evictions since then.

use crate::hash::KeyHash;
use crate::memory::arena::prefetch;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Fingerprints in a line, next to the word that counts them.
const FINGERPRINTS: usize = 30;

#[repr(align(64))]
#[derive(Default)]
struct Line {
    next: AtomicU32,
    fingerprints: [AtomicU16; FINGERPRINTS],
}

/// Lines that are allocated together. Allocating all lines at once would delay one write.
const BLOCK_LINES: usize = 1024;

/// A block of lines, allocated on first use.
type Block = OnceLock<Box<[Line]>>;

/// All lines, allocated in blocks on first use.
struct Lines {
    blocks: Box<[Block]>,
    len: usize,
}

/// The ghost queue of a cache.
#[derive(Default)]
pub(crate) struct GhostQueue {
    /// Created at the first eviction, with room for as many keys as there are items then.
    lines: OnceLock<Lines>,
    /// Maximum number of evictions between the eviction of a key and its return for the key to be
    /// promoted.
    promotion_window: AtomicU64,
}

/// Returns the fingerprint of a key: 16 bits of its hash that select neither its line nor its
/// partition.
fn fingerprint_of(hash: KeyHash) -> u16 {
    // 0 marks an empty entry.
    ((hash.0 >> 32) as u16).max(1)
}

impl Lines {
    fn new(len: usize) -> Self {
        let blocks = (0..len.div_ceil(BLOCK_LINES)).map(|_| Block::new()).collect();
        Self { blocks, len }
    }

    /// Returns the bytes of this many lines, when all are allocated.
    fn memory(len: usize) -> u64 {
        (len.next_multiple_of(BLOCK_LINES) * size_of::<Line>()) as u64
    }

    /// Returns the block of a key's line, and the number of the line in it.
    fn locate(&self, hash: KeyHash) -> (&Block, usize) {
        let spread = u128::from(hash.0.rotate_left(32)) * self.len as u128;
        let at = (spread >> 64) as usize;
        (&self.blocks[at / BLOCK_LINES], at % BLOCK_LINES)
    }

    /// Returns the line of a key if it is allocated.
    fn get(&self, hash: KeyHash) -> Option<&Line> {
        let (block, at) = self.locate(hash);
        block.get().map(|lines| &lines[at])
    }

    /// Returns the line of a key, and allocates it if necessary.
    fn make(&self, hash: KeyHash) -> &Line {
        let (block, at) = self.locate(hash);
        let lines = block.get_or_init(|| (0..BLOCK_LINES).map(|_| Line::default()).collect());
        &lines[at]
    }
}

impl GhostQueue {
    /// Returns the bytes that the queue takes when all lines are allocated; 0 before the first
    /// eviction.
    pub(crate) fn memory(&self) -> u64 {
        self.lines.get().map_or(0, |lines| Lines::memory(lines.len))
    }

    /// Returns the bytes that the queue takes, or will take if it is created for this many items.
    pub(crate) fn planned_memory(&self, items: u64) -> u64 {
        let planned = || items as usize / FINGERPRINTS + 1;
        Lines::memory(self.lines.get().map_or_else(planned, |lines| lines.len))
    }

    /// Records the eviction of a key. `items` returns the current number of items.
    pub(crate) fn insert(&self, hash: KeyHash, items: impl FnOnce() -> u64) {
        let lines = self.lines.get_or_init(|| Lines::new(items() as usize / FINGERPRINTS + 1));
        let line = lines.make(hash);
        let at = line.next.fetch_add(1, Ordering::Relaxed) as usize % FINGERPRINTS;
        line.fingerprints[at].store(fingerprint_of(hash), Ordering::Relaxed);
    }

    /// Sets the promotion window, in evictions.
    pub(crate) fn set_promotion_window(&self, evictions: u64) {
        self.promotion_window.store(evictions, Ordering::Relaxed);
    }

    /// Prefetches the line of a key.
    #[inline]
    pub(crate) fn prefetch(&self, hash: KeyHash) {
        if let Some(line) = self.lines.get().and_then(|lines| lines.get(hash)) {
            prefetch(line);
        }
    }

    /// Returns whether a key, or another with the same fingerprint, was evicted within the
    /// promotion window.
    pub(crate) fn should_promote(&self, hash: KeyHash) -> bool {
        let Some(lines) = self.lines.get() else { return false };
        let newest = self.promotion_window.load(Ordering::Relaxed) / lines.len as u64;
        let Some(line) = lines.get(hash) else { return false };
        let next = line.next.load(Ordering::Relaxed) as usize % FINGERPRINTS;
        let age = |at: usize| (next + FINGERPRINTS - 1 - at) % FINGERPRINTS;
        let fingerprint = fingerprint_of(hash);
        let mut all = line.fingerprints.iter().enumerate();
        all.any(|(at, one)| one.load(Ordering::Relaxed) == fingerprint && (age(at) as u64) < newest)
    }

    /// Returns whether a key, or another with the same fingerprint, was evicted recently.
    pub(crate) fn contains(&self, hash: KeyHash) -> bool {
        let line = self.lines.get().and_then(|lines| lines.get(hash));
        let Some(line) = line else { return false };
        let fingerprint = fingerprint_of(hash);
        line.fingerprints.iter().any(|one| one.load(Ordering::Relaxed) == fingerprint)
    }

    /// Removes a key, as it was stored again.
    pub(crate) fn remove(&self, hash: KeyHash) {
        let line = self.lines.get().and_then(|lines| lines.get(hash));
        let Some(line) = line else { return };
        let fingerprint = fingerprint_of(hash);
        for one in &line.fingerprints {
            if one.load(Ordering::Relaxed) == fingerprint {
                one.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recently_evicted_keys_are_remembered() {
        let ghost = GhostQueue::default();
        let hash = |number: u64| KeyHash(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        assert!(!ghost.contains(hash(1)));
        for number in 1..=1000 {
            ghost.insert(hash(number), || 1000);
        }
        let known = (901..=1000).filter(|number| ghost.contains(hash(*number))).count();
        assert!(known > 95, "{known} of the last 100");
        let unknown = (2001..=3000).filter(|number| ghost.contains(hash(*number))).count();
        assert!(unknown < 10, "{unknown} of others");
        // The line of a key has seen about 30 of the thousand evictions.
        assert!(!ghost.should_promote(hash(1000)), "no key is promoted without a window");
        let soon = |number| ghost.should_promote(hash(number));
        ghost.set_promotion_window(500);
        let [late, early] = [901..=1000, 301..=400].map(|all| all.filter(|n| soon(*n)).count());
        assert!(late > 80 && early < 20, "{late} of the last 100, {early} of earlier ones");
        ghost.set_promotion_window(u64::MAX);
        assert!((901..=1000).all(|number| soon(number) == ghost.contains(hash(number))));
        ghost.remove(hash(1000));
        assert!(!ghost.contains(hash(1000)));
    }
}
