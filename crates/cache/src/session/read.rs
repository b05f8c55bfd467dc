//! Lookups.

use crate::cache::Cache;
use crate::hash::KeyHash;
use crate::index::slot::{FREQUENT, Slot};
use crate::index::table::Position;
use crate::item::{Head, Item};
use crate::memory::removed::Marks;
use crate::session::state::{Expect, Turn};

/// Bytes of an item's head and of its key, about.
const HEAD_AND_KEY: usize = 32;

impl Turn<'_> {
    /// Asks for the line of the index that a key's lookup begins with. With many keys, first this
    /// for all, then [`prefetch_item`](Self::prefetch_item) for all, then the lookups.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        self.cache().tables.prefetch(&self.cache().arena, hash);
    }

    /// As [`prefetch`](Self::prefetch), ahead of a write. Then comes
    /// [`prefetch_head`](Self::prefetch_head).
    #[inline]
    pub fn prefetch_to_write(&self, hash: KeyHash) {
        self.cache().tables.prefetch_to_write(&self.cache().arena, hash);
    }

    /// Asks for the item that a key's slot of the index points at.
    #[inline]
    pub fn prefetch_item(&self, hash: KeyHash) {
        let Cache { arena, tables, segments, .. } = self.cache();
        // The first that has the key's tag: nearly always the key's own.
        if let Some(found) = tables.find(arena, hash, |_| true) {
            arena.prefetch_item(found.slot.place(), segments.item_len());
        }
    }

    /// As [`prefetch_item`](Self::prefetch_item), for an item that is to be replaced: of that, only
    /// the key is looked at.
    #[inline]
    pub fn prefetch_head(&self, hash: KeyHash) {
        let Cache { arena, tables, segments, .. } = self.cache();
        if let Some(found) = tables.find(arena, hash, |_| true) {
            let place = found.slot.place();
            arena.prefetch_item(place, HEAD_AND_KEY);
            let segment = segments.of(place);
            segments.prefetch_live(segment);
            if let Some(marks) = self.marks(segment) {
                marks.prefetch(place);
            }
        }
    }

    /// The item that begins at this place.
    #[inline]
    pub(crate) fn item(&self, place: u64, frequency: u32) -> Item<'_> {
        let Cache { arena, segments, .. } = self.cache();
        let head = Head::read(
            |len| arena.read(&self.pin, place, len),
            || segments.epoch_ms(segments.of(place)),
        );
        let bytes = arena.read(&self.pin, place, head.len());
        Item { bytes, head, frequency, session: self.session.number }
    }

    /// Bytes of the item that a slot points at, if it has this key.
    #[inline]
    pub(crate) fn len_if(&self, key: &[u8], slot: Slot) -> Option<usize> {
        let arena = &self.cache().arena;
        Head::len_if(|len| arena.read(&self.pin, slot.place(), len), key)
    }

    #[inline]
    fn position(&self, key: &[u8], hash: KeyHash) -> Option<Position> {
        let Cache { arena, tables, .. } = self.cache();
        tables.find(arena, hash, |slot| self.len_if(key, slot).is_some())
    }

    #[inline]
    pub(crate) fn is_over(&self, item: &Item<'_>) -> bool {
        item.expires_ms().is_some_and(|at| at <= self.now_ms())
    }

    /// Which items of a segment are gone, if it is an ordinary one.
    #[inline]
    pub(crate) fn marks(&self, segment: u32) -> Option<Marks<'_>> {
        let Cache { arena, segments, .. } = self.cache();
        let ordinary = !segments.is_large(segment);
        ordinary.then(|| Marks::new(arena, segments.start(segment)))
    }

    /// The item of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<Item<'_>> {
        self.get_hashed(key, self.cache().hash(key))
    }

    /// As [`get`](Self::get), with the hash of the key.
    #[inline]
    pub fn get_hashed(&self, key: &[u8], hash: KeyHash) -> Option<Item<'_>> {
        let counters = &self.session.counters;
        let Some(position) = self.position(key, hash) else {
            let evicted = self.cache().ghost.contains(hash);
            let misses = if evicted { &counters.misses_evicted } else { &counters.misses_absent };
            misses.add(1);
            return None;
        };
        let frequency = position.slot.frequency();
        let item = self.item(position.slot.place(), frequency);
        if self.is_over(&item) {
            counters.misses_expired.add(1);
            return None;
        }
        counters.hits.add(1);
        if frequency < FREQUENT {
            self.cache().tables.count_use(&self.cache().arena, hash, position);
        }
        Some(item)
    }

    /// The item of a key, without counting a lookup or a use.
    pub fn peek(&self, key: &[u8]) -> Option<Item<'_>> {
        self.peek_hashed(key, self.cache().hash(key)).0
    }

    /// As [`peek`](Self::peek), and what the index holds, expired or not.
    pub(super) fn peek_hashed(&self, key: &[u8], hash: KeyHash) -> (Option<Item<'_>>, Expect) {
        let Some(position) = self.position(key, hash) else { return (None, Expect::Place(None)) };
        let place = position.slot.place();
        let item = self.item(place, position.slot.frequency());
        let item = if self.is_over(&item) { None } else { Some(item) };
        (item, Expect::Place(Some(place)))
    }
}
