//! Removing items from the index.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::item::Item;
use crate::session::state::{Expect, Guard};

/// Distance in items between the item that is removed and the one that is prefetched, while all are
/// removed.
const PREFETCH_DISTANCE: usize = 16;

impl Guard<'_> {
    /// Records that the index does not point to an item of `len` bytes any more, or never did.
    pub(crate) fn record_removed(&self, address: u64, len: usize) {
        let Cache { segments, epochs, .. } = self.cache();
        if let Some(removed) = self.removed_bits(segments.segment_of(address)) {
            removed.set(address);
        }
        segments.remove_live(epochs, address, len);
    }

    /// Removes an item from the index. Returns `false` if the index does not point to it any more.
    pub(crate) fn remove_at(&self, hash: KeyHash, address: u64, item: Item<'_>) -> bool {
        let cache = self.cache();
        let mut table = cache.tables.lock(&cache.arena, hash);
        let Some(position) = table.find_address(address) else { return false };
        table.remove(position);
        drop(table);
        self.record_removed(address, item.header.len());
        true
    }

    /// Removes the item of a key. Returns whether there was an item that has not expired. Needs no
    /// memory, so it always succeeds, unless the item is on disk: see
    /// [`take_on_disk`](Self::take_on_disk).
    pub fn remove(&self, key: &[u8]) -> bool {
        self.remove_hashed(key, self.cache().hash(key))
    }

    /// Removes a key as [`remove`](Self::remove) does, for a key whose hash is known.
    pub fn remove_hashed(&self, key: &[u8], hash: KeyHash) -> bool {
        self.remove_expected(key, hash, Expect::Anything).unwrap_or(false)
    }

    /// Removes a key if the index holds what is expected. Returns whether the key had an item that
    /// has not expired, or `None` if the index holds something else.
    pub(super) fn remove_expected(
        &self,
        key: &[u8],
        hash: KeyHash,
        expect: Expect,
    ) -> Option<bool> {
        let Cache { arena, tables, .. } = self.cache();
        let mut table = tables.lock(arena, hash);
        let found = table.find(|slot| self.len_if_key(key, slot).is_some());
        let slot = found.map(|position| position.slot);
        if let Some(slot) = slot.filter(|slot| slot.is_on_disk()) {
            self.note_on_disk(hash, slot);
        }
        if self.session.needs_disk.get() {
            return Some(false);
        }
        if !expect.is_met(slot, || self.cache().may_restore(hash)) {
            return None;
        }
        self.note_changed(hash);
        let Some(position) = found else { return Some(false) };
        let item = self.item(position.slot.address(), 0);
        self.note_item_removed(position.slot.address());
        table.remove(position);
        drop(table);
        self.record_removed(position.slot.address(), item.header.len());
        let was_there = !self.is_expired(&item);
        let counters = &self.session.counters;
        if was_there { &counters.removed } else { &counters.expired }.add(1);
        Some(was_there)
    }

    /// Removes all items, and counts none of them as removed. Items that other sessions store
    /// meanwhile may remain, unless this guard is exclusive.
    pub fn clear(&self) {
        let Cache { arena, tables, .. } = self.cache();
        self.cache().note_all_changed();
        if let Some(records) = &self.cache().records {
            records.records.note_all_removed();
        }
        tables.clear(arena, self.exclusive.is_some(), |slots| {
            let in_memory: Vec<_> = slots.iter().filter(|slot| !slot.is_on_disk()).collect();
            for (at, slot) in in_memory.iter().enumerate() {
                if let Some(ahead) = in_memory.get(at + PREFETCH_DISTANCE) {
                    arena.prefetch(ahead.address(), 1);
                }
                let item = self.item(slot.address(), 0);
                self.record_removed(slot.address(), item.header.len());
            }
        });
        if let Some(records) = self.cache().records.as_ref().filter(|_| self.exclusive.is_none()) {
            // Items may have been written to disk meanwhile.
            records.records.note_all_removed();
        }
    }
}
