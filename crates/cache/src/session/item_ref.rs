//! Items that stay after a turn.

use crate::cache::Cache;
use crate::item::{Head, Item, NO_SESSION};
use crate::memory::meta::Hold;
use crate::session::state::Turn;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An item that stays as it is until this is dropped, in whatever thread, whatever becomes of its
/// key meanwhile: made by [`Turn::lease`].
///
/// It keeps the segment that the item lies in, which is the item alone if that is large, and up to
/// 2 MiB otherwise. As long as it does, the cache has that much less memory for others: lease what
/// is long and let go of it soon, and copy what is short, or where much is leased already
/// ([`Cache::leased`]).
pub struct Lease {
    cache: Arc<Cache>,
    hold: Hold,
    place: u64,
    head: Head,
    frequency: u32,
}

impl Lease {
    /// The item.
    #[inline]
    pub fn item(&self) -> Item<'_> {
        let bytes = self.cache.arena.read_held(&self.hold, self.place, self.head.len());
        Item { bytes, head: self.head, frequency: self.frequency, session: NO_SESSION }
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.item().value()
    }
}

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        self.value()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Cache { segments, epochs, leased, .. } = &*self.cache;
        leased.fetch_sub(self.head.len() as u64, Ordering::Relaxed);
        segments.let_go(epochs, &self.hold);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("len", &self.head.len()).finish_non_exhaustive()
    }
}

impl Turn<'_> {
    /// Whether an item has a segment of its own, so that a lease keeps nothing else.
    pub fn is_large(&self, item: &Item<'_>) -> bool {
        let segments = &self.cache().segments;
        let place = self.cache().arena.place_of(item.bytes);
        place.is_some_and(|place| segments.is_large(segments.of(place)))
    }

    /// Keeps an item that was read after the turn, until the lease is dropped: to send it from
    /// where it lies, say. `cache` is the cache of this turn.
    ///
    /// # Panics
    ///
    /// If cache or item are another cache's.
    pub fn lease(&self, cache: &Arc<Cache>, item: &Item<'_>) -> Lease {
        assert!(std::ptr::eq(&raw const **cache, self.cache()), "the cache of this turn");
        let place = cache.arena.place_of(item.bytes).expect("an item of this cache");
        // The item is seen in a turn, or by another lease, for as long as this takes.
        let hold = cache.segments.hold(cache.segments.of(place));
        let Item { head, frequency, .. } = *item;
        cache.leased.fetch_add(head.len() as u64, Ordering::Relaxed);
        Lease { cache: Arc::clone(cache), hold, place, head, frequency }
    }
}
