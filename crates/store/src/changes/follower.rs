//! A thread that detects commits of this and other processes, and wakes watches.
//!
//! inotify reports writes of every process, and a commit ends with a write of a meta page, so the
//! thread does not poll. If inotify is unavailable, the thread checks for commits four times a
//! second.
//!
//! A check needs a reader slot and some memory, so it can fail temporarily: see
//! [`Error::is_transient`]. The thread then repeats it after the next delay of a [`Backoff`], and
//! counts the failure. Any other error, such as a closed or damaged store, and a panic end the
//! thread. A waiting watch gets that error, and the next new watch starts another thread.
//!
//! The read of a watch can fail in the same way. The thread wakes the task of such a watch after
//! its delay, once the thread itself can read the store.

use super::backoff::Backoff;
use crate::error::{Error, Result};
use crate::file::DATA;
use crate::panics::{caught, wake};
use crate::store::Shared;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Maximum time between two checks for commits.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time until the next check if a commit has written its root, but is not visible to new
/// transactions yet.
const COMMIT_POLL_INTERVAL: Duration = Duration::from_millis(1);

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
    pub(super) panics: std::sync::atomic::AtomicBool,
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
    /// Starts a thread that follows the store while a reference to the result exists.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Arc<Self>> {
        let path = shared.environment.path().join(DATA);
        let error = |operation| move |e: Errno| Error::io("".as_ref(), operation, e.into());
        let wake_event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake_event = wake_event.map_err(error("make an event"))?;
        let file_events =
            inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
        // The number of inotify instances of a user is limited. Without one, the thread polls.
        let file_events = file_events.ok().filter(|file_events| {
            inotify::add_watch(file_events, &path, inotify::WatchFlags::MODIFY).is_ok()
        });
        let transaction = shared.last_transaction()?.0;
        let (tasks, ended) = (HashMap::new(), None);
        let state = State { transaction, tasks, ended, is_failing: false, next_id: 0 };
        let follower = Arc::new(Self {
            state: Mutex::new(state),
            committed: Condvar::new(),
            wake_event,
            wakeups: AtomicU64::new(0),
            #[cfg(test)]
            panics: std::sync::atomic::AtomicBool::new(false),
        });
        let (weak, store) = (Arc::downgrade(&follower), Arc::downgrade(shared));
        let thread = std::thread::Builder::new().name("nuthatch-follow".to_owned());
        let wake_event =
            follower.wake_event.try_clone().map_err(|e| Error::io(&path, "make an event", e))?;
        let started = thread.spawn(move || {
            let outcome = caught("follow commits", || {
                follow(&weak, &store, &wake_event, file_events.as_ref());
            });
            if let (Err(error), Some(follower)) = (outcome, weak.upgrade()) {
                follower.end(error);
            }
        });
        started.map_err(|e| Error::io(&path, "start a thread", e))?;
        Ok(follower)
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

    /// Wakes a task whose read of the store failed: between `retry_at` and [`POLL_INTERVAL`] later
    /// if the thread can read the store then, otherwise as soon as it can, or when it has ended.
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
    fn record_transaction(&self, transaction: u64) {
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
    fn end(&self, cause: Error) {
        let mut state = self.lock();
        state.ended = Some(cause);
        let all = state.tasks.drain().collect();
        drop(state);
        self.committed.notify_all();
        self.wake(all);
    }

    fn failed(&self) {
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

/// Checks for commits after each event, until the store is closed or has no more watches.
fn follow(
    follower: &Weak<Follower>,
    store: &Weak<Shared>,
    wake_event: &OwnedFd,
    file_events: Option<&OwnedFd>,
) {
    let mut wait = POLL_INTERVAL;
    let mut backoff = Backoff::default();
    let mut retry_delay = None;
    loop {
        // Commits of other processes must not shorten the delay before a failed check is repeated.
        sleep(
            wake_event,
            file_events.filter(|_| retry_delay.is_none()),
            retry_delay.unwrap_or(wait),
        );
        let (Some(follower), Some(store)) = (follower.upgrade(), store.upgrade()) else { return };
        #[cfg(test)]
        assert!(!follower.panics.load(Ordering::Relaxed), "a test asked for it");
        match store.last_transaction() {
            Ok((transaction, written)) => {
                backoff.reset();
                retry_delay = None;
                wait = if written > transaction { COMMIT_POLL_INTERVAL } else { POLL_INTERVAL };
                follower.record_transaction(transaction);
            }
            Err(error) if error.is_transient() => {
                retry_delay = Some(backoff.next_delay());
                follower.failed();
                store.watch_failures.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => return follower.end(error),
        }
    }
}

/// Waits for a write to the file, for the wake event, or until `max_wait` has passed.
fn sleep(wake_event: &OwnedFd, file_events: Option<&OwnedFd>, max_wait: Duration) {
    let mut descriptors = vec![PollFd::new(wake_event, PollFlags::IN)];
    descriptors.extend(file_events.map(|file_events| PollFd::new(file_events, PollFlags::IN)));
    let tv_sec = i64::try_from(max_wait.as_secs()).unwrap_or(i64::MAX);
    let timeout = Timespec { tv_sec, tv_nsec: i64::from(max_wait.subsec_nanos()) };
    // The caller checks the store in any case, also after an error.
    let _ = poll(&mut descriptors, Some(&timeout));
    let _ = rustix::io::read(wake_event, &mut [0_u8; 8]);
    if let Some(file_events) = file_events {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut reader = inotify::Reader::new(file_events, &mut buffer);
        while reader.next().is_ok() {}
    }
}
