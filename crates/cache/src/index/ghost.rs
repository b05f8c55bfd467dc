//! The ghost queue: which keys were evicted lately, without their values.
//!
//! A key that comes back soon after it was evicted from the small queue was evicted too soon, and
//! goes to the main queue at once: but only if it was away for a shorter time than what is in the
//! main queue has to prove itself. Were that not so, a loop over more keys than fit would push each
//! item out of the main queue just before its turn.
//!
//! Fingerprints of keys lie in lines of 30; in each line a new one takes the place of the oldest.
//! So its distance from the newest tells how many evictions ago it came.

use crate::hash::KeyHash;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Fingerprints of a line, besides one word that counts them.
const FINGERPRINTS: usize = 30;

#[repr(align(64))]
#[derive(Default)]
struct Line {
    next: AtomicU32,
    fingerprints: [AtomicU16; FINGERPRINTS],
}

/// Lines that are made at a time: to make all of them at once would keep one write waiting.
const PIECE_LINES: usize = 1024;

type Piece = OnceLock<Box<[Line]>>;

/// The lines, each made with those next to it when one of them is needed.
struct Lines {
    pieces: Box<[Piece]>,
    len: usize,
}

#[derive(Default)]
pub(crate) struct Ghost {
    /// Laid out when the first item is evicted, for as many as there are then.
    lines: OnceLock<Lines>,
    /// A key came back soon if no more items than that were evicted meanwhile.
    reach: AtomicU64,
}

fn fingerprint(hash: KeyHash) -> u16 {
    // Zero is nobody's.
    (hash.0 as u16).max(1)
}

impl Lines {
    fn new(len: usize) -> Self {
        let pieces = (0..len.div_ceil(PIECE_LINES)).map(|_| Piece::new()).collect();
        Self { pieces, len }
    }

    /// Bytes, of all of them.
    fn memory(len: usize) -> u64 {
        (len.next_multiple_of(PIECE_LINES) * size_of::<Line>()) as u64
    }

    fn place(&self, hash: KeyHash) -> (&Piece, usize) {
        let spread = u128::from(hash.0.rotate_left(32)) * self.len as u128;
        let at = (spread >> 64) as usize;
        (&self.pieces[at / PIECE_LINES], at % PIECE_LINES)
    }

    /// The line of a key, if it was made.
    fn get(&self, hash: KeyHash) -> Option<&Line> {
        let (piece, at) = self.place(hash);
        piece.get().map(|lines| &lines[at])
    }

    /// The line of a key.
    fn make(&self, hash: KeyHash) -> &Line {
        let (piece, at) = self.place(hash);
        let lines = piece.get_or_init(|| (0..PIECE_LINES).map(|_| Line::default()).collect());
        &lines[at]
    }
}

impl Ghost {
    /// Bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.lines.get().map_or(0, |lines| Lines::memory(lines.len))
    }

    /// Bytes that it has, or will have once it is made for so many items.
    pub(crate) fn memory_ahead(&self, items: u64) -> u64 {
        let ahead = || items as usize / FINGERPRINTS + 1;
        Lines::memory(self.lines.get().map_or_else(ahead, |lines| lines.len))
    }

    /// Notes that a key was evicted, of `items` that there are.
    pub(crate) fn insert(&self, hash: KeyHash, items: impl FnOnce() -> u64) {
        let lines = self.lines.get_or_init(|| Lines::new(items() as usize / FINGERPRINTS + 1));
        let line = lines.make(hash);
        let at = line.next.fetch_add(1, Ordering::Relaxed) as usize % FINGERPRINTS;
        line.fingerprints[at].store(fingerprint(hash), Ordering::Relaxed);
    }

    /// Within how many evictions a key comes back soon.
    pub(crate) fn set_reach(&self, evictions: u64) {
        self.reach.store(evictions, Ordering::Relaxed);
    }

    /// Whether a key, or one like it, comes back soon.
    pub(crate) fn is_back_soon(&self, hash: KeyHash) -> bool {
        let Some(lines) = self.lines.get() else { return false };
        let newest = self.reach.load(Ordering::Relaxed) / lines.len as u64;
        let Some(line) = lines.get(hash) else { return false };
        let next = line.next.load(Ordering::Relaxed) as usize % FINGERPRINTS;
        let age = |at: usize| (next + FINGERPRINTS - 1 - at) % FINGERPRINTS;
        let wanted = fingerprint(hash);
        let mut all = line.fingerprints.iter().enumerate();
        all.any(|(at, one)| one.load(Ordering::Relaxed) == wanted && (age(at) as u64) < newest)
    }

    /// Whether a key was evicted lately, or one like it.
    pub(crate) fn contains(&self, hash: KeyHash) -> bool {
        let line = self.lines.get().and_then(|lines| lines.get(hash));
        let Some(line) = line else { return false };
        let wanted = fingerprint(hash);
        line.fingerprints.iter().any(|one| one.load(Ordering::Relaxed) == wanted)
    }

    /// Forgets a key: it is there again.
    pub(crate) fn remove(&self, hash: KeyHash) {
        let line = self.lines.get().and_then(|lines| lines.get(hash));
        let Some(line) = line else { return };
        let wanted = fingerprint(hash);
        for one in &line.fingerprints {
            if one.load(Ordering::Relaxed) == wanted {
                one.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_evicted_lately_is_known() {
        let ghost = Ghost::default();
        let hash = |number: u64| KeyHash(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        assert!(!ghost.contains(hash(1)));
        for number in 1..=1000 {
            ghost.insert(hash(number), || 1000);
        }
        let known = (901..=1000).filter(|number| ghost.contains(hash(*number))).count();
        assert!(known > 95, "{known} of the last 100");
        let unknown = (2001..=3000).filter(|number| ghost.contains(hash(*number))).count();
        assert!(unknown < 10, "{unknown} of others");
        // The line of a key has seen 30 evictions while all of them have seen a thousand.
        assert!(!ghost.is_back_soon(hash(1000)), "nothing is, before it is told what that means");
        let soon = |number| ghost.is_back_soon(hash(number));
        ghost.set_reach(500);
        let [late, early] = [901..=1000, 301..=400].map(|all| all.filter(|n| soon(*n)).count());
        assert!(late > 80 && early < 20, "{late} of the last 100, {early} of earlier ones");
        ghost.set_reach(u64::MAX);
        assert!((901..=1000).all(|number| soon(number) == ghost.contains(hash(number))));
        ghost.remove(hash(1000));
        assert!(!ghost.contains(hash(1000)));
    }
}
