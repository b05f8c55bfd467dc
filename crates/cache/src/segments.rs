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

use crate::arena::{Arena, PAGE, Tail, prefetch_to_write};
use crate::epoch::Epochs;
use crate::expiry::ExpiryQueue;
use crate::gone::marks_len;
use crate::large::Garbage;
use crate::metas::Metas;
use crate::runs::Runs;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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

/// Queues are rid of what is over when they have so many entries, and again when twice what is
/// left.
const PURGE_LEAST: usize = 64;

/// In [`Meta::live`]: the segment is sealed; it is a draft, of which nothing is in the index. No
/// item is so long that the bits are part of its length.
pub(crate) const SEALED: u32 = 1 << 31;
pub(crate) const DRAFT: u32 = 1 << 30;

/// Which queue a segment stands in once it is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// What came lately.
    Small,
    /// What was asked for again.
    Main,
}

/// What is known of a segment. That of a large item is its first granule's.
/// It has a cache line of its own: who writes about one segment writes about no other.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Meta {
    /// Bytes of items that the index points at, one for each lease, and whether the segment is
    /// sealed.
    pub(crate) live: AtomicU32,
    /// Bytes written, once it is sealed.
    pub(crate) used: AtomicU32,
    /// How often it was given out: tells one life of the segment from the next.
    pub(crate) life: AtomicU32,
    /// Whether it is among those retired. Changes under the lock only.
    retired: AtomicBool,
    /// Whether its large item is gone, and counts in [`Segments::kept_by_leases`].
    pub(crate) is_kept: AtomicBool,
    /// Where the time of short expiries starts. For a large item, which never has one: bytes of the
    /// segment before the item, or before the value of a draft.
    pub(crate) base: AtomicU64,
    /// Items that had been evicted when it was opened.
    pub(crate) born: AtomicU64,
    /// When the first of its items expires; `u64::MAX` where none does, and during a scan.
    pub(crate) first_expires_ms: AtomicU64,
    /// From when on a scan for expired items is worthwhile: see `expiry.rs`.
    pub(crate) worthwhile_ms: AtomicU64,
}

// A line, and no more.
const _: () = assert!(size_of::<Meta>() == 64);

/// One life of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) life: u32,
}

#[derive(Default)]
pub(crate) struct Shared {
    /// Free ones whose memory is the process's.
    pub(crate) free: Vec<u32>,
    /// Free ones whose memory went back to the system.
    pub(crate) empty: Vec<u32>,
    /// Never used so far: this one and those after it.
    fresh: u32,
    /// How many free ones should have memory, as far as somebody sees to that: see `ahead.rs`.
    pub(crate) ahead: u32,
    /// Those that are being given memory: neither free nor in use.
    pub(crate) populating: u32,
    /// Retired in some epoch, in order.
    retired: VecDeque<(u64, u32)>,
    /// Bytes of those, and of those of large items among them.
    retired_bytes: u64,
    pub(crate) retired_large: u64,
    pub(crate) small: VecDeque<Segment>,
    pub(crate) main: VecDeque<Segment>,
    /// Sealed segments with items that expire.
    pub(crate) expiring: ExpiryQueue,
    /// Entries of the queues at which those that are over are taken out.
    purge_at: usize,
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

/// Segments that could be given out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// At once.
    pub(crate) now: u32,
    /// When those of large items that are over have come back, too.
    pub(crate) with_large: u32,
    /// When all that are over have.
    pub(crate) with_all: u32,
}

pub(crate) struct Segments {
    len: u32,
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
    of_index: AtomicU32,
    /// Whether memory is to go back to the system, or may be once turns are over.
    owing: AtomicBool,
    /// Whether sealed segments have items that expire. Changes under the lock only.
    pub(crate) has_expiring: AtomicBool,
    /// Bytes that an item takes, about.
    item_len: AtomicU32,
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

