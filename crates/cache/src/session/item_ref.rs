//! Item references: items that stay in memory after the epoch guard ends.

use crate::cache::Cache;
use crate::item::{Header, Item, NO_SESSION};
use crate::memory::meta::SegmentRef;
use crate::session::state::Guard;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A reference to an item that keeps its memory until the reference is dropped, in any thread.
/// Created by [`Guard::item_ref`]. The item does not change, even if its key is replaced, removed
/// or evicted.
///
/// The reference keeps the whole segment that contains the item: up to 2 MiB, or exactly the item
/// if it [is large](Guard::is_large). That memory is not available to other items. So use
/// references for large items and for a short time. Copy other items, and copy large ones if many
/// bytes are referenced already ([`Cache::referenced_bytes`]).
pub struct ItemRef {
    cache: Arc<Cache>,
    segment_ref: SegmentRef,
    address: u64,
    header: Header,
    frequency: u32,
}

impl ItemRef {
    /// Returns the item.
    #[inline]
    pub fn item(&self) -> Item<'_> {
        let bytes =
            self.cache.arena.read_referenced(&self.segment_ref, self.address, self.header.len());
        Item { bytes, header: self.header, frequency: self.frequency, session: NO_SESSION }
    }

    /// Returns the value of the item.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.item().value()
    }
}

impl AsRef<[u8]> for ItemRef {
    fn as_ref(&self) -> &[u8] {
        self.value()
    }
}

impl Drop for ItemRef {
    fn drop(&mut self) {
        let Cache { segments, epochs, referenced_bytes, .. } = &*self.cache;
        referenced_bytes.fetch_sub(self.header.len() as u64, Ordering::Relaxed);
        segments.release_ref(epochs, &self.segment_ref);
    }
}

impl fmt::Debug for ItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemRef").field("len", &self.header.len()).finish_non_exhaustive()
    }
}

impl Guard<'_> {
    /// Returns whether an item has a segment of its own, so that an item reference keeps no other
    /// memory: it is longer than half an ordinary segment. Returns `false` for an item of another
    /// cache.
    pub fn is_large(&self, item: &Item<'_>) -> bool {
        let segments = &self.cache().segments;
        let address = self.cache().arena.address_of(item.bytes);
        address.is_some_and(|address| segments.is_large(segments.segment_of(address)))
    }

    /// Returns a reference to an item, which keeps it after this guard ends, for example to send it
    /// without a copy. `cache` must be the cache of this guard.
    ///
    /// # Panics
    ///
    /// If `cache` or the item belongs to another cache.
    pub fn item_ref(&self, cache: &Arc<Cache>, item: &Item<'_>) -> ItemRef {
        assert!(std::ptr::eq(&raw const **cache, self.cache()), "the cache of this guard");
        let address = cache.arena.address_of(item.bytes).expect("an item of this cache");
        // This guard or another reference keeps the item while the reference is added.
        let segment_ref = cache.segments.acquire_ref(cache.segments.segment_of(address));
        let Item { header, frequency, .. } = *item;
        cache.referenced_bytes.fetch_add(header.len() as u64, Ordering::Relaxed);
        ItemRef { cache: Arc::clone(cache), segment_ref, address, header, frequency }
    }
}
