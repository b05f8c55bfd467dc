//! The segments of a cache: their states and the memory limit.
//!
//! ```text
//! free ──> open (a session writes it) ──> sealed, in a queue ──> reclaimed ──> retired ──> free
//! ```
//!
//! A segment is retired when the index points to nothing in it and it has no counted references. It
//! is free once all guards that began earlier have ended. A reference that is added to a retired
//! segment under such a guard keeps it; when that reference ends, the segment is retired again.
//!
//! A large item has a segment of its own, which is as long as the item: see `large.rs`. Before
//! there is an item, the segment can contain a pending value: see `pending.rs`.
//!
//! The methods of [`Segments`] in this file read state and update the limit. Other files of this
//! folder contain those that move segments from one state to the next.

use crate::memory::arena::{HUGE_PAGE, PAGE, prefetch_to_write};
use crate::memory::dirty::DirtyPages;
use crate::memory::expiry_queue::ExpiryQueue;
use crate::memory::list::List;
use crate::memory::meta::{Meta, Metas, SPARSE_LISTS, Segment};
use crate::memory::removed::removed_bits_len;
use crate::memory::runs::FreeRuns;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Minimum length of a large item that is backed by huge pages; writing it then takes a third of
/// the time. Each such item is a separate mapping for the system, of which a process can have
/// 65,530. Therefore it must also have one of `HUGE_BUDGET_RATIO` bytes of the budget.
const MIN_HUGE_BYTES: u64 = 16 << 20;

const HUGE_BUDGET_RATIO: u64 = 4096;

/// Minimum and maximum bytes of an ordinary segment.
const MIN_SEGMENT_LEN: u64 = 256 << 10;

const MAX_SEGMENT_LEN: u64 = 2 << 20;

/// Number of segments in the budget, unless they would be too short or too long.
const TARGET_SEGMENTS: u64 = 1024;

/// For each free segment that gets memory in advance, as many are in use. Otherwise a cache with
/// little content would mostly consist of free segments.
const MIN_IN_USE_RATIO: u32 = 64;

/// Bytes of address space for large items, as a multiple of the budget. This suffices for items
/// whose lengths differ by up to a factor of 8,192: see `runs.rs`.
const LARGE_ADDRESS_RATIO: u64 = 13;

/// Maximum bytes of address space, since a slot of the index has 40 bits for an address.
const MAX_ADDRESSES: u64 = 1 << 40;

/// State of all segments that changes under the lock.
#[derive(Default)]
pub(crate) struct Shared {
    /// Free segments that have memory.
    pub(crate) free: Vec<u32>,
    /// Free segments whose memory was returned to the system.
    pub(crate) free_unbacked: Vec<u32>,
    /// The first segment that was never used; all after it were not, either.
    pub(super) next_unused: u32,
    /// Number of free segments that should have memory; 0 without a prefill thread.
    pub(crate) prefill_target: u32,
    /// Segments that are getting memory: neither free nor in use.
    pub(crate) populating: u32,
    /// Retired segments and the epochs in which they were retired, in order.
    pub(super) retired: VecDeque<(u64, u32)>,
    /// Bytes of retired segments, and of retired large items among them.
    pub(super) retired_bytes: u64,
    pub(crate) retired_large_bytes: u64,
    /// Number of times that memory became free, or dirty so that any session can free it.
    pub(crate) freed: u64,
    /// The eviction queues: small and main.
    pub(super) queues: [List; 2],
    /// Bytes of the budget that the segments in each queue are charged for.
    pub(super) queued_bytes: [u64; 2],
    /// Segments in a queue that memory can be freed of, by their live sixteenths.
    pub(super) sparse: [List; SPARSE_LISTS],
    /// Number of ordinary segments that are sealed and not retired.
    pub(super) sealed: u64,
    /// Sum of their live sixteenths.
    pub(super) live_sixteenths: u64,
    /// Sealed segments with expiring items.
    pub(crate) expiring: ExpiryQueue,
    /// Number of entries of the expiry queue that causes the next purge.
    pub(super) purge_at: usize,
    /// Bytes of the budget that are reserved for other purposes than items.
    reserved_bytes: u64,
    /// Bytes of the budget that large items and their dirty pages use.
    pub(crate) large_bytes: u64,
    /// Free addresses for large items.
    pub(crate) free_runs: FreeRuns,
    /// Pages of freed large items that were not returned to the system yet.
    pub(crate) dirty: VecDeque<DirtyPages>,
    pub(crate) dirty_bytes: u64,
    /// Number of slices of dirty pages that threads are returning to the system.
    pub(crate) releases_in_flight: u32,
}

#[cfg(test)]
impl Shared {
    pub(crate) fn retired_count(&self) -> usize {
        self.retired.len()
    }
}

