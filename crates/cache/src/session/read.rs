//! Lookups.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hash::KeyHash;
use crate::index::slot::{MAX_FREQUENCY, Slot};
use crate::index::table::Position;
use crate::item::{Header, Item};
use crate::memory::removed::RemovedBits;
use crate::session::prefetch::BatchKey;
use crate::session::state::{Expect, Guard};

impl Guard<'_> {
    /// Returns the item at an address.
    #[inline(always)]
    pub(crate) fn item(&self, address: u64, frequency: u32) -> Item<'_> {
        let Cache { arena, segments, .. } = self.cache();
        let header = Header::read(
            |len| arena.read(&self.epoch, address, len),
            || segments.base_ms(segments.segment_of(address)),
        );
        let bytes = arena.read(&self.epoch, address, header.len());
        Item { bytes, header, frequency, session: self.session.id }
    }

    /// Returns the length of the item that a slot points to if it has this key.
    #[inline]
    pub(crate) fn len_if_key(&self, key: &[u8], slot: Slot) -> Option<usize> {
        let arena = &self.cache().arena;
        Header::len_if_key(|len| arena.read(&self.epoch, slot.address(), len), key)
    }

    /// Returns the position of a key's slot.
    #[inline]
    pub(super) fn position(&self, key: &[u8], hash: KeyHash) -> Option<Position> {
        let Cache { arena, tables, .. } = self.cache();
        tables.find(arena, hash, |slot| self.len_if_key(key, slot).is_some())
    }

    /// Returns whether an item has expired at the time of this guard.
    #[inline]
    pub(crate) fn is_expired(&self, item: &Item<'_>) -> bool {
        item.expires_ms().is_some_and(|at| at <= self.now_ms())
    }

    /// Returns the removed bits of a segment, or `None` if it is the segment of a large item.
    #[inline]
    pub(crate) fn removed_bits(&self, segment: u32) -> Option<RemovedBits<'_>> {
        let Cache { arena, segments, .. } = self.cache();
        let ordinary = !segments.is_large(segment);
        ordinary.then(|| RemovedBits::new(arena, segments.start(segment)))
    }

    /// Returns the item of a key, or `None` if the key has none or it has expired. Counts a read of
    /// the item for eviction, and a hit or a miss in [`Stats`](crate::Stats).
    ///
    /// Returns `None` as well if the item is on disk: see [`take_on_disk`](Self::take_on_disk).
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<Item<'_>> {
        self.get_hashed(key, self.cache().hash(key))
    }

    /// Returns the item of a key as [`get`](Self::get) does, without computing its hash.
    ///
    /// `hash` must be the hash of `key` in this cache. With another one, the result is `None` or
    /// the item of `key`.
    #[inline]
    pub fn get_hashed(&self, key: &[u8], hash: KeyHash) -> Option<Item<'_>> {
        let Some(position) = self.position(key, hash) else {
            let counters = &self.session.counters;
            let evicted = self.cache().ghost.contains(hash);
            let misses = if evicted { &counters.misses_evicted } else { &counters.misses_absent };
            misses.add(1);
            return None;
        };
        if position.slot.is_on_disk() {
            self.note_on_disk(hash, position.slot);
            return None;
        }
        let item = self.item(position.slot.address(), position.slot.frequency());
        if self.is_expired(&item) {
            self.session.counters.misses_expired.add(1);
            return None;
        }
        let Cache { arena, tables, .. } = self.cache();
        self.count_hit(&item, || tables.count_use(arena, hash, position));
        Some(item)
    }

    /// Returns the item of a key as [`get`](Self::get) does, also if it was written after the
    /// prefetch. Starts at the position that [`prefetch`](Self::prefetch) found, and searches the
    /// index if it found no item, or if the item is at another position now. `prefetch` may have
    /// been called under an earlier guard.
    ///
    /// `prefetched` must have the hash of `key` in this cache. With another one, the result is
    /// `None` or the item of `key`.
    #[inline]
    pub fn get_prefetched(&self, key: &[u8], prefetched: &BatchKey) -> Option<Item<'_>> {
        self.try_get_prefetched(key, prefetched).or_else(|| self.get_hashed(key, prefetched.hash()))
    }

    /// Returns the item of a key if it is at the position that [`prefetch`](Self::prefetch) found,
    /// and counts a read of it and a hit. Otherwise returns `None` and counts nothing, although
    /// there may be an item: call [`get_hashed`](Self::get_hashed) then, which searches the index
    /// and counts the hit or miss.
    ///
    /// It is faster than [`get_prefetched`](Self::get_prefetched) if the caller uses the item
    /// before it calls `get_hashed` for other keys: this function is inlined, and the item stays in
    /// registers. Joining both results first loses that. `prefetched` is as for `get_prefetched`.
    #[inline(always)]
    pub fn try_get_prefetched(&self, key: &[u8], prefetched: &BatchKey) -> Option<Item<'_>> {
        let Cache { arena, tables, .. } = self.cache();
        let seen = prefetched.seen;
        let slot = tables.find_seen(arena, prefetched.hash(), seen)?;
        // The address is also in `slot`, but from `seen` the processor knows it earlier.
        let item = self.item(seen.slot.address(), slot.frequency());
        if !item.has_key(key) || self.is_expired(&item) {
            return None;
        }
        self.count_hit(&item, || seen.count_use(arena, slot));
        Some(item)
    }

    /// Counts a hit, and calls `count_use` if the frequency of the item is below the maximum.
    #[inline(always)]
    fn count_hit(&self, item: &Item<'_>, count_use: impl FnOnce()) {
        self.session.counters.hits.add(1);
        if item.frequency < MAX_FREQUENCY {
            count_use();
        }
    }

    /// Returns the item of a key as [`get`](Self::get) does, without counting anything.
    pub fn peek(&self, key: &[u8]) -> Option<Item<'_>> {
        self.peek_hashed(key, self.cache().hash(key)).0
    }

    /// Returns the item of a key as [`peek`](Self::peek) does, and what the index holds, even if it
    /// has expired.
    pub(super) fn peek_hashed(&self, key: &[u8], hash: KeyHash) -> (Option<Item<'_>>, Expect) {
        let Some(position) = self.position(key, hash) else { return (None, Expect::Address(None)) };
        if position.slot.is_on_disk() {
            self.note_on_disk(hash, position.slot);
            return (None, Expect::OnDisk);
        }
        let address = position.slot.address();
        let item = self.item(address, position.slot.frequency());
        let item = if self.is_expired(&item) { None } else { Some(item) };
        (item, Expect::Address(Some(address)))
    }

    /// Returns the same for a write that depends on the item.
    ///
    /// # Errors
    ///
    /// [`Error::OnDisk`] if the item is on disk.
    pub(super) fn current(&self, key: &[u8], hash: KeyHash) -> Result<(Option<Item<'_>>, Expect)> {
        match self.peek_hashed(key, hash) {
            (_, Expect::OnDisk) => Err(Error::OnDisk),
            found => Ok(found),
        }
    }
}
