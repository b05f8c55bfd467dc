//! Operations that wait for the disk, or until memory was freed.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A connection, a task or a thread that waits for a read.
pub trait Waiter: Send + Sync {
    /// Continues what waits with this token: the operation can be repeated. It may need the disk
    /// again. Runs on a thread of the tier, so it must not wait.
    fn ready(&self, token: u64);
}

/// A waiter, and the token of the operation that waits.
pub(crate) type Waiting = (Arc<dyn Waiter>, u64);

/// Time after which the first long item is read again although less memory is free than was
/// requested.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// Maximum time of one wait of a thread: operations, too, free memory, and wake no waiter.
const MAX_THREAD_WAIT: Duration = Duration::from_millis(10);

/// The operations that wait until memory was freed.
#[derive(Default)]
pub(crate) struct RoomWaiters {
    lists: Mutex<Lists>,
    /// Notified by each [`call`](Self::call), and when no further memory is freed.
    called: Condvar,
    /// The thread of the demoter, once it runs.
    demoter: OnceLock<Thread>,
}

#[derive(Default)]
struct Lists {
    writers: Vec<Waiting>,
    /// The operations that wait for each long item that was read and found no memory.
    long_items: VecDeque<Vec<Waiting>>,
    /// When a long item was read again last.
    last_retry: Option<Instant>,
    calls: u64,
    /// Whether no further memory is freed.
    is_closed: bool,
}

impl RoomWaiters {
    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the current thread the one that is woken when something begins to wait.
    pub(crate) fn set_demoter(&self) {
        self.demoter.get_or_init(thread::current);
    }

    /// Adds a writer that found no memory.
    pub(crate) fn add_writer(&self, waiting: Waiting) {
        self.add(|lists| lists.writers.push(waiting));
    }

    /// Adds those that wait for a long item that was read and found no memory.
    pub(crate) fn add_long_item(&self, waiting: Vec<Waiting>) {
        self.add(|lists| lists.long_items.push_back(waiting));
    }

    /// Waits until the demoter freed memory, or for [`MAX_THREAD_WAIT`]. Returns `false` if the
    /// demoter frees no more memory.
    pub(crate) fn wait(&self) -> bool {
        let lists = self.lock();
        let before = lists.calls;
        self.wake_demoter();
        let waits = |lists: &mut Lists| lists.calls == before && !lists.is_closed;
        let waited = self.called.wait_timeout_while(lists, MAX_THREAD_WAIT, waits);
        let (lists, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !lists.is_closed
    }

    fn wake_demoter(&self) {
        if let Some(demoter) = self.demoter.get() {
            demoter.unpark();
        }
    }

    fn add(&self, push: impl FnOnce(&mut Lists)) {
        let mut lists = self.lock();
        push(&mut lists);
        let is_closed = lists.is_closed;
        drop(lists);
        if is_closed {
            self.close();
        } else {
            self.wake_demoter();
        }
    }

    /// Wakes the threads that [`wait`](Self::wait), and calls all writers and those that wait for
    /// the first long item. If less memory is free than was requested, that item is tried again
    /// only after a while: reading it is costly.
    pub(crate) fn call(&self, is_short: bool) {
        let mut lists = self.lock();
        lists.calls += 1;
        self.called.notify_all();
        let mut called = std::mem::take(&mut lists.writers);
        if (!is_short || lists.last_retry.is_none_or(|last| last.elapsed() >= MAX_WAIT))
            && let Some(waiting) = lists.long_items.pop_front()
        {
            lists.last_retry = Some(Instant::now());
            called.extend(waiting);
        }
        drop(lists);
        for (waiter, token) in called {
            waiter.ready(token);
        }
    }

    /// Calls all that wait, and those that are added later at once, since no further memory is
    /// freed.
    pub(crate) fn close(&self) {
        let closed = Lists { is_closed: true, ..Lists::default() };
        let Lists { writers, long_items, .. } = std::mem::replace(&mut *self.lock(), closed);
        self.called.notify_all();
        for (waiter, token) in writers.into_iter().chain(long_items.into_iter().flatten()) {
            waiter.ready(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects the tokens of those that were called.
    #[derive(Default)]
    struct Called(Mutex<Vec<u64>>);

    impl Waiter for Called {
        fn ready(&self, token: u64) {
            self.0.lock().expect("no panic").push(token);
        }
    }

    #[derive(Default)]
    struct Case {
        waiters: RoomWaiters,
        called: Arc<Called>,
    }

    impl Case {
        fn waiting(&self, token: u64) -> Waiting {
            (Arc::clone(&self.called) as _, token)
        }

        fn add_long_item(&self, token: u64) {
            self.waiters.add_long_item(vec![self.waiting(token)]);
        }

        /// Returns those that were called since the last time.
        fn called(&self) -> Vec<u64> {
            std::mem::take(&mut *self.called.0.lock().expect("no panic"))
        }
    }

    #[test]
    fn long_items_are_tried_one_at_a_time_and_writers_all_at_once() {
        let case = Case::default();
        (1..=3).for_each(|token| case.add_long_item(token));
        (4..=6).for_each(|token| case.waiters.add_writer(case.waiting(token)));
        // The first attempt needs no free memory.
        case.waiters.call(true);
        assert_eq!(case.called(), [4, 5, 6, 1]);
        case.waiters.call(false);
        assert_eq!(case.called(), [2]);
        case.waiters.call(false);
        assert_eq!(case.called(), [3]);
        case.waiters.call(false);
        assert_eq!(case.called(), []);
    }

    #[test]
    fn all_are_called_at_once_when_no_further_memory_is_freed() {
        let case = Case::default();
        case.waiters.add_writer(case.waiting(1));
        case.add_long_item(2);
        case.waiters.close();
        assert_eq!(case.called(), [1, 2]);
        case.add_long_item(3);
        case.waiters.add_writer(case.waiting(4));
        assert_eq!(case.called(), [3, 4]);
    }
}
