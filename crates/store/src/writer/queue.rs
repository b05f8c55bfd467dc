//! The queue of batches that wait to be written, bounded in bytes.

use super::ack::{Ack, Slot};
use super::batch::Batch;
use crate::deadline::deadline;
use crate::error::Error;
use crate::panics::wake;
use crate::process::Owner;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// A batch and the place for its result.
pub(super) struct Item {
    pub(super) batch: Batch,
    pub(super) slot: Arc<Slot>,
}

/// Limits of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) batches: usize,
    pub(super) bytes: usize,
    pub(super) linger: Duration,
}

pub(super) struct Queue {
    /// The process whose thread writes the batches.
    owner: Owner,
    state: Mutex<State>,
    /// Notified when there is a batch, or the queue is closed.
    work: Condvar,
    /// Notified when there is room.
    room: Condvar,
    max_bytes: usize,
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    bytes: usize,
    /// Number of threads that wait for room.
    waiting: usize,
    /// Tasks that wait for room.
    wakers: Vec<Waker>,
    /// Whether the last writer handle was dropped.
    is_closed: bool,
    /// Whether the thread that writes has ended.
    has_ended: bool,
}

impl Queue {
    pub(super) fn new(max_bytes: usize) -> Self {
        let (work, room) = (Condvar::new(), Condvar::new());
        Self { owner: Owner::this(), state: Mutex::new(State::default()), work, room, max_bytes }
    }

    /// Returns an error in a child made by `fork`, where no thread writes.
    pub(super) fn check_process(&self) -> Result<(), Error> {
        self.owner.check()
    }

    /// Adds a batch, or returns it with the reason.
    pub(super) fn offer(&self, batch: Batch) -> Result<Ack, (Batch, Error)> {
        if let Err(error) = self.owner.check() {
            return Err((batch, error));
        }
        self.push(self.lock(), batch)
    }

    /// Adds a batch when there is room.
    pub(super) fn push_when_room(&self, batch: Batch) -> Result<Ack, Error> {
        self.owner.check()?;
        let mut state = self.lock();
        while !self.fits(&state, &batch) && !state.has_ended {
            state.waiting += 1;
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        self.push(state, batch).map_err(|(_, error)| error)
    }

    /// Adds a batch, or returns it and wakes the task when there may be room.
    pub(super) fn offer_or_wake(&self, batch: Batch, waker: &Waker) -> Result<Ack, (Batch, Error)> {
        if let Err(error) = self.owner.check() {
            return Err((batch, error));
        }
        let mut state = self.lock();
        if !self.fits(&state, &batch) && !state.has_ended {
            state.wakers.push(waker.clone());
            return Err((batch, Error::QueueFull));
        }
        self.push(state, batch)
    }

    /// Returns whether there is room. An empty queue accepts a batch of any length.
    fn fits(&self, state: &State, batch: &Batch) -> bool {
        state.items.is_empty() || state.bytes + batch.bytes() <= self.max_bytes
    }

    fn push(&self, mut state: MutexGuard<'_, State>, batch: Batch) -> Result<Ack, (Batch, Error)> {
        if state.has_ended {
            return Err((batch, Error::Closed));
        }
        if !self.fits(&state, &batch) {
            return Err((batch, Error::QueueFull));
        }
        let (ack, slot) = Ack::new();
        state.bytes += batch.bytes();
        state.items.push_back(Item { batch, slot });
        // The thread that writes waits only if the queue is empty, or to gather more batches.
        drop(state);
        self.work.notify_one();
        Ok(ack)
    }

    /// Returns the next group; `None` if the queue is empty and closed.
    pub(super) fn take(&self, group: Group) -> Option<Vec<Item>> {
        let mut state = self.lock();
        while state.items.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let deadline = deadline(group.linger);
        while state.items.len() < group.batches && state.bytes < group.bytes && !state.is_closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.work.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (mut items, mut bytes) = (Vec::new(), 0);
        while let Some(item) = state.items.front() {
            let is_full = items.len() >= group.batches || bytes + item.batch.bytes() > group.bytes;
            if is_full && !items.is_empty() {
                break;
            }
            bytes += item.batch.bytes();
            items.extend(state.items.pop_front());
        }
        state.bytes -= bytes;
        let (wakers, waiting) = (std::mem::take(&mut state.wakers), state.waiting > 0);
        drop(state);
        if waiting {
            self.room.notify_all();
        }
        wakers.into_iter().for_each(wake);
        Some(items)
    }

    /// Closes the queue: waiting batches are written, then the thread ends.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.work.notify_all();
    }

    /// Fails all waiting batches, since the thread that writes has ended.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        let (items, wakers) = (std::mem::take(&mut state.items), std::mem::take(&mut state.wakers));
        drop(state);
        self.room.notify_all();
        wakers.into_iter().for_each(wake);
        for item in items {
            item.slot.complete(Err(Error::Closed));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
