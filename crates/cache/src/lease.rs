//! Items that stay after a turn.

use crate::cache::Cache;
use crate::epoch::Epochs;
use crate::item::{Head, Item};
use crate::segments::{SEALED, Segments};
use crate::session::{NO_SESSION, Turn};
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
    place: u64,
    head: Head,
    frequency: u32,
}

impl Lease {
    /// The item.
    #[inline]
    pub fn item(&self) -> Item<'_> {
        let bytes = self.cache.arena.leased(self, self.place, self.head.len());
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
        segments.let_go(epochs, segments.of(self.place));
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("len", &self.head.len()).finish_non_exhaustive()
    }
}

impl Segments {
    /// Records that the item of a large segment was removed, so that only leases keep its memory.
    #[cold]
    pub(crate) fn note_kept(&self, number: u32) {
        let meta = &self.metas[number as usize];
        if !meta.is_kept.swap(true, Ordering::SeqCst) {
            self.kept_by_leases.fetch_add(self.weight(number), Ordering::Relaxed);
        }
        // The last of them may have ended meanwhile.
        if meta.live.load(Ordering::SeqCst) & !SEALED == 0 {
            self.note_not_kept(number);
        }
    }

    fn note_not_kept(&self, number: u32) {
        if self.metas[number as usize].is_kept.swap(false, Ordering::SeqCst) {
            self.kept_by_leases.fetch_sub(self.weight(number), Ordering::Relaxed);
        }
    }

    /// Keeps the memory of a segment for a reader, without a time limit. The caller must hold a
    /// guard or another lease under which it sees an item of the segment.
    pub(crate) fn hold(&self, number: u32) {
        self.metas[number as usize].live.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a [`hold`](Self::hold).
    pub(crate) fn let_go(&self, epochs: &Epochs, number: u32) {
        let before = self.metas[number as usize].live.fetch_sub(1, Ordering::AcqRel);
        if before == SEALED | 1 {
            if self.is_large(number) {
                self.note_not_kept(number);
            }
            self.retire(epochs, number);
        }
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
        cache.segments.hold(cache.segments.of(place));
        let Item { head, frequency, .. } = *item;
        cache.leased.fetch_add(head.len() as u64, Ordering::Relaxed);
        Lease { cache: Arc::clone(cache), place, head, frequency }
    }
}

#[cfg(test)]
mod tests {
    use super::Epochs;
    use super::Segments;
    use crate::segments::Queue;

    /// Leases of a segment that is retired come and go, and the last one is late.
    #[test]
    fn a_segment_is_freed_once() {
        let segments = Segments::new(16 << 20, 0);
        let epochs = Epochs::new();
        let place = epochs.enter().expect("a slot");
        let free = || {
            segments.room(&epochs);
            segments.lock().free.len()
        };
        let (segment, tail) = segments.open(&epochs, 0, 0).expect("a segment");
        let number = segment.number;
        segments.add_live(number, 10, None);
        segments.seal(&epochs, segment, &tail, Queue::Small);
        let pin = epochs.pin(place);
        segments.remove_live(&epochs, tail.place(), 10);
        segments.hold(number);
        segments.let_go(&epochs, number);
        assert_eq!(segments.lock().retired_count(), 1, "it is retired already");
        segments.hold(number);
        assert_eq!(free(), 0, "somebody is in a turn");
        drop(pin);
        assert_eq!(free(), 0, "somebody has a lease");
        segments.hold(number);
        segments.let_go(&epochs, number);
        assert_eq!(free(), 0, "somebody has a lease still");
        segments.let_go(&epochs, number);
        assert_eq!(free(), 1);
        // Somebody who ended a lease before it was freed, and comes to retire it now.
        segments.retire(&epochs, number);
        assert_eq!(segments.lock().retired_count(), 0);
        assert_eq!(free(), 1);
    }
}
