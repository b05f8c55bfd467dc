//! The segments of a cache: which are free, what is known of each, and in which order they are
//! reclaimed.
//!
//! ```text
//! free ──> open (a session writes it) ──> sealed, in a queue ──> reclaimed ──> retired ──> free
//! ```
//!
//! A segment is retired when nothing in it is in the index any more and nobody has a lease of it,
//! and free once nobody is in a turn that began before that. A lease that is taken of a retired
//! segment, in such a turn, keeps it: its end retires the segment again.
//!
//! A large item has a segment of its own, which is as long as the item: see `large.rs`. Its value
//! may come before the item: see `draft.rs`.

use crate::memory::arena::{HUGE_PAGE, PAGE, prefetch_to_write};
use crate::memory::dirty::Garbage;
use crate::memory::expiry_queue::ExpiryQueue;
use crate::memory::meta::{Meta, Metas, SEALED, Segment};
use crate::memory::removed::marks_len;
use crate::memory::runs::Runs;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// From so many bytes on, a large item lies in huge pages as far as it fills them: it is written in
/// a third of the time. Such an item is a range of its own for the system, of which a process has
/// few (65,530), so it also has at least this part of the budget.
const HUGE_FROM: u64 = 16 << 20;

const HUGE_PART: u64 = 4096;

/// The smallest and the largest segment.
const SEGMENT_LEAST: u64 = 256 << 10;

const SEGMENT_MOST: u64 = 2 << 20;

/// As many segments make up the budget, as far as they are neither too small nor too large.
const SEGMENTS: u64 = 1024;

/// Segments that may be wasted, however little there is.
const WASTE_LEAST: u64 = 32;

/// Addresses for large items, as a multiple of the budget, and all that a place can tell. With
/// items of up to 8,192 times the length of the shortest, that is enough: see `runs.rs`.
const RUNS: u64 = 13;

const PLACES: u64 = 1 << 40;

#[derive(Default)]
pub(crate) struct Shared {
    /// Free ones whose memory is the process's.
    pub(crate) free: Vec<u32>,
    /// Free ones whose memory went back to the system.
    pub(crate) empty: Vec<u32>,
    /// Never used so far: this one and those after it.
    pub(super) fresh: u32,
    /// How many free ones should have memory, as far as somebody sees to that: see `ahead.rs`.
    pub(crate) ahead: u32,
    /// Those that are being given memory: neither free nor in use.
    pub(crate) populating: u32,
    /// Retired in some epoch, in order.
    pub(super) retired: VecDeque<(u64, u32)>,
    /// Bytes of those, and of those of large items among them.
    pub(super) retired_bytes: u64,
    pub(crate) retired_large: u64,
    pub(crate) small: VecDeque<Segment>,
    pub(crate) main: VecDeque<Segment>,
    /// Sealed segments with items that expire.
    pub(crate) expiring: ExpiryQueue,
    /// Entries of the queues at which those that are over are taken out.
    pub(super) purge_at: usize,
    /// Bytes of the budget that others have.
    reserved: u64,
    /// Bytes of the budget that large items have, until their memory went back to the system.
    pub(crate) large: u64,
    /// Addresses for large items.
    pub(crate) runs: Runs,
    /// Memory of large items that nobody needs, which is to go back to the system.
    pub(crate) garbage: VecDeque<Garbage>,
    pub(crate) garbage_bytes: u64,
    /// Slices that threads are giving back to the system.
    pub(crate) slices_in_flight: u32,
}

#[cfg(test)]
impl Shared {
    pub(crate) fn retired_count(&self) -> usize {
        self.retired.len()
    }
}

pub(crate) struct Segments {
    pub(super) len: u32,
    shift: u32,
    /// Ordinary segments.
    count: u32,
    /// Of ordinary segments, and of granules for large items behind them.
    pub(crate) metas: Metas,
    /// Segments that may be in use: lower than there are when memory goes elsewhere, or to large
    /// items. Changes under the lock only.
    limit: AtomicU32,
    /// Segments given out: open, sealed, retired, or of the index. Changes under the lock only.
    pub(crate) in_use: AtomicU32,
    /// Those of the index among them.
    pub(super) of_index: AtomicU32,
    /// Whether memory is to go back to the system, or may be once turns are over.
    pub(super) owing: AtomicBool,
    /// Whether sealed segments have items that expire. Changes under the lock only.
    pub(crate) has_expiring: AtomicBool,
    /// Bytes that an item takes, about.
    pub(super) item_len: AtomicU32,
    /// Bytes of large items that are gone from the index, and that leases keep.
    pub(crate) kept_by_leases: AtomicU64,
    /// Items evicted so far: the time by which the ages of segments are counted.
    pub(crate) evicted: AtomicU64,
    shared: Mutex<Shared>,
    /// Tells who keeps segments ready that one was taken.
    pub(crate) taken: Condvar,
}

