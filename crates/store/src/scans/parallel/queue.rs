//! The queue between the threads of a parallel scan and its consumer: a bounded number of batches
//! for each part.
//!
//! Threads take parts in order. The consumer gets batches of the first unfinished part if the scan
//! is ordered, otherwise of any part. Threads are at most a few parts ahead, with a few batches in
//! each, so memory is bounded even if the consumer is slow.

use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of parts that are open, for each thread.
const OPEN_PARTS_PER_THREAD: usize = 2;
/// Maximum number of batches of a part that are ready.
const MAX_READY_BATCHES: usize = 8;

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Notified when there is a batch, or the end.
    filled: Condvar,
    /// Notified when there is room, or the scan was cancelled.
    room: Condvar,
    parts: usize,
    max_open: usize,
    is_ordered: bool,
}

struct State<T> {
    /// The parts that are being read, from the first one that is not completely consumed.
    open: VecDeque<Part<T>>,
    /// The number of the first open part.
    first: usize,
    /// The number of threads that read.
    workers: usize,
    /// Whether a thread panicked.
    has_panicked: bool,
    cancelled: bool,
}

struct Part<T> {
    batches: VecDeque<Result<Vec<T>>>,
    is_finished: bool,
}

/// Removes a thread from the queue when it is dropped, also after a panic.
pub(super) struct Worker<'q, T>(&'q Queue<T>);

impl<T> Drop for Worker<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.workers -= 1;
        state.has_panicked |= std::thread::panicking();
        drop(state);
        self.0.filled.notify_all();
    }
}

impl<T> Queue<T> {
    pub(super) fn new(parts: usize, threads: usize, is_ordered: bool) -> Self {
        let state = State {
            open: VecDeque::new(),
            first: 0,
            workers: 0,
            has_panicked: false,
            cancelled: false,
        };
        Self {
            state: Mutex::new(state),
            filled: Condvar::new(),
            room: Condvar::new(),
            parts,
            max_open: threads * OPEN_PARTS_PER_THREAD,
            is_ordered,
        }
    }

    /// Counts a thread that is about to start.
    pub(super) fn expect_worker(&self) {
        self.lock().workers += 1;
    }

    /// Returns a guard for the current thread, which was counted by `expect_worker`.
    pub(super) fn worker(&self) -> Worker<'_, T> {
        Worker(self)
    }

    /// Returns the next part to read; `None` after the last one, or if the scan was cancelled.
    pub(super) fn take(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            let part = state.first + state.open.len();
            if state.cancelled || part >= self.parts {
                return None;
            }
            if state.open.len() < self.max_open {
                state.open.push_back(Part { batches: VecDeque::new(), is_finished: false });
                return Some(part);
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds a batch, when there is room. Returns whether to continue.
    pub(super) fn put(&self, part: usize, batch: Result<Vec<T>>) -> bool {
        let mut state = self.lock();
        loop {
            if state.cancelled {
                return false;
            }
            let at = part - state.first;
            if state.open[at].batches.len() < MAX_READY_BATCHES {
                state.open[at].batches.push_back(batch);
                break;
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.filled.notify_one();
        true
    }

    /// Marks a part as completely read.
    pub(super) fn finish(&self, part: usize) {
        let mut state = self.lock();
        let at = part - state.first;
        state.open[at].is_finished = true;
        state.close_finished();
        drop(state);
        self.filled.notify_one();
        self.room.notify_all();
    }

    /// Cancels the scan.
    pub(super) fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        state.open.iter_mut().for_each(|part| part.batches.clear());
        drop(state);
        self.room.notify_all();
    }

    /// Returns the next batch; `None` after the last one, and after an error.
    pub(super) fn next(&self) -> Option<Result<Vec<T>>> {
        let mut state = self.lock();
        loop {
            let among = if self.is_ordered { 1 } else { state.open.len() };
            let parts = state.open.iter_mut().take(among);
            let batch = parts.map(|part| &mut part.batches).find_map(VecDeque::pop_front);
            if let Some(batch) = batch {
                state.close_finished();
                drop(state);
                self.room.notify_all();
                if batch.is_err() {
                    self.cancel();
                }
                return Some(batch);
            }
            let is_done = state.first == self.parts;
            if state.has_panicked && !state.cancelled {
                drop(state);
                self.cancel();
                let message = "a closure panicked".to_owned();
                return Some(Err(Error::Lmdb { operation: "scan in parallel", message }));
            }
            if is_done || state.cancelled || state.workers == 0 {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // The state is consistent after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Removes finished parts without batches from the front.
    fn close_finished(&mut self) {
        while self.open.front().is_some_and(|part| part.is_finished && part.batches.is_empty()) {
            self.open.pop_front();
            self.first += 1;
        }
    }
}