    /// Segments that could be given out, before any is reclaimed.
    pub(crate) fn room(&self, epochs: &Epochs) -> Room {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        let now = self.available_at_once();
        let len = u64::from(self.len);
        let large = shared.garbage_bytes + shared.retired_large;
        let all = shared.garbage_bytes + shared.retired_bytes;
        let with = |bytes: u64| now.saturating_add((bytes / len) as u32);
        Room { now, with_large: with(large), with_all: with(all) }
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

    pub(crate) fn free_retired(&self, shared: &mut Shared, epochs: &Epochs) {
        if shared.retired.is_empty() {
            return;
        }
        let oldest = epochs.oldest();
        while let Some((_, number)) = shared.retired.pop_front_if(|(epoch, _)| *epoch < oldest) {
            let weight = self.weight(number);
            shared.retired_bytes -= weight;
            shared.retired_large -= if self.is_large(number) { weight } else { 0 };
            let meta = &self.metas[number as usize];
            meta.retired.store(false, Ordering::Relaxed);
            // Leases that were taken since keep it: the end of the last one retires it anew. There
            // will be no others, as nobody sees an item of it.
            if meta.live.load(Ordering::Acquire) != SEALED {
                continue;
            }
            // So that nobody who ended a lease retires it now.
            meta.live.store(0, Ordering::Relaxed);
            if self.is_large(number) {
                self.discard(shared, number, weight);
            } else {
                shared.free.push(number);
                self.in_use.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.settle(shared);
    }

    /// A free segment, if so many more stay free.
    fn take(&self, epochs: &Epochs, keep: u32) -> Option<u32> {
        let mut shared = self.lock();
        self.free_retired(&mut shared, epochs);
        if self.available_at_once() <= keep {
            return None;
        }
        // Memory that the process has is used first: so it never has more than the budget.
        let number = shared.free.pop().or_else(|| self.take_without_memory(&mut shared))?;
        self.in_use.fetch_add(1, Ordering::Relaxed);
        if self.is_behind(&shared) {
            self.taken.notify_all();
        }
        Some(number)
    }

    /// A free segment whose memory is the system's.
    pub(crate) fn take_without_memory(&self, shared: &mut Shared) -> Option<u32> {
        if shared.empty.is_empty() && shared.fresh < self.count() {
            shared.fresh += 1;
            return Some(shared.fresh - 1);
        }
        shared.empty.pop()
    }

    /// Where a segment starts in the arena.
    pub(crate) fn start(&self, number: u32) -> u64 {
        u64::from(number) << self.shift
    }

    /// A segment for the index, which keeps it.
    pub(crate) fn take_for_index(&self, epochs: &Epochs) -> Option<(u64, u64)> {
        let number = self.take(epochs, 0)?;
        self.of_index.fetch_add(1, Ordering::Relaxed);
        Some((self.start(number), u64::from(self.len)))
    }

    /// A segment to write, whose short expiries count from this time on, if so many stay free. What
    /// its [`Marks`](crate::gone::Marks) take is not to be written.
    pub(crate) fn open(
        &self,
        epochs: &Epochs,
        epoch_ms: u64,
        keep: u32,
    ) -> Option<(Segment, Tail)> {
        let number = self.take(epochs, keep)?;
        let marks_len = marks_len(self.len);
        let tail = Arena::tail(self.start(number) + u64::from(marks_len), self.len - marks_len);
        Some((self.begin(number, epoch_ms), tail))
    }

    /// A new life of a segment that was free, with this [base](Meta::base).
    pub(crate) fn begin(&self, number: u32, base: u64) -> Segment {
        let meta = &self.metas[number as usize];
        let life = meta.life.fetch_add(1, Ordering::Relaxed) + 1;
        meta.live.store(0, Ordering::Relaxed);
        meta.base.store(base, Ordering::Relaxed);
        meta.born.store(self.evicted.load(Ordering::Relaxed), Ordering::Relaxed);
        meta.first_expires_ms.store(u64::MAX, Ordering::Relaxed);
        meta.worthwhile_ms.store(u64::MAX, Ordering::Relaxed);
        Segment { number, life }
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

    /// Counts an item that the index will point at, before it does.
    pub(crate) fn add_live(&self, number: u32, bytes: usize, expires_ms: Option<u64>) {
        let meta = &self.metas[number as usize];
        meta.live.fetch_add(bytes as u32, Ordering::Relaxed);
        // Loaded first: an instruction that locks the line waits for all earlier stores.
        if let Some(expires_ms) = expires_ms
            && meta.first_expires_ms.load(Ordering::Relaxed) > expires_ms
        {
            meta.first_expires_ms.fetch_min(expires_ms, Ordering::Relaxed);
        }
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

    /// An item is no longer in the index. The last one of a sealed segment retires it.
    pub(crate) fn remove_live(&self, epochs: &Epochs, place: u64, bytes: usize) {
        let number = self.of(place);
        let before = self.metas[number as usize].live.fetch_sub(bytes as u32, Ordering::AcqRel);
        if before == SEALED | bytes as u32 {
            self.retire(epochs, number);
        } else if self.is_large(number) && before & SEALED != 0 && bytes > 0 {
            self.note_kept(number);
        }
    }

    /// No more items come. The segment waits in a queue until it is reclaimed, unless all that was
    /// in it is gone already.
    pub(crate) fn seal(&self, epochs: &Epochs, segment: Segment, tail: &Tail, queue: Queue) {
        if !self.is_large(segment.number) {
            self.item_len.store(tail.item_len(), Ordering::Relaxed);
        }
        self.enqueue(epochs, segment, tail.used(), queue);
    }

    /// Seals a segment of which so many bytes are written.
    pub(crate) fn enqueue(&self, epochs: &Epochs, segment: Segment, used: u32, queue: Queue) {
        let meta = &self.metas[segment.number as usize];
        meta.used.store(used, Ordering::Relaxed);
        meta.worthwhile_ms.store(self.first_expires_ms(segment.number), Ordering::Relaxed);
        {
            let mut shared = self.lock();
            match queue {
                Queue::Small => shared.small.push_back(segment),
                Queue::Main => shared.main.push_back(segment),
            }
            if used > 0 {
                self.schedule_scan(&mut shared, segment);
            }
            self.purge(&mut shared);
        }
        if meta.live.fetch_or(SEALED, Ordering::AcqRel) == 0 {
            self.retire(epochs, segment.number);
        }
    }

    /// Takes what is over out of the queues, now and then: where nothing is ever evicted, nobody
    /// else does.
    fn purge(&self, shared: &mut Shared) {
        let len = |shared: &Shared| shared.small.len() + shared.main.len() + shared.expiring.len();
        if len(shared) > shared.purge_at.max(PURGE_LEAST) {
            shared.small.retain(|segment| self.lives(*segment));
            shared.main.retain(|segment| self.lives(*segment));
            self.purge_expiring(shared);
            shared.purge_at = 2 * len(shared);
        }
    }

    /// Nothing in a segment is needed any more, unless somebody else saw that first, or has taken a
    /// lease since.
    pub(crate) fn retire(&self, epochs: &Epochs, number: u32) {
        let meta = &self.metas[number as usize];
        let mut shared = self.lock();
        let is_over = meta.live.load(Ordering::Acquire) == SEALED;
        if !is_over || meta.retired.swap(true, Ordering::Relaxed) {
            return;
        }
        // A new life begins now, so that the queues know the old one is over.
        meta.life.fetch_add(1, Ordering::AcqRel);
        let weight = self.weight(number);
        shared.retired_bytes += weight;
        if self.is_large(number) {
            shared.retired_large += weight;
            self.owing.store(true, Ordering::Relaxed);
        }
        let epoch = epochs.end();
        shared.retired.push_back((epoch, number));
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
}