/// All segments of a cache.
pub(crate) struct Segments {
    pub(super) len: u32,
    shift: u32,
    /// Number of ordinary segments.
    count: u32,
    /// State of ordinary segments, and of the granules for large items after them.
    pub(crate) metas: Metas,
    /// Number of ordinary segments that may be in use: fewer than there are while large items or
    /// reservations use part of the budget. Changes only under the lock.
    limit: AtomicU32,
    /// Number of segments that are open, sealed, retired or used by the index. Changes only under
    /// the lock.
    pub(crate) in_use: AtomicU32,
    /// Number of segments that the index uses.
    pub(super) used_by_index: AtomicU32,
    /// Whether pages should be returned to the system, now or after guards have ended.
    pub(super) pages_to_release: AtomicBool,
    /// Whether sealed segments have expiring items. Changes only under the lock.
    pub(crate) has_expiring: AtomicBool,
    /// Average length of an item in bytes, in the segment that was sealed last.
    pub(super) item_len: AtomicU32,
    /// Bytes of large items that were removed from the index and that counted references keep.
    pub(crate) retained_bytes: AtomicU64,
    /// Number of evicted items: the clock by which the ages of segments are measured.
    pub(crate) evictions: AtomicU64,
    shared: Mutex<Shared>,
    /// Notified when a segment was taken while too few have memory.
    pub(crate) segment_taken: Condvar,
}

impl Segments {
    /// Returns the bytes of an ordinary segment for a budget in bytes.
    pub(crate) fn segment_len(memory: u64) -> u64 {
        (memory / TARGET_SEGMENTS).next_power_of_two().clamp(MIN_SEGMENT_LEN, MAX_SEGMENT_LEN)
    }

    /// Returns the number of granules of addresses that large items should have for a budget in
    /// bytes.
    pub(crate) fn granules(memory: u64) -> u32 {
        let len = Self::segment_len(memory);
        let count = memory / len;
        (LARGE_ADDRESS_RATIO * count).min((MAX_ADDRESSES / len).saturating_sub(count)) as u32
    }

