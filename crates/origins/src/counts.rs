//! Counters of what was read, and where it came from.

use crate::not_kept::NotKept;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of an object or of a whole cache since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Bytes that readers received from the cache.
    pub from_cache: u64,
    /// Bytes that readers received from the origin.
    pub from_origin: u64,
    /// Bytes that readers received from the origin through a fetch of another reader.
    pub coalesced: u64,
    /// Bytes of the object that the origin sent, including those that no reader has read yet.
    pub fetched: u64,
    /// Requests for bytes to the origin, including retries.
    pub requests: u64,
    /// Requests for the version of an object to the origin, including retries.
    pub checks: u64,
    /// Number of `requests` and `checks` that were retries.
    pub retries: u64,
    /// Fetches whose wait for the fetch lock of another process timed out: see
    /// [`Settings::fetch_lock_wait`](crate::Settings::fetch_lock_wait).
    pub fetch_lock_timeouts: u64,
    /// Blocks that were not kept in the cache, for any cause: see [`Counts::not_kept_by`].
    pub not_kept: u64,
    /// Objects opened in a stale version, because their origin could not confirm it.
    pub stale: u64,
    /// `not_kept` by cause, in the order of [`NotKept::ALL`].
    causes: [u64; NotKept::ALL.len()],
}

impl Counts {
    /// Returns the number of blocks that were not kept in the cache for this cause.
    #[must_use]
    pub fn not_kept_by(&self, cause: NotKept) -> u64 {
        self.causes[cause as usize]
    }

    /// Returns the number of bytes that readers received.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.from_cache + self.from_origin + self.coalesced
    }

    /// Returns the share of bytes that did not have to be fetched for this reader, from 0 to 1;
    /// `None` if nothing was read.
    #[must_use]
    pub fn hit_share(&self) -> Option<f64> {
        let read = self.read();
        (read > 0).then(|| (self.from_cache + self.coalesced) as f64 / read as f64)
    }
}

/// One of the counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    FromCache,
    FromOrigin,
    Coalesced,
    Fetched,
    Requests,
    Checks,
    Retries,
    Stale,
    FetchLockTimeouts,
}

/// Counts that many threads add to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: [AtomicU64; 9],
    not_kept: [AtomicU64; NotKept::ALL.len()],
}

impl Tally {
    pub(crate) fn add(&self, count: Count, number: u64) {
        self.counts[count as usize].fetch_add(number, Relaxed);
    }

    pub(crate) fn add_not_kept(&self, cause: NotKept, blocks: u64) {
        self.not_kept[cause as usize].fetch_add(blocks, Relaxed);
    }

    pub(crate) fn counts(&self) -> Counts {
        let of = |count: Count| self.counts[count as usize].load(Relaxed);
        let causes = self.not_kept.each_ref().map(|count| count.load(Relaxed));
        Counts {
            from_cache: of(Count::FromCache),
            from_origin: of(Count::FromOrigin),
            coalesced: of(Count::Coalesced),
            fetched: of(Count::Fetched),
            requests: of(Count::Requests),
            checks: of(Count::Checks),
            retries: of(Count::Retries),
            fetch_lock_timeouts: of(Count::FetchLockTimeouts),
            not_kept: causes.iter().sum(),
            stale: of(Count::Stale),
            causes,
        }
    }
}
