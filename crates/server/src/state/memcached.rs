//! State that memcached connections share.

use crate::cluster::Refusal;
use nuthatch_cache::{Guard, Stats};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Why a forwarded request is not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForwardedError {
    /// There is no memory under this guard.
    Full,
    /// This node does not serve the keys.
    Refused(Refusal),
    /// The client has no permission.
    Denied,
    /// It is no request of memcached.
    Invalid,
}

/// No flush is pending.
const NEVER: u64 = u64::MAX;

/// State that memcached connections share.
#[derive(Debug)]
pub struct MemcachedState {
    pub(crate) started: Instant,
    pub(crate) threads: usize,
    /// The time of a delayed flush, in milliseconds since the Unix epoch; [`NEVER`] if none is
    /// pending.
    flush_at_ms: AtomicU64,
    /// Held during a flush, so that other threads wait for it.
    flushing: Mutex<()>,
    /// The statistics when they were last reset.
    before: Mutex<Stats>,
}

impl MemcachedState {
    /// Creates the state of a server with this many worker threads, which starts now.
    pub fn new(threads: usize) -> Self {
        Self {
            started: Instant::now(),
            threads,
            flush_at_ms: AtomicU64::new(NEVER),
            flushing: Mutex::default(),
            before: Mutex::default(),
        }
    }

    /// Removes all items if the time of a delayed `flush_all` has been reached.
    ///
    /// Every batch calls this at its start, in all protocols. The first thread removes all items,
    /// and other threads wait until it has. So after that time, no batch sees an older item, and no
    /// batch loses an item that it wrote. Until the next batch the old items only use memory.
    #[inline]
    pub fn flush_if_due(&self, guard: &Guard<'_>) {
        if guard.now_ms() >= self.flush_at_ms.load(Ordering::Acquire) {
            self.flush(guard);
        }
    }

    #[cold]
    fn flush(&self, guard: &Guard<'_>) {
        let _flushing = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        // Unless another thread has done it, or delayed it.
        if guard.now_ms() >= self.flush_at_ms.load(Ordering::Acquire) {
            guard.clear();
            self.flush_at_ms.store(NEVER, Ordering::Release);
        }
    }

    /// Removes all items at this time, or now if it is `None` or past. As in memcached, this
    /// replaces an earlier `flush_all` that is pending.
    pub(crate) fn flush_at(&self, guard: &Guard<'_>, at_ms: Option<u64>) {
        let _flushing = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let to_come = at_ms.filter(|at| *at > guard.now_ms());
        if to_come.is_none() {
            guard.clear();
        }
        self.flush_at_ms.store(to_come.unwrap_or(NEVER), Ordering::Release);
    }

    /// Returns the statistics when they were last reset.
    pub(crate) fn before(&self) -> Stats {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets the statistics of this protocol.
    pub(crate) fn reset_counts(&self, stats: Stats) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }
}
