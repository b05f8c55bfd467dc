//! What the threads that forward requests share.

use super::memory::ForwardMemory;
use super::request::Part;
use crate::log;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pause before a request that was refused is sent again.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// What the threads of the connections use, too.
#[derive(Default)]
pub(crate) struct Shared {
    /// Parts to be sent again, with the time, in ascending order.
    delayed: Mutex<VecDeque<(Instant, Part)>>,
    changed: Condvar,
    is_stopping: AtomicBool,
    pub(crate) memory: Arc<ForwardMemory>,
    pub(crate) failed: AtomicU64,
    pub(crate) forwarded: AtomicU64,
}

impl Shared {
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Ends all threads.
    pub(crate) fn stop(&self) {
        {
            // No thread is between its look at this and its wait.
            let _delayed = self.delayed();
            self.is_stopping.store(true, Ordering::Release);
        }
        self.changed.notify_all();
    }

    fn delayed(&self) -> MutexGuard<'_, VecDeque<(Instant, Part)>> {
        self.delayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a part again after a pause, unless it was tried for long enough. No node has executed
    /// it.
    pub(crate) fn retry(&self, mut part: Part, reason: &str) {
        let now = Instant::now();
        if now >= part.forward.until {
            return self.fail(&part, reason);
        }
        part.refusal = Some(reason.to_owned());
        self.delayed().push_back((now + RETRY_PAUSE, part));
        self.changed.notify_one();
    }

    /// Ends the request of a part with an error.
    pub(crate) fn fail(&self, part: &Part, reason: &str) {
        part.forward.fail(reason, || self.note_failed(reason));
    }

    /// Ends a part whose reply was lost. One that changes nothing is sent again.
    pub(crate) fn lose(&self, part: Part, reason: &str) {
        if !part.forward.writes {
            return self.retry(part, reason);
        }
        part.forward.lose(|| self.note_failed(reason));
    }

    fn note_failed(&self, reason: &str) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        log::forward_failed(reason);
    }

    /// Waits until parts are to be sent again. Returns `None` when the server stops.
    pub(crate) fn next_delayed(&self) -> Option<Vec<Part>> {
        let mut delayed = self.delayed();
        loop {
            if self.is_stopping() {
                return None;
            }
            let now = Instant::now();
            let due = delayed.iter().take_while(|(at, _)| *at <= now).count();
            if due > 0 {
                return Some(delayed.drain(..due).map(|(_, part)| part).collect());
            }
            let next = delayed.front().map(|(at, _)| *at - now);
            delayed = match next {
                Some(time) => {
                    let waited = self.changed.wait_timeout(delayed, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(delayed).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