    /// Creates the segments for a budget in bytes, with this many granules for large items.
    pub(crate) fn new(memory: u64, granules: u32) -> Self {
        let len = Self::segment_len(memory);
        let count = (memory / len) as u32;
        let shared = Shared { free_runs: FreeRuns::new(count, granules), ..Shared::default() };
        Self {
            len: len as u32,
            shift: len.ilog2(),
            count,
            metas: Metas::new(count, granules),
            limit: AtomicU32::new(count),
            in_use: AtomicU32::new(0),
            used_by_index: AtomicU32::new(0),
            pages_to_release: AtomicBool::new(false),
            has_expiring: AtomicBool::new(false),
            item_len: AtomicU32::new(64),
            retained_bytes: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            shared: Mutex::new(shared),
            segment_taken: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of an ordinary segment, which are also those of a granule.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the number of ordinary segments.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of granules of addresses for large items.
    pub(crate) fn large_granules(&self) -> u32 {
        self.metas.granules()
    }

    /// Returns whether this segment is that of a large item.
    #[inline]
    pub(crate) fn is_large(&self, number: u32) -> bool {
        number >= self.count
    }

    /// Returns the bytes that the state of segments takes.
    pub(crate) fn memory(&self) -> u64 {
        self.metas.memory()
    }

    /// Sets the bytes of the budget that are reserved for other purposes than items.
    pub(crate) fn reserve(&self, bytes: u64) {
        let mut shared = self.lock();
        shared.reserved_bytes = bytes;
        self.update_limit(&shared);
    }

    /// Returns the limit of ordinary segments while large items use `large` bytes.
    pub(crate) fn limit_with(&self, shared: &Shared, large: u64) -> u32 {
        let used = shared.reserved_bytes.saturating_add(large).div_ceil(u64::from(self.len));
        u64::from(self.count).saturating_sub(used) as u32
    }

    /// Updates the limit, and whether pages should be returned, after the use of the budget
    /// changed.
    pub(crate) fn update_limit(&self, shared: &Shared) {
        let limit = self.limit_with(shared, shared.large_bytes);
        self.limit.store(limit, Ordering::Relaxed);
        let pages_to_release =
            shared.retired_large_bytes + shared.dirty_bytes > 0 || self.has_excess(shared);
        self.pages_to_release.store(pages_to_release, Ordering::Relaxed);
    }

    /// Returns whether free ordinary segments have memory that exceeds the limit.
    pub(crate) fn has_excess(&self, shared: &Shared) -> bool {
        let ready = shared.free.len() as u32 + shared.populating;
        !shared.free.is_empty() && self.in_use.load(Ordering::Relaxed) + ready > self.limit()
    }

    /// Returns the number of ordinary segments that may be in use.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Returns whether pages should be returned to the system, now or after guards have ended.
    #[inline]
    pub(crate) fn has_pages_to_release(&self) -> bool {
        self.pages_to_release.load(Ordering::Relaxed)
    }

    /// Returns how many segments can be available at most: if everything but the index is evicted.
    pub(crate) fn max_available(&self) -> u32 {
        let limit = self.limit_with(&self.lock(), 0);
        limit.saturating_sub(self.used_by_index.load(Ordering::Relaxed))
    }

    /// Returns how many segments can be taken now, without freeing retired ones.
    #[inline]
    pub(crate) fn available_now(&self) -> u32 {
        self.limit().saturating_sub(self.in_use.load(Ordering::Relaxed))
    }

    /// Returns the number of times that memory became free.
    pub(crate) fn freed(&self) -> u64 {
        self.lock().freed
    }

    /// Returns whether other threads have freed memory since [`freed`](Self::freed) returned this
    /// number, or are about to: guards keep some, or its pages are being returned to the system.
    ///
    /// Both are read under one lock. Otherwise a session that found neither free memory nor a
    /// victim would give up if guards ended in between.
    pub(crate) fn awaits_other_threads(&self, freed: u64) -> bool {
        let shared = self.lock();
        !shared.retired.is_empty() || shared.releases_in_flight > 0 || shared.freed != freed
    }

    /// Returns the bytes of the segments that the index uses.
    pub(crate) fn index_bytes(&self) -> u64 {
        u64::from(self.used_by_index.load(Ordering::Relaxed)) * u64::from(self.len)
    }

    /// Returns the bytes of index segments, of ordinary segments with items, and of large items.
    pub(crate) fn bytes_in_use(&self) -> (u64, u64, u64) {
        let shared = self.lock();
        let len = u64::from(self.len);
        let index = self.index_bytes();
        let all = u64::from(self.in_use.load(Ordering::Relaxed)) * len;
        (index, all - index, shared.large_bytes)
    }

    /// Returns the bytes of the budget that a sealed segment is charged for.
    pub(crate) fn charged_bytes(&self, number: u32) -> u64 {
        if !self.is_large(number) {
            return u64::from(self.len);
        }
        u64::from(self.metas[number as usize].used.load(Ordering::Relaxed)).next_multiple_of(PAGE)
    }

    /// Returns the address of a segment.
    pub(crate) fn start(&self, number: u32) -> u64 {
        u64::from(number) << self.shift
    }

    /// Returns the bytes to prefetch for a lookup: those of an item of average length.
    #[inline]
    pub(crate) fn item_len(&self) -> usize {
        self.item_len.load(Ordering::Relaxed) as usize
    }

    /// Returns the number of the segment or granule that contains an address.
    #[inline]
    pub(crate) fn segment_of(&self, address: u64) -> u32 {
        (address >> self.shift) as u32
    }

    /// Returns the time in milliseconds that short expiries in a segment are relative to.
    #[inline]
    pub(crate) fn base_ms(&self, number: u32) -> u64 {
        self.metas[number as usize].base.load(Ordering::Relaxed)
    }

    /// Returns when the first item of a segment expires; `u64::MAX` if none does.
    #[inline]
    pub(crate) fn first_expires_ms(&self, number: u32) -> u64 {
        self.metas[number as usize].first_expires_ms.load(Ordering::Relaxed)
    }

    /// Prefetches what [`remove_live`](Self::remove_live) writes.
    #[inline]
    pub(crate) fn prefetch_live(&self, number: u32) {
        prefetch_to_write(&self.metas[number as usize].live);
    }

    /// Returns whether a segment is still in this generation.
    pub(crate) fn is_current(&self, segment: Segment) -> bool {
        self.metas[segment.number as usize].generation.load(Ordering::Acquire) == segment.generation
    }

    /// Returns the addresses of the items of a sealed segment.
    pub(crate) fn item_range(&self, segment: Segment) -> Range<u64> {
        let Meta { used, base, .. } = &self.metas[segment.number as usize];
        let is_large = self.is_large(segment.number);
        let removed_bits_len = u64::from(removed_bits_len(self.len));
        let before = if is_large { base.load(Ordering::Relaxed) } else { removed_bits_len };
        let end =
            u64::from(used.load(Ordering::Relaxed)) + if is_large { 0 } else { removed_bits_len };
        let start = self.start(segment.number);
        start + before..start + end
    }

    /// Returns whether fewer free segments have memory than should, and the limit allows more.
    pub(crate) fn needs_prefill(&self, shared: &Shared) -> bool {
        let ready = shared.free.len() as u32 + shared.populating;
        let in_use = self.in_use.load(Ordering::Relaxed);
        let target = shared.prefill_target.min(in_use / MIN_IN_USE_RATIO);
        ready < target && in_use + ready < self.limit()
    }

    /// Returns the bytes of a large item, from its start on, that the system should back with huge
    /// pages. They are whole huge pages, or 0.
    pub(crate) fn huge_page_bytes(&self, bytes: u64) -> u64 {
        let page = HUGE_PAGE as u64;
        let budget = u64::from(self.count()) * u64::from(self.len());
        let is_huge = u64::from(self.len()) == page
            && bytes >= MIN_HUGE_BYTES.max(budget / HUGE_BUDGET_RATIO);
        if is_huge { bytes / page * page } else { 0 }
    }
}
