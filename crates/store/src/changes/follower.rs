//! Notices commits of this and of other processes: a thread that waits for the file to be written.
//!
//! The kernel tells whoever asks that a file was written to, whichever process wrote. A commit ends
//! with a write of a meta page, so nothing is polled. Where the kernel tells nothing, as for files
//! of other machines, a look from time to time does.

use crate::error::{Error, Result};
use crate::file::DATA;
use crate::store::Shared;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
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
}

struct State {
    /// The last transaction that was seen.
    transaction: u64,
    wakers: HashMap<u64, Waker>,
    /// The thread is gone; why, if for a cause.
    ended: bool,
    next_name: u64,
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
        let state = State { transaction, wakers: HashMap::new(), ended: false, next_name: 0 };
        let follower = Self { state: Mutex::new(state), moved: Condvar::new(), bell };
        let follower = Arc::new(follower);
        let (weak, store) = (Arc::downgrade(&follower), Arc::downgrade(shared));
        let thread = std::thread::Builder::new().name("nuthatch-follow".to_owned());
        let bell = follower.bell.try_clone().map_err(|e| Error::io(&path, "make an event", e))?;
        let started = thread.spawn(move || follow(&weak, &store, &bell, news.as_ref()));
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

    /// Waits until a transaction after this one is seen, at most until then. Whether it was.
    pub(crate) fn wait(&self, after: u64, deadline: Instant) -> bool {
        let mut state = self.lock();
        while state.transaction <= after && !state.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.moved.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Wakes a task when a transaction after this one is seen.
    pub(crate) fn wake_after(&self, after: u64, name: u64, waker: Waker) {
        let mut state = self.lock();
        if state.transaction > after || state.ended {
            drop(state);
            waker.wake();
        } else {
            state.wakers.insert(name, waker);
        }
    }

    /// Nobody of that name waits any more.
    pub(crate) fn forget(&self, name: u64) {
        let waker = self.lock().wakers.remove(&name);
        drop(waker);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is behind the lock is whole after each statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, transaction: u64, ended: bool) {
        let mut state = self.lock();
        if transaction == state.transaction && !ended {
            return;
        }
        state.transaction = transaction.max(state.transaction);
        state.ended |= ended;
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.moved.notify_all();
        wakers.into_values().for_each(Waker::wake);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ring();
    }
}

fn follow(follower: &Weak<Follower>, store: &Weak<Shared>, bell: &OwnedFd, news: Option<&OwnedFd>) {
    let mut wait = LOOK_EVERY;
    loop {
        sleep(bell, news, wait);
        let Some(follower) = follower.upgrade() else { return };
        let seen = store.upgrade().map(|shared| shared.last_transaction());
        let Some(Ok((transaction, written))) = seen else {
            // The store is closed, or fails: whoever waits finds out by itself.
            return follower.tell(0, true);
        };
        wait = if written > transaction { LOOK_SOON } else { LOOK_EVERY };
        follower.tell(transaction, false);
    }
}

/// Waits for news, the bell, or some time.
fn sleep(bell: &OwnedFd, news: Option<&OwnedFd>, time: Duration) {
    let mut descriptors = vec![PollFd::new(bell, PollFlags::IN)];
    descriptors.extend(news.map(|news| PollFd::new(news, PollFlags::IN)));
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
    // Whatever woke it, it looks at the store.
    let _ = poll(&mut descriptors, Some(&timeout));
    let _ = rustix::io::read(bell, &mut [0_u8; 8]);
    if let Some(news) = news {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut reader = inotify::Reader::new(news, &mut buffer);
        while reader.next().is_ok() {}
    }
}
