//! Notices commits of this and of other processes: a thread that waits for writes to the file.
//!
//! inotify reports writes of every process, and a commit ends with a write of a meta page, so the
//! thread does not poll. Where inotify reports nothing, the thread looks at the store four times a
//! second.
//!
//! A look needs a slot of a reader and some memory, so it can fail for a while: see
//! [`Error::is_transient`]. The thread then looks again after the next delay of a [`Backoff`], and
//! counts the failure. It ends with any other error, such as a store that is closed or damaged, or
//! by a panic; a watch that waits gets that error, and the next watch that begins starts another
//! thread.
//!
//! The look of a watch can fail in the same way. The thread wakes the task of such a watch when its
//! delay is over and the thread itself can read the store.

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

/// Without news from the kernel, the store is looked at after so long.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A commit whose root is written, but which new transactions do not see yet, is seen very soon.
const LOOK_SOON: Duration = Duration::from_millis(1);

/// What wakes watches.
pub(crate) struct Follower {
    state: Mutex<State>,
    moved: Condvar,
    /// Written to when the thread should look.
    bell: OwnedFd,
    /// Times that a waiting watch was let go on to look at the store.
    wakeups: AtomicU64,
    /// Makes the thread panic at its next look.
    #[cfg(test)]
    pub(super) panics: std::sync::atomic::AtomicBool,
}

struct State {
    /// The last transaction that was seen.
    transaction: u64,
    /// The tasks that wait, by the names of their watches.
    tasks: HashMap<u64, Task>,
    /// Why the thread has ended.
    ended: Option<Error>,
    /// Whether the last look failed.
    is_failing: bool,
    next_name: u64,
}

/// A task that waits.
struct Task {
    waker: Waker,
    /// When to wake it although nothing was committed, because its last look failed. Commits do not
    /// wake it before.
    retry_at: Option<Instant>,
}

/// What a wait for commits ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// There is a newer transaction.
    Moved,
    /// The deadline passed, and there is no newer transaction.
    TimedOut,
    /// The deadline passed while the follower could not read the store.
    Unknown,
}

