//! What all connections that speak memcached's protocols share.

use nuthatch_cache::{Guard, Stats};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// No flush is to come.
const NEVER: u64 = u64::MAX;

/// What all connections that speak memcached's protocols share.
#[derive(Debug)]
pub struct MemcachedState {
    pub(crate) started: Instant,
    pub(crate) threads: usize,
    /// When all is to be removed that is there then.
    flush_at_ms: AtomicU64,
    /// Held while all is being removed, so that others wait until it is gone.
    flushing: Mutex<()>,
    /// What was counted when the counts were reset.
    before: Mutex<Stats>,
}

impl MemcachedState {
    /// For a server that starts now, with so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            started: Instant::now(),
            threads,
            flush_at_ms: AtomicU64::new(NEVER),
            flushing: Mutex::default(),
            before: Mutex::default(),
        }
    }

    /// Removes everything if the time of a delayed `flush_all` has come.
    ///
    /// With this at the start of each turn, of whatever protocol, no turn from that time on sees an
    /// item of before, and none loses an item it wrote: whoever is first removes all, and the
    /// others wait. Until there is a turn, memory alone knows that the items are still there.
    #[inline]
    pub fn flush_if_due(&self, guard: &Guard<'_>) {
        if guard.now_ms() >= self.flush_at_ms.load(Ordering::Acquire) {
            self.flush(guard);
        }
    }

    #[cold]
    fn flush(&self, guard: &Guard<'_>) {
        let _flushing = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        // Unless somebody else did, or put it off.
        if guard.now_ms() >= self.flush_at_ms.load(Ordering::Acquire) {
            guard.clear();
            self.flush_at_ms.store(NEVER, Ordering::Release);
        }
    }

    /// Removes everything at this time, or now. As in memcached this replaces an earlier request,
    /// one for a time to come too.
    pub(crate) fn flush_at(&self, guard: &Guard<'_>, at_ms: Option<u64>) {
        let _flushing = self.flushing.lock().unwrap_or_else(PoisonError::into_inner);
        let to_come = at_ms.filter(|at| *at > guard.now_ms());
        if to_come.is_none() {
            guard.clear();
        }
        self.flush_at_ms.store(to_come.unwrap_or(NEVER), Ordering::Release);
    }

    /// What was counted when the counts were reset.
    pub(crate) fn before(&self) -> Stats {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts anew from here on, for those who ask through this protocol.
    pub(crate) fn reset_counts(&self, stats: Stats) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }
}
