//! The segments of a cache: which are free, what is known of each, and in which order they are
//! reclaimed.
//!
//! ```text
//! free ──> open (a session writes it) ──> sealed, in a queue ──> reclaimed ──> retired ──> free
//! ```
//!
//! A segment is retired when nothing in it is in the index any more, and free once nobody is in a
//! turn that began before that.

use crate::arena::{Arena, Tail};
use crate::epoch::Epochs;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The smallest and the largest segment.
const SEGMENT_LEAST: u64 = 256 << 10;
const SEGMENT_MOST: u64 = 2 << 20;

/// As many segments make up the budget, as far as they are neither too small nor too large.
const SEGMENTS: u64 = 1024;

/// The processor fetches longer runs of lines by itself.
const ITEM_LINES_MOST: u32 = 6;

/// Segments that may be wasted, however little there is.
const WASTE_LEAST: u64 = 32;

/// In [`Meta::live`]: the segment is sealed.
const SEALED: u32 = 1 << 31;

/// Which queue a segment stands in once it is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// What came lately.
    Small,
    /// What was asked for again.
    Main,
}

/// What is known of a segment.
#[derive(Default)]
struct Meta {
    /// Bytes of items that the index points at, and whether the segment is sealed.
    live: AtomicU32,
    /// Bytes written, once it is sealed.
    used: AtomicU32,
    /// How often it was given out: tells one life of the segment from the next.
    life: AtomicU32,
    /// Where the time of short expiries starts.
    epoch_ms: AtomicU64,
    /// Items that had been evicted when it was opened.
    born: AtomicU64,
    /// No item expires after this; `u64::MAX` where one never does.
    expires_ms: AtomicU64,
}

/// One life of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    life: u32,
}

#[derive(Default)]
struct Shared {
    free: Vec<u32>,
    /// Never used so far: this one and those after it.
    fresh: u32,
    /// Retired in some epoch, in order.
    retired: VecDeque<(u64, u32)>,
    small: VecDeque<Segment>,
    main: VecDeque<Segment>,
    /// Sealed segments with items that all expire.
    expiring: Vec<Segment>,
}

pub(crate) struct Segments {
    len: u32,
    shift: u32,
    metas: Box<[Meta]>,
    /// Segments that may be in use: lower than there are when memory goes elsewhere.
    limit: AtomicU32,
    /// Segments given out: open, sealed, retired, or of the index. Changes under the lock only.
    in_use: AtomicU32,
    /// Cache lines that an item takes, about.
    item_lines: AtomicU32,
    /// Items evicted so far: the time by which the ages of segments are counted.
    evicted: AtomicU64,
    shared: Mutex<Shared>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Segments {
    /// Segments for so many bytes.
    pub(crate) fn new(memory: u64) -> Self {
        let len = (memory / SEGMENTS).next_power_of_two().clamp(SEGMENT_LEAST, SEGMENT_MOST);
        let count = (memory / len) as u32;
        Self {
            len: len as u32,
            shift: len.ilog2(),
            metas: (0..count).map(|_| Meta::default()).collect(),
            limit: AtomicU32::new(count),
            in_use: AtomicU32::new(0),
            item_lines: AtomicU32::new(2),
            evicted: AtomicU64::new(0),
            shared: Mutex::default(),
        }
    }

    /// Bytes of a segment.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn count(&self) -> u32 {
        self.metas.len() as u32
    }

    /// Bytes besides the segments.
    pub(crate) fn memory(&self) -> u64 {
        size_of_val(&*self.metas) as u64
    }

    /// Leaves so many bytes of the budget to others.
    pub(crate) fn reserve(&self, bytes: u64) {
        let segments = bytes.div_ceil(u64::from(self.len)).min(u64::from(self.count())) as u32;
        self.limit.store(self.count() - segments, Ordering::Relaxed);
    }

    /// Segments that could be given out now, before any is reclaimed.
    pub(crate) fn available(&self, epochs: &Epochs) -> u32 {
        let mut shared = lock(&self.shared);
        self.free_retired(&mut shared, epochs);
        self.available_at_once()
    }

    /// As [`available`](Self::available), without those that could come back by now.
    #[inline]
    pub(crate) fn available_at_once(&self) -> u32 {
        let limit = self.limit.load(Ordering::Relaxed);
        limit.saturating_sub(self.in_use.load(Ordering::Relaxed))
    }

    /// Whether most of what is in use holds nothing any more: then moving what is left costs less
    /// than fresh memory.
    pub(crate) fn is_wasteful(&self) -> bool {
        let in_use = u64::from(self.in_use.load(Ordering::Relaxed));
        let live: u64 = (0..self.count()).map(|number| u64::from(self.live(number))).sum();
        in_use * u64::from(self.len) > 2 * live + WASTE_LEAST * u64::from(self.len)
    }

