//! In-place receive: values that are received in pieces, directly into the memory of the cache.
//!
//! A [`PendingValue`] has the segment of a large item before there is an item: room for a header
//! and a key, followed by the value as far as it was received. [`Guard::set`] and similar functions
//! recognize the value of a pending value by its address. They write header and key in front of it
//! and point the index there. Nothing is copied.
//!
//! ```text
//! pending value:  | room for header and key | value, as far as received        |
//! item:           |        | header and key | value                            |
//! ```
//!
//! A pending value is charged to the budget as it grows, one granule at a time. So a client that
//! announces a long value and sends little uses little memory. A pending value has a counted
//! reference to its segment: the bytes stay even if the item is removed.

use crate::cache::Cache;
use crate::config::Eviction;
use crate::error::{Error, Result};
use crate::item::Header;
use crate::memory::arena::{Arena, Tail};
use crate::memory::large::page_rounded;
use crate::memory::meta::{Queue, Segment, SegmentRef};
use crate::memory::segments::Segments;
use crate::session::state::Guard;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A value without a key that is received in pieces into the memory of the cache. Created by
/// [`Guard::begin_value`].
///
/// Once it is complete, pass its [`value`](Self::value) to [`Guard::set`], [`Guard::set_by`] or
/// [`Guard::set_all`], which turn it into an item: without a copy if the item
/// [is large](Guard::is_large). If it is dropped before that, its memory is freed.
pub struct PendingValue {
    cache: Arc<Cache>,
    segment: Segment,
    segment_ref: SegmentRef,
    tail: Tail,
    /// Bytes before the value.
    prefix_len: u32,
    /// Bytes that are charged to the budget.
    charged: u64,
}

impl PendingValue {
    /// Returns the number of bytes of the value that are still missing.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.tail.remaining()
    }

    /// Appends the first of these bytes to the value, and returns how many: at most up to the end
    /// of the value or of the current granule. Call it again with the rest until nothing
    /// [remains](Self::remaining).
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if there is no memory for the next granule under this guard. No byte was
    /// appended then. [`Guard::renew`] frees memory if it can.
    ///
    /// # Panics
    ///
    /// If `guard` belongs to another cache.
    pub fn push(&mut self, guard: &Guard<'_>, bytes: &[u8]) -> Result<usize> {
        assert!(std::ptr::eq(&raw const *self.cache, guard.cache()), "the cache of this guard");
        let used = u64::from(self.tail.used());
        if used == self.charged && self.remaining() > 0 {
            self.charge_next(guard)?;
        }
        let room = self.remaining().min((self.charged - used) as usize);
        let taken = &bytes[..bytes.len().min(room)];
        self.cache.arena.allocate(&mut self.tail, taken.len()).copy_from_slice(taken);
        Ok(taken.len())
    }

    /// Charges the next granule, or what is left of the value, to the budget.
    fn charge_next(&mut self, guard: &Guard<'_>) -> Result<()> {
        let step = u64::from(self.cache.segments.len());
        let step = step.min(page_rounded(self.len()) - self.charged);
        if !self.cache.charge_pending(step) {
            guard.request_memory(step as usize);
            return Err(Error::Full);
        }
        self.charged += step;
        Ok(())
    }

    /// Returns the value, or `None` if it is not complete.
    #[inline]
    pub fn value(&self) -> Option<&[u8]> {
        if self.remaining() > 0 {
            return None;
        }
        let start = self.cache.segments.start(self.segment.number) + u64::from(self.prefix_len);
        Some(self.cache.arena.read_referenced(&self.segment_ref, start, self.value_len()))
    }

    /// Returns the length of the complete value in bytes.
    pub fn value_len(&self) -> usize {
        self.len() - self.prefix_len as usize
    }

    fn len(&self) -> usize {
        self.tail.used() as usize + self.tail.remaining()
    }
}

impl Drop for PendingValue {
    fn drop(&mut self) {
        let Cache { segments, epochs, pending_bytes, .. } = &*self.cache;
        pending_bytes.fetch_sub(self.len() as u64, Ordering::Relaxed);
        if segments.is_pending(self.segment.number) {
            self.cache.discard_pending(self.segment.number, (self.charged, self.len()));
        } else {
            segments.release_ref(epochs, &self.segment_ref);
        }
    }
}

impl fmt::Debug for PendingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingValue")
            .field("value_len", &self.value_len())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

/// Where a large item was written, while the index does not point to it.
pub(crate) enum LargeAllocation {
    /// In a new segment.
    Segment(Segment, Tail),
    /// In the segment of a pending value, with the addresses of that value.
    Pending(Segment, Range<u64>),
}

