//! State of each segment, and a counted reference to one.
//!
//! Granules for large items are many, and most are never used: their state is allocated on first
//! use.

use std::ops::Index;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

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
    pub(super) retired: AtomicBool,
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

/// A reference to a segment that keeps its memory without a time limit, counted in [`Meta::live`].
/// [`Segments::hold`](crate::memory::segments::Segments::hold) makes it, and whoever has it ends it
/// with [`let_go`](crate::memory::segments::Segments::let_go).
#[derive(Debug)]
pub(crate) struct Hold(u32);

impl Hold {
    /// Returns the reference that was just counted for this segment.
    pub(super) fn of(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the segment.
    pub(super) fn number(&self) -> u32 {
        self.0
    }
}

/// Granules for large items that are made known at a time.
const PIECE: usize = 1024;

pub(crate) struct Metas {
    ordinary: Box<[Meta]>,
    /// Of granules for large items, behind those.
    large: Box<[OnceLock<Box<[Meta]>>]>,
    granules: u32,
}

impl Metas {
    /// Of so many ordinary segments and granules.
    pub(crate) fn new(ordinary: u32, granules: u32) -> Self {
        let large = (0..granules.div_ceil(PIECE as u32)).map(|_| OnceLock::new()).collect();
        let ordinary = (0..ordinary).map(|_| Meta::default()).collect();
        Self { ordinary, large, granules }
    }

    /// How many granules there are for large items.
    pub(crate) fn granules(&self) -> u32 {
        self.granules
    }

    /// What is known of a segment of this number, if there can be one.
    pub(crate) fn get(&self, number: u32) -> Option<&Meta> {
        let number = number as usize;
        (number < self.ordinary.len() + self.granules as usize).then(|| &self[number])
    }

    /// Bytes.
    pub(crate) fn memory(&self) -> u64 {
        let made: usize = self.large.iter().filter_map(OnceLock::get).map(|made| made.len()).sum();
        (size_of_val(&*self.large) + (self.ordinary.len() + made) * size_of::<Meta>()) as u64
    }

    fn of_large(&self, granule: usize) -> &Meta {
        let make = || (0..PIECE).map(|_| Meta::default()).collect();
        &self.large[granule / PIECE].get_or_init(make)[granule % PIECE]
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