impl Segments {
    /// Bytes of a segment when the budget is so many.
    pub(crate) fn segment_len(memory: u64) -> u64 {
        (memory / SEGMENTS).next_power_of_two().clamp(SEGMENT_LEAST, SEGMENT_MOST)
    }

    /// Granules of addresses that large items should have when the budget is so many bytes.
    pub(crate) fn granules(memory: u64) -> u32 {
        let len = Self::segment_len(memory);
        let count = memory / len;
        (RUNS * count).min((PLACES / len).saturating_sub(count)) as u32
    }

    /// Segments for so many bytes, and so many granules of addresses for large items.
    pub(crate) fn new(memory: u64, granules: u32) -> Self {
        let len = Self::segment_len(memory);
        let count = (memory / len) as u32;
        let shared = Shared { runs: Runs::new(count, granules), ..Shared::default() };
        Self {
            len: len as u32,
            shift: len.ilog2(),
            count,
            metas: Metas::new(count, granules),
            limit: AtomicU32::new(count),
            in_use: AtomicU32::new(0),
            of_index: AtomicU32::new(0),
            owing: AtomicBool::new(false),
            has_expiring: AtomicBool::new(false),
            item_len: AtomicU32::new(64),
            kept_by_leases: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            shared: Mutex::new(shared),
            taken: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of a segment.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Granules of addresses for large items.
    pub(crate) fn large_granules(&self) -> u32 {
        self.metas.granules()
    }

    /// Whether this segment is that of a large item.
    #[inline]
    pub(crate) fn is_large(&self, number: u32) -> bool {
        number >= self.count
    }

    /// Bytes besides the segments.
    pub(crate) fn memory(&self) -> u64 {
        self.metas.memory()
    }

    /// Leaves so many bytes of the budget to others.
    pub(crate) fn reserve(&self, bytes: u64) {
        let mut shared = self.lock();
        shared.reserved = bytes;
        self.settle(&shared);
    }

    /// Ordinary segments that there may be when large items take so many bytes.
    pub(crate) fn limit_with(&self, shared: &Shared, large: u64) -> u32 {
        let others = shared.reserved.saturating_add(large).div_ceil(u64::from(self.len));
        u64::from(self.count).saturating_sub(others) as u32
    }

    /// Follows what others and large items take of the budget.
    pub(crate) fn settle(&self, shared: &Shared) {
        let limit = self.limit_with(shared, shared.large);
        self.limit.store(limit, Ordering::Relaxed);
        let owing = shared.retired_large + shared.garbage_bytes > 0 || self.is_over(shared);
        self.owing.store(owing, Ordering::Relaxed);
    }

    /// Whether memory of ordinary segments that are free should go back to the system.
    pub(crate) fn is_over(&self, shared: &Shared) -> bool {
        let ready = shared.free.len() as u32 + shared.populating;
        !shared.free.is_empty() && self.in_use.load(Ordering::Relaxed) + ready > self.limit()
    }

    /// Ordinary segments that there may be.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Whether memory is to go back to the system, or may be once turns are over.
    #[inline]
    pub(crate) fn is_owing(&self) -> bool {
        self.owing.load(Ordering::Relaxed)
    }

    /// The most segments that could ever be given out as budgets are now, were all else gone.
    pub(crate) fn most_available(&self) -> u32 {
        let limit = self.limit_with(&self.lock(), 0);
        limit.saturating_sub(self.of_index.load(Ordering::Relaxed))
    }

    /// Segments that could be given out, without those that could come back by now.
    #[inline]
    pub(crate) fn available_at_once(&self) -> u32 {
        self.limit().saturating_sub(self.in_use.load(Ordering::Relaxed))
    }

    /// Whether most of what is in use holds nothing any more: then moving what is left costs less
    /// than fresh memory.
    pub(crate) fn is_wasteful(&self) -> bool {
        let in_use = u64::from(self.in_use.load(Ordering::Relaxed));
        let live: u64 = (0..self.count()).map(|number| u64::from(self.live(number))).sum();
        in_use * u64::from(self.len) > 2 * live + WASTE_LEAST * u64::from(self.len)
    }

    /// Returns whether other threads are about to free memory: guards keep some, or its pages are
    /// being given back to the system.
    pub(crate) fn awaits_others(&self) -> bool {
        let shared = self.lock();
        !shared.retired.is_empty() || shared.slices_in_flight > 0
    }

    /// Bytes of segments of the index.
    pub(crate) fn index_bytes(&self) -> u64 {
        u64::from(self.of_index.load(Ordering::Relaxed)) * u64::from(self.len)
    }

    /// Bytes of segments of the index, of those of ordinary items, and of those of large ones.
    pub(crate) fn bytes_in_use(&self) -> (u64, u64, u64) {
        let shared = self.lock();
        let len = u64::from(self.len);
        let index = self.index_bytes();
        let all = u64::from(self.in_use.load(Ordering::Relaxed)) * len;
        (index, all - index, shared.large)
    }

    /// Bytes of the budget that a segment with items takes.
    pub(crate) fn weight(&self, number: u32) -> u64 {
        if !self.is_large(number) {
            return u64::from(self.len);
        }
        u64::from(self.metas[number as usize].used.load(Ordering::Relaxed)).next_multiple_of(PAGE)
    }

    /// Where a segment starts in the arena.
    pub(crate) fn start(&self, number: u32) -> u64 {
        u64::from(number) << self.shift
    }

    /// Bytes to ask for ahead of a lookup: those of an item of average length.
    #[inline]
    pub(crate) fn item_len(&self) -> usize {
        self.item_len.load(Ordering::Relaxed) as usize
    }

    /// The segment that a place of the arena lies in.
    #[inline]
    pub(crate) fn of(&self, place: u64) -> u32 {
        (place >> self.shift) as u32
    }

    /// Where the time of a segment's short expiries starts.
    #[inline]
    pub(crate) fn epoch_ms(&self, number: u32) -> u64 {
        self.metas[number as usize].base.load(Ordering::Relaxed)
    }

    /// Returns when the first item of a segment expires, `u64::MAX` if none does.
    #[inline]
    pub(crate) fn first_expires_ms(&self, number: u32) -> u64 {
        self.metas[number as usize].first_expires_ms.load(Ordering::Relaxed)
    }

    /// Asks for what [`remove_live`](Self::remove_live) writes.
    #[inline]
    pub(crate) fn prefetch_live(&self, number: u32) {
        prefetch_to_write(&self.metas[number as usize].live);
    }

    /// Whether a segment is still in the life that this names.
    pub(crate) fn lives(&self, segment: Segment) -> bool {
        self.metas[segment.number as usize].life.load(Ordering::Acquire) == segment.life
    }

    /// Where a sealed segment's items lie: from the first to the end of the last.
    pub(crate) fn items(&self, segment: Segment) -> Range<u64> {
        let Meta { used, base, .. } = &self.metas[segment.number as usize];
        let is_large = self.is_large(segment.number);
        let marks_len = u64::from(marks_len(self.len));
        let before = if is_large { base.load(Ordering::Relaxed) } else { marks_len };
        let end = u64::from(used.load(Ordering::Relaxed)) + if is_large { 0 } else { marks_len };
        let start = self.start(segment.number);
        start + before..start + end
    }

    pub(crate) fn live(&self, number: u32) -> u32 {
        self.metas[number as usize].live.load(Ordering::Relaxed) & !SEALED
    }

    /// Whether fewer segments are ready than should be, while the budget has more.
    pub(crate) fn is_behind(&self, shared: &Shared) -> bool {
        let ready = shared.free.len() as u32 + shared.populating;
        let in_use = self.in_use.load(Ordering::Relaxed);
        in_use > 0 && ready < shared.ahead && in_use + ready < self.limit()
    }

    /// Bytes of a large item of so many that lie in huge pages. Its granules must be such pages.
    pub(crate) fn huge(&self, bytes: u64) -> u64 {
        let page = HUGE_PAGE as u64;
        let budget = u64::from(self.count()) * u64::from(self.len());
        let is_huge = u64::from(self.len()) == page && bytes >= HUGE_FROM.max(budget / HUGE_PART);
        if is_huge { bytes / page * page } else { 0 }
    }
}