impl Guard<'_> {
    /// Begins a pending value of `value_len` bytes, whose key will have at most `max_key_len`
    /// bytes. Its memory is charged to the budget as bytes are pushed, one granule
    /// ([`Cache::granule_len`]) at a time. `cache` must be the cache of this guard.
    ///
    /// # Errors
    ///
    /// - [`Error::TooLong`] if the value exceeds [`Cache::max_value_len`].
    /// - [`Error::Full`] if there is no memory for the first granule under this guard, if there can
    ///   never be memory for the whole value, or if all pending values together would exceed 5/8 of
    ///   the budget. Without eviction, also if there is no memory for the whole value now.
    ///
    /// # Panics
    ///
    /// If `cache` is not the cache of this guard.
    pub fn begin_value(
        &self,
        cache: &Arc<Cache>,
        max_key_len: usize,
        value_len: usize,
    ) -> Result<PendingValue> {
        assert!(std::ptr::eq(&raw const **cache, self.cache()), "the cache of this guard");
        let max = cache.max_value_len();
        if value_len > max {
            return Err(Error::TooLong { what: "value", len: value_len, max });
        }
        let prefix_len = Header::MAX_LEN + max_key_len.min(Cache::MAX_KEY_LEN);
        let len = prefix_len + value_len;
        let pending_bytes =
            cache.pending_bytes.fetch_add(len as u64, Ordering::Relaxed) + len as u64;
        let may_begin =
            pending_bytes <= Segments::max_large_bytes(cache.memory()) && self.may_fit(len);
        let begun =
            may_begin.then(|| cache.segments.open_pending(len, prefix_len as u32)).flatten();
        let Some((segment, tail, segment_ref)) = begun else {
            cache.pending_bytes.fetch_sub(len as u64, Ordering::Relaxed);
            return Err(Error::Full);
        };
        let huge = cache.segments.huge_page_bytes(page_rounded(len));
        if huge > 0 {
            cache.arena.prefer_huge(tail.address(), huge, true);
        }
        let (cache, prefix_len) = (Arc::clone(cache), prefix_len as u32);
        let mut pending =
            PendingValue { cache, segment, segment_ref, tail, prefix_len, charged: 0 };
        pending.charge_next(self)?;
        pending.cache.arena.allocate(&mut pending.tail, prefix_len as usize);
        Ok(pending)
    }

    /// Returns whether a pending value of this length will fit: with eviction, if it can ever fit;
    /// otherwise if it fits now.
    fn may_fit(&self, len: usize) -> bool {
        let Cache { segments, epochs, eviction, .. } = self.cache();
        let fits = match eviction {
            Eviction::S3Fifo => segments.could_ever_fit(len, self.cache().reserved_for_moves()),
            Eviction::None => segments.fits_large(epochs, len, self.cache().reserved_for_moves()),
        };
        if !fits {
            // Pages may have to be returned to the system first.
            self.request_memory(len);
        }
        fits
    }

    /// Writes header and key in front of a pending value if `value` is one. Returns the address of
    /// the item, or `None` for other values.
    pub(crate) fn convert_value(
        &self,
        key: &[u8],
        value: &[u8],
        header: &Header,
    ) -> Option<(u64, LargeAllocation)> {
        let Cache { arena, segments, .. } = self.cache();
        let (at, before) = (arena.address_of(value)?, header.value().start);
        let segment = segments.convert_pending((at, value.len()), before)?;
        let address = at - before as u64;
        // The bytes in front of the value belong to the thread that converted it.
        let mut tail = Arena::tail(address, before as u32);
        header.write(arena.allocate(&mut tail, before), key, 0);
        segments.add_live(segment.number, header.len(), header.metadata.expires_ms);
        Some((address, LargeAllocation::Pending(segment, at..at + value.len() as u64)))
    }

    /// Completes [`convert_value`](Self::convert_value): adds the segment to a queue if the item
    /// was published, and otherwise turns the item back into a pending value.
    pub(crate) fn finish_value(
        &self,
        (address, len): (u64, usize),
        (segment, value): (Segment, Range<u64>),
        queue: Option<Queue>,
    ) {
        let Cache { segments, epochs, .. } = self.cache();
        let start = segments.start(segment.number);
        if let Some(queue) = queue {
            segments.enqueue(epochs, segment, (value.end - start) as u32, queue);
        } else {
            segments.remove_live(epochs, address, len);
            segments.revert_pending(segment.number, value.start - start);
        }
    }
}
