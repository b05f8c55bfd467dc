//! What the threads of a parallel scan hand over: batches by part, a bounded number of them.
//!
//! Threads take parts in order. Whoever asks takes batches of the first part that is not finished,
//! where order counts, and of any part where it does not. Threads are at most a few parts ahead,
//! and a few batches in each, so memory stays bounded however slowly batches are taken.

use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Parts that threads may be ahead by, for each thread.
const PARTS_AHEAD_EACH: usize = 2;
/// Batches of a part that wait, at most.
const BATCHES_AHEAD: usize = 8;

pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    /// There is a batch, or the end.
    filled: Condvar,
    /// There is room, or the scan was given up.
    room: Condvar,
    parts: usize,
    ahead: usize,
    ordered: bool,
}

struct State<T> {
    /// The parts that are read, from the first that is not taken whole.
    open: VecDeque<Part<T>>,
    /// The number of the first of them.
    first: usize,
    /// Threads that read.
    workers: usize,
    /// A thread was lost to a panic.
    lost: bool,
    given_up: bool,
}

struct Part<T> {
    batches: VecDeque<Result<Vec<T>>>,
    finished: bool,
}

/// Tells the queue when a thread is gone, whatever the cause.
pub(super) struct Worker<'q, T>(&'q Queue<T>);

impl<T> Drop for Worker<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.workers -= 1;
        state.lost |= std::thread::panicking();
        drop(state);
        self.0.filled.notify_all();
    }
}

impl<T> Queue<T> {
    pub(super) fn new(parts: usize, threads: usize, ordered: bool) -> Self {
        let state =
            State { open: VecDeque::new(), first: 0, workers: 0, lost: false, given_up: false };
        Self {
            state: Mutex::new(state),
            filled: Condvar::new(),
            room: Condvar::new(),
            parts,
            ahead: threads * PARTS_AHEAD_EACH,
            ordered,
        }
    }

    /// A thread is about to start.
    pub(super) fn expect_worker(&self) {
        self.lock().workers += 1;
    }

    /// The thread that is here, until it is dropped.
    pub(super) fn worker(&self) -> Worker<'_, T> {
        Worker(self)
    }

    /// The next part to read; `None` when there is none, or nobody wants it.
    pub(super) fn take(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            let part = state.first + state.open.len();
            if state.given_up || part >= self.parts {
                return None;
            }
            if state.open.len() < self.ahead {
                state.open.push_back(Part { batches: VecDeque::new(), finished: false });
                return Some(part);
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Hands a batch over, when there is room. Whether anybody wants more.
    pub(super) fn put(&self, part: usize, batch: Result<Vec<T>>) -> bool {
        let mut state = self.lock();
        loop {
            if state.given_up {
                return false;
            }
            let at = part - state.first;
            if state.open[at].batches.len() < BATCHES_AHEAD {
                state.open[at].batches.push_back(batch);
                break;
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.filled.notify_one();
        true
    }

    /// All of a part was handed over.
    pub(super) fn finish(&self, part: usize) {
        let mut state = self.lock();
        let at = part - state.first;
        state.open[at].finished = true;
        state.close_finished();
        drop(state);
        self.filled.notify_one();
        self.room.notify_all();
    }

    /// Nobody wants more.
    pub(super) fn give_up(&self) {
        let mut state = self.lock();
        state.given_up = true;
        state.open.iter_mut().for_each(|part| part.batches.clear());
        drop(state);
        self.room.notify_all();
    }

    /// The next batch; `None` after the last, and after an error.
    pub(super) fn next(&self) -> Option<Result<Vec<T>>> {
        let mut state = self.lock();
        loop {
            let among = if self.ordered { 1 } else { state.open.len() };
            let parts = state.open.iter_mut().take(among);
            let batch = parts.map(|part| &mut part.batches).find_map(VecDeque::pop_front);
            if let Some(batch) = batch {
                state.close_finished();
                drop(state);
                self.room.notify_all();
                if batch.is_err() {
                    self.give_up();
                }
                return Some(batch);
            }
            let done = state.first == self.parts;
            if state.lost && !state.given_up {
                drop(state);
                self.give_up();
                let message = "a closure panicked".to_owned();
                return Some(Err(Error::Lmdb { act: "scan in parallel", message }));
            }
            if done || state.given_up || state.workers == 0 {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // What is behind the lock is whole after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Lets go of parts at the front of which nothing is left.
    fn close_finished(&mut self) {
        while self.open.front().is_some_and(|part| part.finished && part.batches.is_empty()) {
            self.open.pop_front();
            self.first += 1;
        }
    }
}