impl Follower {
    /// Starts a thread that follows a store as long as somebody holds this.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Arc<Self>> {
        let path = shared.environment.path().join(DATA);
        let error = |act| move |e: Errno| Error::io("".as_ref(), act, e.into());
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bell = bell.map_err(error("make an event"))?;
        let news = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
        // There may be as many of these in use as a user may have: then looking must do.
        let news = news
            .ok()
            .filter(|news| inotify::add_watch(news, &path, inotify::WatchFlags::MODIFY).is_ok());
        let transaction = shared.last_transaction()?.0;
        let (tasks, ended) = (HashMap::new(), None);
        let state = State { transaction, tasks, ended, is_failing: false, next_name: 0 };
        let follower = Arc::new(Self {
            state: Mutex::new(state),
            moved: Condvar::new(),
            bell,
            wakeups: AtomicU64::new(0),
            #[cfg(test)]
            panics: std::sync::atomic::AtomicBool::new(false),
        });
        let (weak, store) = (Arc::downgrade(&follower), Arc::downgrade(shared));
        let thread = std::thread::Builder::new().name("nuthatch-follow".to_owned());
        let bell = follower.bell.try_clone().map_err(|e| Error::io(&path, "make an event", e))?;
        let started = thread.spawn(move || {
            let outcome = caught("follow commits", || {
                follow(&weak, &store, &bell, news.as_ref());
            });
            if let (Err(error), Some(follower)) = (outcome, weak.upgrade()) {
                follower.end(error);
            }
        });
        started.map_err(|e| Error::io(&path, "start a thread", e))?;
        Ok(follower)
    }

    /// Has the thread look now.
    pub(crate) fn ring(&self) {
        // A bell that rings already cannot ring more.
        let _ = rustix::io::write(&self.bell, &1_u64.to_le_bytes());
    }

    /// A name for a watch, to register under.
    pub(crate) fn name(&self) -> u64 {
        let mut state = self.lock();
        state.next_name += 1;
        state.next_name
    }

    /// Returns how often a watch that waited was let go on.
    #[cfg(test)]
    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    /// Returns whether a task waits to look again after a look that failed.
    #[cfg(test)]
    pub(crate) fn has_task_to_retry(&self) -> bool {
        self.lock().tasks.values().any(|task| task.retry_at.is_some())
    }

    /// Waits until the store has a transaction after `after`, at most until `deadline`.
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
                return Ok(Waited::Moved);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let failing = state.is_failing;
                return Ok(if failing { Waited::Unknown } else { Waited::TimedOut });
            }
            let waited = self.moved.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until a moment, whatever is committed meanwhile.
    ///
    /// # Errors
    ///
    /// The reason why the thread has ended, at once.
    pub(crate) fn pause_until(&self, moment: Instant) -> Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(error) = &state.ended {
                return Err(error.copy());
            }
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let waited = self.moved.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Fails if the thread has ended, with the reason.
    pub(crate) fn check(&self) -> Result<()> {
        self.lock().ended.as_ref().map_or(Ok(()), |error| Err(error.copy()))
    }

    /// Wakes a task when the store has a transaction after `after`, or the thread has ended: the
    /// task then gets the reason from its look at the store.
    pub(crate) fn wake_after(&self, after: u64, name: u64, waker: Waker) {
        let mut state = self.lock();
        if state.transaction > after || state.ended.is_some() {
            drop(state);
            self.wakeups.fetch_add(1, Ordering::Relaxed);
            wake(waker);
        } else {
            state.tasks.insert(name, Task { waker, retry_at: None });
        }
    }

    /// Wakes a task whose look at the store failed: at `retry_at` or up to [`LOOK_EVERY`] later if
    /// the thread can read the store then, otherwise as soon as it can, or when it has ended.
    pub(crate) fn wake_to_retry(&self, retry_at: Instant, name: u64, waker: Waker) {
        let mut state = self.lock();
        if state.ended.is_some() {
            drop(state);
            wake(waker);
        } else {
            state.tasks.insert(name, Task { waker, retry_at: Some(retry_at) });
        }
    }

    /// Forgets the task of a watch, which waits no more.
    pub(crate) fn forget(&self, name: u64) {
        let task = self.lock().tasks.remove(&name);
        drop(task);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is behind the lock is whole after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what the newest transaction is. Wakes the watches that wait for it, and those whose
    /// delay after a failure is over.
    fn moved_to(&self, transaction: u64) {
        let mut state = self.lock();
        state.is_failing = false;
        let is_newer = transaction > state.transaction;
        state.transaction = state.transaction.max(transaction);
        let now = Instant::now();
        let is_due = |task: &Task| task.retry_at.map_or(is_newer, |retry_at| retry_at <= now);
        let due = state.tasks.extract_if(|_, task| is_due(task)).collect();
        drop(state);
        if is_newer {
            self.moved.notify_all();
        }
        self.wake(due);
    }

    /// Records why the thread ends, and wakes all watches.
    fn end(&self, cause: Error) {
        let mut state = self.lock();
        state.ended = Some(cause);
        let all = state.tasks.drain().collect();
        drop(state);
        self.moved.notify_all();
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
        self.ring();
    }
}

/// Looks at the store after each event until the store is closed or nothing watches it any more.
fn follow(follower: &Weak<Follower>, store: &Weak<Shared>, bell: &OwnedFd, news: Option<&OwnedFd>) {
    let mut wait = LOOK_EVERY;
    let mut backoff = Backoff::default();
    let mut retry_delay = None;
    loop {
        // Commits of others must not shorten the delay before a failed look is repeated.
        sleep(bell, news.filter(|_| retry_delay.is_none()), retry_delay.unwrap_or(wait));
        let (Some(follower), Some(store)) = (follower.upgrade(), store.upgrade()) else { return };
        #[cfg(test)]
        assert!(!follower.panics.load(Ordering::Relaxed), "a test asked for it");
        match store.last_transaction() {
            Ok((transaction, written)) => {
                backoff.reset();
                retry_delay = None;
                wait = if written > transaction { LOOK_SOON } else { LOOK_EVERY };
                follower.moved_to(transaction);
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

/// Waits for a write to the file, the bell, or the end of `time`.
fn sleep(bell: &OwnedFd, news: Option<&OwnedFd>, time: Duration) {
    let mut descriptors = vec![PollFd::new(bell, PollFlags::IN)];
    descriptors.extend(news.map(|news| PollFd::new(news, PollFlags::IN)));
    let tv_sec = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let timeout = Timespec { tv_sec, tv_nsec: i64::from(time.subsec_nanos()) };
    // The caller looks at the store whatever ended the wait, an error included.
    let _ = poll(&mut descriptors, Some(&timeout));
    let _ = rustix::io::read(bell, &mut [0_u8; 8]);
    if let Some(news) = news {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut reader = inotify::Reader::new(news, &mut buffer);
        while reader.next().is_ok() {}
    }
}
