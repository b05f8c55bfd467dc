//! Removing items from the index.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::item::Item;
use crate::session::state::{Expect, Turn};

/// Items whose heads are asked for ahead while all are removed.
const CLEARED_AHEAD: usize = 16;

impl Turn<'_> {
    /// An item of so many bytes is not in the index, or no longer.
    pub(crate) fn note_gone(&self, place: u64, len: usize) {
        let Cache { segments, epochs, .. } = self.cache();
        if let Some(marks) = self.marks(segments.of(place)) {
            marks.set(place);
        }
        segments.remove_live(epochs, place, len);
    }

    /// Removes an item from the index, unless that points elsewhere by now.
    pub(crate) fn take_out(&self, hash: KeyHash, place: u64, item: Item<'_>) -> bool {
        let cache = self.cache();
        let mut table = cache.tables.lock(&cache.arena, hash);
        let Some(position) = table.find(|slot| slot.place() == place) else { return false };
        table.remove(position);
        drop(table);
        self.note_gone(place, item.head.len());
        true
    }

    /// Removes a key; whether it was there.
    pub fn remove(&self, key: &[u8]) -> bool {
        self.remove_hashed(key, self.cache().hash(key))
    }

    /// As [`remove`](Self::remove), with the hash of the key.
    pub fn remove_hashed(&self, key: &[u8], hash: KeyHash) -> bool {
        self.remove_expected(key, hash, Expect::Anything).unwrap_or(false)
    }

    /// Removes a key if the index holds what is expected, and returns whether the key was there.
    /// Returns `None` if the index holds something else.
    pub(super) fn remove_expected(
        &self,
        key: &[u8],
        hash: KeyHash,
        expect: Expect,
    ) -> Option<bool> {
        let Cache { arena, tables, .. } = self.cache();
        let mut table = tables.lock(arena, hash);
        let found = table.find(|slot| self.len_if(key, slot).is_some());
        let found_place = found.map(|position| position.slot.place());
        if expect != Expect::Anything && expect != Expect::Place(found_place) {
            return None;
        }
        let Some(position) = found else { return Some(false) };
        let item = self.item(position.slot.place(), 0);
        table.remove(position);
        drop(table);
        self.note_gone(position.slot.place(), item.head.len());
        let was_there = !self.is_over(&item);
        let counters = &self.session.counters;
        if was_there { &counters.removed } else { &counters.expired }.add(1);
        Some(was_there)
    }

    /// Removes everything that is there now.
    pub fn clear(&self) {
        let Cache { arena, tables, .. } = self.cache();
        for number in 0..tables.count() {
            let slots = tables.clear(arena, number);
            for (at, slot) in slots.iter().enumerate() {
                if let Some(ahead) = slots.get(at + CLEARED_AHEAD) {
                    arena.prefetch(ahead.place(), 1);
                }
                let item = self.item(slot.place(), 0);
                self.note_gone(slot.place(), item.head.len());
            }
        }
    }
}
