//! Memory that is ready before somebody writes there.
//!
//! The first write to a page waits for the system, which looks for a page and fills it with zeros:
//! with huge pages for up to two milliseconds. So a thread of its own does that, for the few
//! segments that are given out next. It moves them from those that were never used, or whose memory
//! went back, to those that are free and have memory, which count in the budget as they are.

use crate::cache::Cache;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::{fmt, io, thread};

/// A thread that keeps the next few segments of a cache ready to be written, so that no session
/// waits for the system's memory, or for shorter. It begins once something was written, sleeps
/// while enough is ready, and ends when this is dropped.
///
/// A cache has no such thread unless one is started. Where the system has no way to take memory
/// ahead (Linux before 5.14), it changes nothing.
pub struct Ahead {
    cache: Arc<Cache>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Starts the thread.
    pub fn start(cache: &Arc<Cache>) -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        let (theirs, is_stopping) = (Arc::clone(cache), Arc::clone(&stopping));
        let name = "nuthatch-ahead".to_owned();
        let thread = thread::Builder::new().name(name).spawn(move || {
            while let Some(number) = theirs.wait_for_need(&is_stopping) {
                theirs.populate(number);
            }
        })?;
        Ok(Self { cache: Arc::clone(cache), stopping, thread: Some(thread) })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.cache.segments.wake_ahead();
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

impl Cache {
    /// Waits until a segment should be made ready, and answers it; nothing once this is to stop.
    fn wait_for_need(&self, stopping: &AtomicBool) -> Option<u32> {
        let mut shared = self.segments.lock();
        while !stopping.load(Ordering::Relaxed) {
            shared.ahead = self.ahead();
            if let Some(number) = self.segments.take_ahead(&mut shared) {
                return Some(number);
            }
            let waited = self.segments.taken.wait(shared);
            shared = waited.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Takes memory of the system for a segment. No lock is held meanwhile.
    fn populate(&self, number: u32) {
        self.arena.populate(self.segments.start(number), self.segments.len());
        self.segments.put_ahead(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Options;
    use crate::write::Write;

    fn cache() -> Arc<Cache> {
        Arc::new(Cache::new(Options::new().memory(64 << 20)).expect("a cache"))
    }

    /// Waits until as many segments are ready as should be, and answers how many.
    fn ready(cache: &Cache) -> u32 {
        loop {
            let shared = cache.segments.lock();
            if shared.ahead > 0 && shared.populating == 0 && !cache.segments.is_behind(&shared) {
                return shared.free.len() as u32;
            }
            drop(shared);
            thread::yield_now();
        }
    }

    #[test]
    fn the_next_segments_are_ready() {
        let cache = cache();
        let ahead = Ahead::start(&cache).expect("a thread");
        let mut session = cache.session().expect("a session");
        assert_eq!(ready(&cache), 0, "nobody has written");
        session.turn().set(b"key", b"value", &Write::new()).map(drop).expect("room");
        assert_eq!(ready(&cache), cache.ahead());
        let before = cache.segments.in_use.load(Ordering::Relaxed);
        for number in 0..2_000_u32 {
            let key = number.to_le_bytes();
            session.turn().set(&key, &[7; 1000], &Write::new()).map(drop).expect("room");
        }
        assert!(cache.segments.in_use.load(Ordering::Relaxed) > before + cache.ahead());
        assert_eq!(ready(&cache), cache.ahead());
        drop(ahead);
        assert_eq!(Arc::strong_count(&cache), 1, "the thread is over");
    }

    /// What is ready counts, and is the first to go where large items need it.
    #[test]
    fn what_is_ready_is_within_the_budget() {
        let cache = cache();
        let _ahead = Ahead::start(&cache).expect("a thread");
        let mut session = cache.session().expect("a session");
        session.turn().set(b"key", b"value", &Write::new()).map(drop).expect("room");
        assert_eq!(ready(&cache), cache.ahead());
        cache.reserve(64 << 20);
        assert!(cache.segments.is_owing());
        while cache.segments.is_owing() {
            drop(session.turn());
        }
        assert_eq!(ready(&cache), 0, "there is no room for any");
        cache.reserve(0);
        for number in 0..2_000_u32 {
            let key = number.to_le_bytes();
            session.turn().set(&key, &[7; 1000], &Write::new()).map(drop).expect("room");
        }
        assert_eq!(ready(&cache), cache.ahead());
    }
}
