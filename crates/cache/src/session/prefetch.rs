//! Prefetching for batches of operations, so that the processor waits for the memory of many keys
//! at once.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::index::ahead::{Ahead, SeenSlot};
use crate::index::slot::Slot;
use crate::session::state::Guard;

/// Keys whose memory is prefetched together: so few that it is still in the second-level cache when
/// it is accessed.
const GROUP: usize = u64::BITS as usize;

/// Approximate bytes of the header and key of an item.
pub(super) const HEADER_AND_KEY_LEN: usize = 32;

/// A key of a batch of operations: [`Guard::prefetch`].
#[derive(Clone, Copy, Debug)]
pub struct BatchKey {
    hash: KeyHash,
    is_written: bool,
    is_on_disk: bool,
    /// The slot of the item that was found in memory, if it is in the home line of the key.
    pub(super) seen: SeenSlot,
}

impl BatchKey {
    /// Creates a key that is looked up.
    #[inline]
    #[must_use]
    pub fn to_read(hash: KeyHash) -> Self {
        Self { hash, is_written: false, is_on_disk: false, seen: SeenSlot::NONE }
    }

    /// Creates a key that is stored or removed.
    #[inline]
    #[must_use]
    pub fn to_write(hash: KeyHash) -> Self {
        Self { is_written: true, ..Self::to_read(hash) }
    }

    /// Returns the hash of the key.
    #[inline]
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        self.hash
    }

    /// Returns whether the last [`Guard::prefetch`] found that the item of a key that is looked up
    /// is probably on disk.
    #[inline]
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.is_on_disk
    }
}

/// Returns the positions of the bits that are 1.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(at)
    })
}

impl Guard<'_> {
    /// Prefetches the memory that operations on these keys access: index and items. Call it for all
    /// keys of a batch, and then perform the operations.
    pub fn prefetch(&self, keys: &mut [BatchKey]) {
        for group in keys.chunks_mut(GROUP) {
            self.prefetch_group(group);
        }
    }

    /// Prefetches in passes over all keys: each reads what the pass before it has prefetched.
    ///
    /// The passes that prefetch lines of the index and items do nothing else. They wait for
    /// translations of addresses most of the time: the shorter the loop, the more keys for which
    /// the processor translates at once.
    fn prefetch_group(&self, keys: &mut [BatchKey]) {
        let Cache { arena, tables, ghost, .. } = self.cache();
        for key in &mut *keys {
            (key.is_on_disk, key.seen) = (false, SeenSlot::NONE);
            tables.prefetch_table(key.hash, key.is_written);
        }
        let mut homes = [None; GROUP];
        for (home, key) in homes.iter_mut().zip(&*keys) {
            *home = Some(tables.home(arena, key.hash));
        }
        let homes = &homes[..keys.len()];
        for home in homes.iter().flatten() {
            home.prefetch();
        }
        // The slot of each key's item in memory; empty while none is known.
        let mut slots = [Slot(0); GROUP];
        // One bit for each key.
        let mut not_found = 0_u64;
        for (at, home) in homes.iter().flatten().enumerate() {
            match tables.look_ahead(arena, *home) {
                Ahead::Found(seen) => (slots[at], keys[at].seen) = (seen.slot, seen),
                Ahead::NotFound => not_found |= 1 << at,
                Ahead::Missing => {}
            }
        }
        for slot in &slots[..keys.len()] {
            arena.prefetch(slot.address(), 1);
        }
        for at in ones(not_found) {
            // The first slot with the key's tag nearly always belongs to the key.
            let Some(found) = tables.find(arena, keys[at].hash, |_| true) else { continue };
            if found.slot.is_on_disk() {
                keys[at].is_on_disk = !keys[at].is_written;
            } else {
                slots[at] = found.slot;
            }
        }
        for at in ones(not_found) {
            arena.prefetch(slots[at].address(), 1);
        }
        for ((slot, key), home) in slots.iter().zip(&*keys).zip(homes.iter().flatten()) {
            if key.is_written {
                home.prefetch_to_write();
                ghost.prefetch(key.hash);
            }
            if !slot.is_empty() {
                self.prefetch_item_of(*slot, key.is_written);
            }
        }
    }

    /// Prefetches the index line of one key.
    #[inline]
    pub(super) fn prefetch_line(&self, hash: KeyHash) {
        self.cache().tables.home(&self.cache().arena, hash).prefetch();
    }

    /// Prefetches the item of a slot, or the memory that a write accesses of the item that it
    /// replaces: header, key and the state of its segment.
    #[inline]
    fn prefetch_item_of(&self, slot: Slot, is_written: bool) {
        let Cache { arena, segments, .. } = self.cache();
        let address = slot.address();
        if !is_written {
            arena.prefetch_item(address, segments.item_len());
            return;
        }
        arena.prefetch_item(address, HEADER_AND_KEY_LEN);
        let segment = segments.segment_of(address);
        segments.prefetch_live(segment);
        if let Some(removed) = self.removed_bits(segment) {
            removed.prefetch(address);
        }
    }
}
