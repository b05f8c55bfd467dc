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
use crate::file_names::DATA;
use crate::follower::Follower;
use crate::panics::caught;
use crate::shared::Shared;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

/// Maximum time between two checks for commits.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Time until the next check if a commit has written its root, but is not visible to new
/// transactions yet.
const COMMIT_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Returns the follower, which wakes watches. Starts its thread if there is none.
pub(super) fn follower(shared: &Arc<Shared>) -> Result<Arc<Follower>> {
    let mut current = shared.follower.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(follower) = current.upgrade().filter(|follower| follower.check().is_ok()) {
        return Ok(follower);
    }
    let follower = start(shared)?;
    *current = Arc::downgrade(&follower);
    shared.watched.store(true, Ordering::Relaxed);
    Ok(follower)
}

/// Starts a thread that follows the store while a reference to the result exists.
fn start(shared: &Arc<Shared>) -> Result<Arc<Follower>> {
    let path = shared.environment.path().join(DATA);
    let error = |operation| move |e: Errno| Error::io("".as_ref(), operation, e.into());
    let wake_event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let wake_event = wake_event.map_err(error("create an event"))?;
    let file_events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
    // The number of inotify instances of a user is limited. Without one, the thread polls.
    let file_events = file_events.ok().filter(|file_events| {
        inotify::add_watch(file_events, &path, inotify::WatchFlags::MODIFY).is_ok()
    });
    let transaction = shared.last_transaction()?.0;
    let follower = Arc::new(Follower::new(transaction, wake_event));
    let (weak, store) = (Arc::downgrade(&follower), Arc::downgrade(shared));
    let thread = std::thread::Builder::new().name("nuthatch-follow".to_owned());
    let wake_event =
        follower.wake_event().try_clone().map_err(|e| Error::io(&path, "create an event", e))?;
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
        assert!(!follower.panics.load(Ordering::Relaxed), "a panic for a test");
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
