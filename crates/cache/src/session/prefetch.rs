//! Prefetching for batches of operations, so that the processor waits for the memory of many keys
//! at once.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::index::probe::{ProbeLine, Probed, SeenSlot};
use crate::index::slot::Slot;
use crate::session::state::Guard;

/// Keys whose memory is prefetched together: so few that it is still in the second-level cache when
/// it is accessed.
const GROUP: usize = u64::BITS as usize;

/// Approximate bytes of the header and key of an item.
pub(super) const HEADER_AND_KEY_LEN: usize = 32;

/// The hash of a key, whether it will be written, and what the last [`Guard::prefetch`] found.
#[derive(Clone, Copy, Debug)]
pub struct BatchKey {
    hash: KeyHash,
    is_written: bool,
    is_on_disk: bool,
    /// The slot of the item that the last prefetch found in memory. Its position is known only if
    /// it is in the home line of the key or the next one.
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
    /// keys of a batch, and then perform the operations. Records in each key where its item is, for
    /// [`get_prefetched`](Self::get_prefetched), [`try_get_prefetched`](Self::try_get_prefetched)
    /// and [`is_on_disk`](BatchKey::is_on_disk). Counts nothing.
    ///
    /// Batches of about 64 keys are best: fewer overlap fewer waits for memory, and the items of
    /// more leave the second-level cache before they are used. Of a long item, the first few lines
    /// are prefetched.
    pub fn prefetch(&self, keys: &mut [BatchKey]) {
        for group in keys.chunks_mut(GROUP) {
            self.prefetch_group(group);
        }
    }

    /// Prefetches in passes over all keys: each reads what the pass before it has prefetched.
    ///
    /// The passes that prefetch home lines and items do nothing else. They wait for
    /// translations of addresses most of the time: the shorter the loop, the more keys for which
    /// the processor translates at once.
    fn prefetch_group(&self, keys: &mut [BatchKey]) {
        let Cache { arena, tables, ghost, .. } = self.cache();
        for key in &mut *keys {
            (key.is_on_disk, key.seen) = (false, SeenSlot::NONE);
            tables.prefetch_table(key.hash, key.is_written);
        }
        let mut lines = [None; GROUP];
        for (line, key) in lines.iter_mut().zip(&*keys) {
            *line = Some(tables.home(arena, key.hash));
        }
        let lines = &mut lines[..keys.len()];
        for line in lines.iter().flatten() {
            line.prefetch();
        }
        let later = self.probe_lines(lines, keys);
        for at in ones(later) {
            arena.prefetch(keys[at].seen.slot.address(), 1);
        }
        for (key, line) in keys.iter().zip(lines.iter().flatten()) {
            if key.is_written {
                line.prefetch_to_write();
                ghost.prefetch(key.hash);
            }
            if !key.seen.slot.is_empty() {
                self.prefetch_item_of(key.seen.slot, key.is_written);
            }
        }
    }

    /// Finds the slots of the keys, and prefetches the first cache line of each item whose slot is
    /// in a home line. Replaces each home line that has overflowed by the next line, and searches
    /// tables for what is not there. Returns a bit for each key whose slot was not in its home
    /// line: the caller prefetches their items.
    fn probe_lines<'a>(
        &'a self,
        lines: &mut [Option<ProbeLine<'a>>],
        keys: &mut [BatchKey],
    ) -> u64 {
        let Cache { arena, tables, .. } = self.cache();
        let (mut overflowing, mut to_find) = (0, 0);
        for (at, line) in lines.iter().flatten().enumerate() {
            match line.probe() {
                Probed::Found(seen) => keys[at].seen = seen,
                Probed::Overflow => overflowing |= 1 << at,
                Probed::NotFound => to_find |= u64::from(tables.has_disk()) << at,
            }
        }
        for at in ones(overflowing) {
            let Some(line) = &mut lines[at] else { continue };
            *line = line.next(arena);
            line.prefetch();
        }
        for key in &*keys {
            arena.prefetch(key.seen.slot.address(), 1);
        }
        for at in ones(overflowing) {
            match lines[at].map(ProbeLine::probe) {
                Some(Probed::Found(seen)) => keys[at].seen = seen,
                Some(Probed::NotFound) if !tables.has_disk() => {}
                _ => to_find |= 1 << at,
            }
        }
        for at in ones(to_find) {
            // The first slot with the key's tag nearly always belongs to the key.
            let Some(found) = tables.find(arena, keys[at].hash, |_| true) else { continue };
            if found.slot.is_on_disk() {
                keys[at].is_on_disk = !keys[at].is_written;
            } else {
                keys[at].seen = SeenSlot::without_position(found.slot);
            }
        }
        overflowing | to_find
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