    /// Whether segments come back once the turns are over that are running.
    pub(crate) fn has_retired(&self) -> bool {
        !lock(&self.shared).retired.is_empty()
    }

    /// Bytes of segments given out.
    pub(crate) fn bytes_in_use(&self) -> u64 {
        u64::from(self.in_use.load(Ordering::Relaxed)) * u64::from(self.len)
    }

    fn free_retired(&self, shared: &mut Shared, epochs: &Epochs) {
        if shared.retired.is_empty() {
            return;
        }
        let oldest = epochs.oldest();
        while let Some((_, number)) = shared.retired.pop_front_if(|(epoch, _)| *epoch < oldest) {
            shared.free.push(number);
            self.in_use.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A free segment, if so many more stay free.
    fn take(&self, epochs: &Epochs, keep: u32) -> Option<u32> {
        let mut shared = lock(&self.shared);
        self.free_retired(&mut shared, epochs);
        if self.available_at_once() <= keep {
            return None;
        }
        let number = match shared.free.pop() {
            Some(number) => number,
            None if shared.fresh < self.count() => {
                shared.fresh += 1;
                shared.fresh - 1
            }
            None => return None,
        };
        self.in_use.fetch_add(1, Ordering::Relaxed);
        Some(number)
    }

    /// Where a segment starts in the arena.
    pub(crate) fn start(&self, number: u32) -> u64 {
        u64::from(number) << self.shift
    }

    /// A segment for the index, which keeps it.
    pub(crate) fn take_for_index(&self, epochs: &Epochs) -> Option<(u64, u64)> {
        let number = self.take(epochs, 0)?;
        Some((self.start(number), u64::from(self.len)))
    }

    /// A segment to write, whose short expiries count from this time on, if so many stay free.
    pub(crate) fn open(
        &self,
        epochs: &Epochs,
        epoch_ms: u64,
        keep: u32,
    ) -> Option<(Segment, Tail)> {
        let number = self.take(epochs, keep)?;
        let meta = &self.metas[number as usize];
        let life = meta.life.fetch_add(1, Ordering::Relaxed) + 1;
        meta.live.store(0, Ordering::Relaxed);
        meta.epoch_ms.store(epoch_ms, Ordering::Relaxed);
        meta.born.store(self.evicted.load(Ordering::Relaxed), Ordering::Relaxed);
        meta.expires_ms.store(0, Ordering::Relaxed);
        Some((Segment { number, life }, Arena::tail(self.start(number), self.len)))
    }

    /// Cache lines to ask for ahead of a lookup: those of an item of average length.
    #[inline]
    pub(crate) fn item_lines(&self) -> usize {
        self.item_lines.load(Ordering::Relaxed) as usize
    }

    /// The segment that a place of the arena lies in.
    #[inline]
    pub(crate) fn of(&self, place: u64) -> u32 {
        (place >> self.shift) as u32
    }

    /// Where the time of a segment's short expiries starts.
    #[inline]
    pub(crate) fn epoch_ms(&self, number: u32) -> u64 {
        self.metas[number as usize].epoch_ms.load(Ordering::Relaxed)
    }

    /// Counts an item that the index will point at, before it does.
    pub(crate) fn add_live(&self, number: u32, bytes: usize, expires_ms: Option<u64>) {
        let meta = &self.metas[number as usize];
        meta.live.fetch_add(bytes as u32, Ordering::Relaxed);
        meta.expires_ms.fetch_max(expires_ms.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// An item is no longer in the index. The last one of a sealed segment retires it.
    pub(crate) fn remove_live(&self, epochs: &Epochs, place: u64, bytes: usize) {
        let number = self.of(place);
        let before = self.metas[number as usize].live.fetch_sub(bytes as u32, Ordering::AcqRel);
        if before == SEALED | bytes as u32 {
            self.retire(epochs, number);
        }
    }

    /// No more items come. The segment waits in a queue until it is reclaimed, unless all that was
    /// in it is gone already.
    pub(crate) fn seal(&self, epochs: &Epochs, segment: Segment, tail: &Tail, queue: Queue) {
        let meta = &self.metas[segment.number as usize];
        meta.used.store(tail.used(), Ordering::Relaxed);
        let expires = meta.expires_ms.load(Ordering::Relaxed) != u64::MAX;
        // An item begins anywhere in its first line.
        let lines = (tail.item_len() + 32).div_ceil(64).clamp(1, ITEM_LINES_MOST);
        self.item_lines.store(lines, Ordering::Relaxed);
        {
            let mut shared = lock(&self.shared);
            match queue {
                Queue::Small => shared.small.push_back(segment),
                Queue::Main => shared.main.push_back(segment),
            }
            if expires && tail.used() > 0 {
                shared.expiring.push(segment);
            }
        }
        if meta.live.fetch_or(SEALED, Ordering::AcqRel) == 0 {
            self.retire(epochs, segment.number);
        }
    }

    fn retire(&self, epochs: &Epochs, number: u32) {
        // A new life begins now, so that the queues know the old one is over.
        self.metas[number as usize].life.fetch_add(1, Ordering::AcqRel);
        let mut shared = lock(&self.shared);
        let epoch = epochs.end();
        shared.retired.push_back((epoch, number));
    }

    /// Whether a segment is still in the life that this names.
    pub(crate) fn lives(&self, segment: Segment) -> bool {
        self.metas[segment.number as usize].life.load(Ordering::Acquire) == segment.life
    }

    /// The oldest segment of a queue, which leaves it.
    pub(crate) fn pop(&self, queue: Queue) -> Option<Segment> {
        let mut shared = lock(&self.shared);
        let queue = match queue {
            Queue::Small => &mut shared.small,
            Queue::Main => &mut shared.main,
        };
        loop {
            let segment = queue.pop_front()?;
            if self.lives(segment) {
                return Some(segment);
            }
        }
    }

    /// Puts a segment back, as the oldest of a queue.
    pub(crate) fn push(&self, segment: Segment, queue: Queue) {
        let mut shared = lock(&self.shared);
        match queue {
            Queue::Small => shared.small.push_front(segment),
            Queue::Main => shared.main.push_front(segment),
        }
    }

    /// A sealed segment all of whose items are past their time.
    pub(crate) fn pop_expired(&self, now_ms: u64) -> Option<Segment> {
        let mut shared = lock(&self.shared);
        shared.expiring.retain(|segment| self.lives(*segment));
        let expired = |segment: &Segment| {
            self.metas[segment.number as usize].expires_ms.load(Ordering::Relaxed) <= now_ms
        };
        let at = shared.expiring.iter().position(expired)?;
        Some(shared.expiring.swap_remove(at))
    }

    /// The sealed segment with the fewest live bytes, if those are so few, and the queue it leaves.
    pub(crate) fn pop_emptiest(&self, most_live: u32) -> Option<(Segment, Queue)> {
        let mut shared = lock(&self.shared);
        let small = shared.small.iter().map(|segment| (*segment, Queue::Small));
        let main = shared.main.iter().map(|segment| (*segment, Queue::Main));
        let sealed = small.chain(main).filter(|(segment, _)| self.lives(*segment));
        let emptiest = sealed.min_by_key(|(segment, _)| self.live(segment.number))?;
        if self.live(emptiest.0.number) > most_live {
            return None;
        }
        shared.small.retain(|segment| *segment != emptiest.0);
        shared.main.retain(|segment| *segment != emptiest.0);
        Some(emptiest)
    }

    /// Where a sealed segment's items lie, and their bytes.
    pub(crate) fn items(&self, segment: Segment) -> (u64, u32) {
        let used = self.metas[segment.number as usize].used.load(Ordering::Relaxed);
        (self.start(segment.number), used)
    }

    fn live(&self, number: u32) -> u32 {
        self.metas[number as usize].live.load(Ordering::Relaxed) & !SEALED
    }

    /// So many more items were evicted.
    pub(crate) fn add_evicted(&self, items: u64) {
        self.evicted.fetch_add(items, Ordering::Relaxed);
    }

    /// Evictions since the oldest segment of the main queue was opened, less those since the oldest
    /// of the small one was: what is evicted from the small queue and comes back within as many was
    /// asked for again sooner than what is oldest in the main one. Without end while that is empty.
    pub(crate) fn reach(&self) -> u64 {
        let shared = lock(&self.shared);
        let now = self.evicted.load(Ordering::Relaxed);
        let age = |queue: &VecDeque<Segment>| {
            let oldest = queue.iter().find(|segment| self.lives(**segment))?;
            let born = self.metas[oldest.number as usize].born.load(Ordering::Relaxed);
            Some(now.saturating_sub(born))
        };
        let main = age(&shared.main).unwrap_or(u64::MAX);
        main.saturating_sub(age(&shared.small).unwrap_or(0))
    }

    /// How many segments wait in the two queues.
    pub(crate) fn queued(&self) -> (usize, usize) {
        let shared = lock(&self.shared);
        (shared.small.len(), shared.main.len())
    }
}
