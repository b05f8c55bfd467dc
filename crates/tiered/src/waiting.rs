//! Who waits for the disk, and what waits until memory was freed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Who waits for a read: a connection, a task or a thread.
pub trait Waiter: Send + Sync {
    /// Continues what waits with this token: the operation can be repeated. It may need the disk
    /// again. Runs on a thread of the tier, so it must not wait.
    fn ready(&self, token: u64);
}

/// One that waits, and its token.
pub(crate) type Waiting = (Arc<dyn Waiter>, u64);

/// Bytes of items that are read again at a time once memory was freed. At least one is.
const MAX_RETRIED_BYTES: usize = 1 << 20;

/// Time after which the first item is read again although less memory was freed than requested.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// Those that wait until memory was freed.
#[derive(Default)]
pub(crate) struct RoomWaiters {
    lists: Mutex<Lists>,
    /// The thread of the demoter, once it runs.
    demoter: OnceLock<Thread>,
}

#[derive(Default)]
struct Lists {
    writers: Vec<Waiting>,
    /// Those that wait for items that were read and found no memory, with the length of each read.
    items: VecDeque<(usize, Vec<Waiting>)>,
    /// When items were read again last.
    last_retry: Option<Instant>,
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
        self.lock().writers.push(waiting);
        self.wake_demoter();
    }

    /// Adds those that wait for an item that was read and found no memory.
    pub(crate) fn add_item(&self, len: usize, waiting: Vec<Waiting>) {
        self.lock().items.push_back((len, waiting));
        self.wake_demoter();
    }

    fn wake_demoter(&self) {
        if let Some(demoter) = self.demoter.get() {
            demoter.unpark();
        }
    }

    /// Calls all writers, and those that wait for the next items. If less memory is free than was
    /// requested, the first item is tried again only after a while: reading it is costly.
    pub(crate) fn call(&self, is_short: bool) {
        let mut lists = self.lock();
        let mut called = std::mem::take(&mut lists.writers);
        let is_due = !is_short || lists.last_retry.is_none_or(|last| last.elapsed() >= MAX_WAIT);
        let max_bytes = if is_short { 0 } else { MAX_RETRIED_BYTES };
        let mut bytes = 0;
        while is_due && (bytes == 0 || bytes < max_bytes) {
            let Some((len, waiting)) = lists.items.pop_front() else { break };
            lists.last_retry = Some(Instant::now());
            bytes += len.max(1);
            called.extend(waiting);
        }
        drop(lists);
        for (waiter, token) in called {
            waiter.ready(token);
        }
    }

    /// Calls all that wait, since no further memory is freed.
    pub(crate) fn call_all(&self) {
        let Lists { writers, items, .. } = std::mem::take(&mut *self.lock());
        let items = items.into_iter().flat_map(|(_, waiting)| waiting);
        for (waiter, token) in writers.into_iter().chain(items) {
            waiter.ready(token);
        }
    }
}
