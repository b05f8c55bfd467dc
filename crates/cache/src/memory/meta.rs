//! State of each segment, and counted references to segments.
//!
//! There are many granules for large items, and most are never used. Their state is allocated on
//! first use.

use crate::memory::list::Links;
use std::ops::Index;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Flag in [`Meta::live`]: the segment is sealed. Items are too short for the sum of their lengths
/// to reach this bit and the next one.
pub(crate) const SEALED: u32 = 1 << 31;

/// Flag in [`Meta::live`]: the segment contains a pending value and no item.
pub(crate) const PENDING: u32 = 1 << 30;

/// The eviction queues of S3-FIFO, in which sealed segments wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// New items.
    Small,
    /// Items that were read in the small queue, and keys that returned soon after their eviction.
    Main,
}

/// State of a segment. For a large item it is the state of its first granule. Each is in a cache
/// line of its own, so that writers of different segments do not contend.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Meta {
    /// Live bytes: the lengths of the items that the index points to, plus one for each counted
    /// reference; and the flags [`SEALED`] and [`PENDING`].
    pub(crate) live: AtomicU32,
    /// Bytes written, once the segment is sealed.
    pub(crate) used: AtomicU32,
    /// Incremented when the segment is opened and when it is retired. Distinguishes uses of the
    /// same segment.
    pub(crate) generation: AtomicU32,
    /// Whether the segment is in the list of retired segments. Changes only under the lock.
    pub(super) retired: AtomicBool,
    /// Whether the large item in it was removed while references exist, so that it counts in
    /// [`Segments::retained_bytes`](crate::memory::segments::Segments::retained_bytes).
    pub(crate) is_retained: AtomicBool,
    /// The queue that the segment is in, as a [`Queue`] plus one, or 0. Changes only under the
    /// lock.
    queue: AtomicU8,
    /// A [`Density`]. Changes only under the lock.
    density: AtomicU8,
    /// Ordinary segment: time in milliseconds that short expiries are relative to. Large item:
    /// bytes in the segment before the item or before the pending value; large items have no short
    /// expiries.
    pub(crate) base: AtomicU64,
    /// Value of [`Segments::evictions`](crate::memory::segments::Segments::evictions) when the
    /// segment was opened.
    pub(crate) evictions_at_open: AtomicU64,
    /// Earliest expiry of its items; `u64::MAX` if none expires, and during a scan.
    pub(crate) first_expires_ms: AtomicU64,
    /// Time from which a scan for expired items is worthwhile; `u64::MAX` if never.
    pub(crate) worthwhile_ms: AtomicU64,
    /// Its neighbours in the queue.
    pub(super) queue_links: Links,
    /// Its neighbours in the list of segments with as few live bytes.
    pub(super) sparse_links: Links,
}

/// Number of lists of sparse segments, by their live sixteenths. A segment with more is worth no
/// move.
pub(crate) const SPARSE_LISTS: usize = 15;

/// How much of a sealed segment is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Density {
    /// Live bytes in sixteenths of a segment, rounded up.
    pub(super) sixteenths: u8,
    /// Whether nothing was removed since the segment was sealed, and it is more than half full.
    pub(super) is_full: bool,
    /// Whether the segment is in the list of those with as few live bytes.
    pub(super) is_listed: bool,
    /// Whether the segment counts as sealed: it is neither open nor retired.
    pub(super) is_tracked: bool,
}

const TRACKED_BIT: u8 = 1 << 5;
const FULL_BIT: u8 = 1 << 6;
const LISTED_BIT: u8 = 1 << 7;

impl Meta {
    pub(super) fn queue(&self) -> Option<Queue> {
        match self.queue.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Queue::Small),
            _ => Some(Queue::Main),
        }
    }

    pub(super) fn set_queue(&self, queue: Option<Queue>) {
        self.queue.store(queue.map_or(0, |queue| queue as u8 + 1), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn density(&self) -> Density {
        let bits = self.density.load(Ordering::Relaxed);
        Density {
            sixteenths: bits & (TRACKED_BIT - 1),
            is_full: bits & FULL_BIT != 0,
            is_listed: bits & LISTED_BIT != 0,
            is_tracked: bits & TRACKED_BIT != 0,
        }
    }

    pub(super) fn set_density(&self, density: Density) {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let bits = density.sixteenths
            | bit(density.is_tracked, TRACKED_BIT)
            | bit(density.is_full, FULL_BIT)
            | bit(density.is_listed, LISTED_BIT);
        self.density.store(bits, Ordering::Relaxed);
    }
}

// Exactly one cache line.
const _: () = assert!(size_of::<Meta>() == 64);

/// A segment in one generation: identifies its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) generation: u32,
}

/// A counted reference to a segment, which keeps its memory without a time limit. It is counted in
/// [`Meta::live`]. [`Segments::acquire_ref`](crate::memory::segments::Segments::acquire_ref)
/// creates it; its owner must pass it to
/// [`Segments::release_ref`](crate::memory::segments::Segments::release_ref) once.
#[derive(Debug)]
pub(crate) struct SegmentRef(u32);

impl SegmentRef {
    /// Creates the reference that the caller has just counted.
    pub(super) fn of(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the segment.
    pub(crate) fn number(&self) -> u32 {
        self.0
    }
}

/// Granules for large items whose state is allocated together.
const BLOCK_LEN: usize = 1024;

pub(crate) struct Metas {
    ordinary: Box<[Meta]>,
    /// Blocks of the state of granules for large items, which are numbered after the ordinary
    /// segments.
    large: Box<[OnceLock<Box<[Meta]>>]>,
    granules: u32,
}

impl Metas {
    /// Creates the state of `ordinary` segments and prepares that of `granules` granules.
    pub(crate) fn new(ordinary: u32, granules: u32) -> Self {
        let large = (0..granules.div_ceil(BLOCK_LEN as u32)).map(|_| OnceLock::new()).collect();
        let ordinary = (0..ordinary).map(|_| Meta::default()).collect();
        Self { ordinary, large, granules }
    }

    /// Returns the number of granules for large items.
    pub(crate) fn granules(&self) -> u32 {
        self.granules
    }

    /// Returns the state of a segment, or `None` if the number is out of range.
    pub(crate) fn get(&self, number: u32) -> Option<&Meta> {
        let number = number as usize;
        (number < self.ordinary.len() + self.granules as usize).then(|| &self[number])
    }

    /// Returns the bytes allocated for the state of all segments.
    pub(crate) fn memory(&self) -> u64 {
        let made: usize = self.large.iter().filter_map(OnceLock::get).map(|made| made.len()).sum();
        (size_of_val(&*self.large) + (self.ordinary.len() + made) * size_of::<Meta>()) as u64
    }

    fn of_large(&self, granule: usize) -> &Meta {
        let make = || (0..BLOCK_LEN).map(|_| Meta::default()).collect();
        &self.large[granule / BLOCK_LEN].get_or_init(make)[granule % BLOCK_LEN]
    }
}

impl Index<usize> for Metas {
    type Output = Meta;

    #[inline]
    fn index(&self, number: usize) -> &Meta {
        match self.ordinary.get(number) {
            Some(meta) => meta,
            None => self.of_large(number - self.ordinary.len()),
        }
    }
}
