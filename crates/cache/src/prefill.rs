//! The prefill thread, which prepares free segments before they are written.
//!
//! The first write to a page makes the system find a page and fill it with zeros, which takes up to
//! two milliseconds with huge pages. The prefill thread does this for the next few segments. It
//! takes segments that were never used, or whose pages were returned to the system, and adds them
//! to the free segments that have memory. The memory of these segments counts in the budget.

use crate::cache::Cache;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::{fmt, io, thread};

/// A thread that keeps the next few segments of a cache ready for writing, so that sessions rarely
/// wait for page faults. It starts working after the first write, sleeps while enough segments are
/// ready, and ends when this is dropped.
///
/// A cache has no such thread unless one is started. It has no effect on systems that cannot
/// populate pages (Linux before 5.14).
pub struct Prefill {
    cache: Arc<Cache>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Prefill {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system's error if it cannot create a thread.
    pub fn start(cache: &Arc<Cache>) -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let (theirs, is_stopping) = (Arc::clone(cache), Arc::clone(&stopping));
        let name = "nuthatch-prefill".to_owned();
        let thread = thread::Builder::new().name(name).spawn(move || {
            while let Some(number) = theirs.wait_for_segment(&is_stopping) {
                theirs.populate(number);
            }
        })?;
        Ok(Self { cache: Arc::clone(cache), stopping, thread: Some(thread) })
    }
}

impl Drop for Prefill {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.cache.segments.wake_prefill();
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Prefill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefill").finish_non_exhaustive()
    }
}

impl Cache {
    /// Waits until a segment should be prepared and returns its number. Returns `None` after
    /// `stopping` was set.
    fn wait_for_segment(&self, stopping: &AtomicBool) -> Option<u32> {
        let mut shared = self.segments.lock();
        while !stopping.load(Ordering::Relaxed) {
            shared.prefill_target = self.prefill_target();
            if let Some(number) = self.segments.take_to_prefill(&mut shared) {
                return Some(number);
            }
            let waited = self.segments.segment_taken.wait(shared);
            shared = waited.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Makes the system back a segment with pages, without a lock.
    fn populate(&self, number: u32) {
        self.arena.populate(self.segments.start(number), self.segments.len());
        self.segments.finish_prefill(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Options;
    use crate::session::state::Session;
    use crate::write::Write;

    fn cache() -> Arc<Cache> {
        Arc::new(Cache::new(Options::new().memory(64 << 20)).expect("a cache"))
    }

    /// Stores new items of 1,000 bytes.
    fn fill(session: &mut Session<'_>, items: u32) {
        for _ in 0..items {
            let guard = session.guard();
            let key = guard.new_cas().to_le_bytes();
            guard.set(&key, &[7; 1000], &Write::new()).map(drop).expect("room");
        }
    }

    /// Waits until as many segments are ready as should be, and returns their number.
    fn ready(cache: &Cache) -> u32 {
        loop {
            let shared = cache.segments.lock();
            if shared.prefill_target > 0
                && shared.populating == 0
                && !cache.segments.needs_prefill(&shared)
            {
                return shared.free.len() as u32;
            }
            drop(shared);
            thread::yield_now();
        }
    }

    #[test]
    fn the_next_segments_have_memory() {
        let cache = cache();
        let prefill = Prefill::start(&cache).expect("a thread");
        let mut session = cache.session().expect("a session");
        assert_eq!(ready(&cache), 0, "nothing is written yet");
        session.guard().set(b"key", b"value", &Write::new()).map(drop).expect("room");
        assert_eq!(ready(&cache), 0, "little is written");
        for ready_segments in [1, cache.prefill_target()] {
            while cache.segments.in_use.load(Ordering::Relaxed) < 64 * ready_segments {
                fill(&mut session, 100);
            }
            assert_eq!(ready(&cache), ready_segments);
        }
        drop(prefill);
        assert_eq!(Arc::strong_count(&cache), 1, "the thread has ended");
    }

    /// Ready segments count in the budget, and are the first to lose their memory to large items.
    #[test]
    fn prepared_segments_count_in_the_budget() {
        let cache = cache();
        let _prefill = Prefill::start(&cache).expect("a thread");
        let mut session = cache.session().expect("a session");
        fill(&mut session, 52_000);
        assert_eq!(ready(&cache), cache.prefill_target());
        session.guard().clear();
        cache.reserve(64 << 20);
        assert!(cache.segments.has_pages_to_release());
        while cache.segments.has_pages_to_release() {
            drop(session.guard());
        }
        assert_eq!(ready(&cache), 0, "the limit allows none");
        cache.reserve(0);
        fill(&mut session, 52_000);
        assert_eq!(ready(&cache), cache.prefill_target());
    }
}
