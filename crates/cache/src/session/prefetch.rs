//! Prefetching for batches of operations, so that the processor waits for the memory of many keys
//! at once.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::index::slot::Slot;
use crate::index::table::Ahead;
use crate::session::read::HEADER_AND_KEY_LEN;
use crate::session::state::Guard;

/// Keys whose memory is prefetched together: so few that the index lines are still in the
/// first-level cache when they are read.
const GROUP: usize = u64::BITS as usize;

/// A key of a batch of operations: [`Guard::prefetch`].
#[derive(Clone, Copy, Debug)]
pub struct BatchKey {
    hash: KeyHash,
    is_written: bool,
    is_on_disk: bool,
}

impl BatchKey {
    /// Creates it for a key that is looked up.
    #[inline]
    #[must_use]
    pub fn to_read(hash: KeyHash) -> Self {
        Self { hash, is_written: false, is_on_disk: false }
    }

    /// Creates it for a key that is stored or removed.
    #[inline]
    #[must_use]
    pub fn to_write(hash: KeyHash) -> Self {
        Self { hash, is_written: true, is_on_disk: false }
    }

    /// Returns the hash of the key.
    #[inline]
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        self.hash
    }

    /// Returns whether [`Guard::prefetch`] found that the item of a key that is looked up is
    /// probably on disk.
    #[inline]
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.is_on_disk
    }
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
    fn prefetch_group(&self, keys: &mut [BatchKey]) {
        let Cache { arena, tables, .. } = self.cache();
        for key in &*keys {
            tables.prefetch_table(key.hash, key.is_written);
        }
        for key in &*keys {
            tables.prefetch_line(arena, key.hash, key.is_written);
        }
        // One bit for each key.
        let mut not_found = 0_u64;
        for (at, key) in keys.iter().enumerate() {
            match tables.look_ahead(arena, key.hash, key.is_written) {
                Ahead::Found(slot) => self.prefetch_item_of(slot, key.is_written),
                Ahead::NotFound => not_found |= 1 << at,
                Ahead::Missing => {}
            }
        }
        while not_found != 0 {
            let key = &mut keys[not_found.trailing_zeros() as usize];
            not_found &= not_found - 1;
            // The first slot with the key's tag nearly always belongs to the key.
            let Some(found) = tables.find(arena, key.hash, |_| true) else { continue };
            if !found.slot.is_on_disk() {
                self.prefetch_item_of(found.slot, key.is_written);
            } else if !key.is_written {
                key.is_on_disk = true;
            }
        }
    }

    /// Prefetches the index line of one key.
    #[inline]
    pub(super) fn prefetch_line(&self, hash: KeyHash) {
        self.cache().tables.prefetch_line(&self.cache().arena, hash, false);
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
