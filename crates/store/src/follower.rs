//! The state of the follower: the last commit, and the tasks that wait for the next one.

use crate::error::{Error, Result};
use crate::panics::wake;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

/// Wakes watches when a transaction was committed.
pub(crate) struct Follower {
    state: Mutex<State>,
    committed: Condvar,
    /// Wakes the thread when it is written to.
    wake_event: OwnedFd,
    /// Number of times that a waiting watch was woken.
    wakeups: AtomicU64,
    /// Makes the thread panic at its next check.
    #[cfg(test)]
    pub(crate) panics: std::sync::atomic::AtomicBool,
}

struct State {
    /// The last transaction that the thread saw.
    transaction: u64,
    /// The tasks that wait, by the IDs of their watches.
    tasks: HashMap<u64, Task>,
    /// The reason why the thread has ended.
    ended: Option<Error>,
    /// Whether the last check failed.
    is_failing: bool,
    next_id: u64,
}

/// A task that waits.
struct Task {
    waker: Waker,
    /// The time to wake the task because its last read failed. Commits do not wake it earlier.
    retry_at: Option<Instant>,
}

/// The result of a wait for commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// A newer transaction was committed.
    Committed,
    /// The deadline passed, and there is no newer transaction.
    TimedOut,
    /// The deadline passed while the follower could not read the store.
    Unknown,
}

impl Follower {
    /// Creates the state of a follower that has seen a transaction.
    pub(crate) fn new(transaction: u64, wake_event: OwnedFd) -> Self {
        let (tasks, ended) = (HashMap::new(), None);
        let state = State { transaction, tasks, ended, is_failing: false, next_id: 0 };
        Self {
            state: Mutex::new(state),
            committed: Condvar::new(),
            wake_event,
            wakeups: AtomicU64::new(0),
            #[cfg(test)]
            panics: std::sync::atomic::AtomicBool::new(false),
        }
    }

    /// Returns the descriptor that wakes the thread when it is written to.
    pub(crate) fn wake_event(&self) -> &OwnedFd {
        &self.wake_event
    }

    /// Makes the thread check for commits now.
    pub(crate) fn notify(&self) {
        // The write fails only if the counter is at its maximum, and the thread is woken anyway.
        let _ = rustix::io::write(&self.wake_event, &1_u64.to_le_bytes());
    }

    /// Returns a new ID for a watch.
    pub(crate) fn new_id(&self) -> u64 {
        let mut state = self.lock();
        state.next_id += 1;
        state.next_id
    }

    /// Returns the number of times that a waiting watch was woken.
    #[cfg(test)]
    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    /// Returns whether a task waits to repeat a failed read.
    #[cfg(test)]
    pub(crate) fn has_task_to_retry(&self) -> bool {
        self.lock().tasks.values().any(|task| task.retry_at.is_some())
    }

    /// Waits until the store has a transaction after `after`, or until `deadline`.
    ///
    /// # Errors
    ///
    /// The reason why the thread has ended: [`Error::Closed`], [`Error::Broken`] or a panic.
    pub(crate) fn wait(&self, after: u64, deadline: Instant) -> Result<Waited> {
        let mut state = self.lock();
        loop {
            if let Some(error) = &state.ended {
                return Err(error.copy());
            }
            if state.transaction > after {
                self.wakeups.fetch_add(1, Ordering::Relaxed);
                return Ok(Waited::Committed);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let failing = state.is_failing;
                return Ok(if failing { Waited::Unknown } else { Waited::TimedOut });
            }
            let waited = self.committed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until `time`, whatever is committed meanwhile.
    ///
    /// # Errors
    ///
    /// The reason why the thread has ended, immediately.
    pub(crate) fn pause_until(&self, time: Instant) -> Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(error) = &state.ended {
                return Err(error.copy());
            }
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let waited = self.committed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the reason as an error if the thread has ended.
    pub(crate) fn check(&self) -> Result<()> {
        self.lock().ended.as_ref().map_or(Ok(()), |error| Err(error.copy()))
    }

    /// Wakes a task when the store has a transaction after `after` or the thread has ended. In the
    /// latter case, the task gets the reason when it reads the store.
    pub(crate) fn wake_after(&self, after: u64, watch_id: u64, waker: Waker) {
        let mut state = self.lock();
        if state.transaction > after || state.ended.is_some() {
            drop(state);
            self.wakeups.fetch_add(1, Ordering::Relaxed);
            wake(waker);
        } else {
            state.tasks.insert(watch_id, Task { waker, retry_at: None });
        }
    }

    /// Wakes a task whose read of the store failed: between `retry_at` and a quarter of a second
    /// later if the thread can read the store then, otherwise as soon as it can, or when it has
    /// ended.
    pub(crate) fn wake_to_retry(&self, retry_at: Instant, watch_id: u64, waker: Waker) {
        let mut state = self.lock();
        if state.ended.is_some() {
            drop(state);
            wake(waker);
        } else {
            state.tasks.insert(watch_id, Task { waker, retry_at: Some(retry_at) });
        }
    }

    /// Removes the task of a watch that no longer waits.
    pub(crate) fn forget(&self, watch_id: u64) {
        let task = self.lock().tasks.remove(&watch_id);
        drop(task);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the newest transaction. Wakes the watches that wait for it, and those whose delay
    /// after a failure has passed.
    pub(crate) fn record_transaction(&self, transaction: u64) {
        let mut state = self.lock();
        state.is_failing = false;
        let is_newer = transaction > state.transaction;
        state.transaction = state.transaction.max(transaction);
        let now = Instant::now();
        let is_due = |task: &Task| task.retry_at.map_or(is_newer, |retry_at| retry_at <= now);
        let due = state.tasks.extract_if(|_, task| is_due(task)).collect();
        drop(state);
        if is_newer {
            self.committed.notify_all();
        }
        self.wake(due);
    }

    /// Records why the thread ends, and wakes all watches.
    pub(crate) fn end(&self, cause: Error) {
        let mut state = self.lock();
        state.ended = Some(cause);
        let all = state.tasks.drain().collect();
        drop(state);
        self.committed.notify_all();
        self.wake(all);
    }

    /// Records that the last check failed.
    pub(crate) fn failed(&self) {
        self.lock().is_failing = true;
    }

    fn wake(&self, tasks: Vec<(u64, Task)>) {
        self.wakeups.fetch_add(tasks.len() as u64, Ordering::Relaxed);
        for (_, task) in tasks {
            wake(task.waker);
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.notify();
    }
}
