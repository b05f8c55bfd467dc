//! Operations for threads and for tasks, which wait for the disk.

use crate::tiered::TieredCache;
use crate::waiting::Waiter;
use nuthatch_cache::{Error, Guard, OnDisk, Result, Session};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, Thread};

/// How often an operation that found no memory is repeated after some was freed.
const MAX_ROOM_WAITS: usize = 1000;

/// What an operation waits for.
enum Needs {
    /// Items on disk.
    Items(Vec<OnDisk>),
    /// Memory.
    Room,
}

impl TieredCache {
    /// Runs an operation under a guard, and waits for the items on disk that it needs, or for
    /// memory, until it is done. The thread is blocked meanwhile. Each attempt but the last has no
    /// effect: see [`Guard::take_on_disk`].
    ///
    /// ```
    /// # use nuthatch_cache::{Options as CacheOptions, Write};
    /// # use nuthatch_tiered::{Options, TieredCache};
    /// # let folder = tempfile::tempdir()?;
    /// let options = Options::new(folder.path().join("items"), 64 << 20);
    /// let cache = TieredCache::open(CacheOptions::new().memory(16 << 20), &options)?;
    /// let mut session = cache.cache().session()?;
    /// cache.run(&mut session, |guard| guard.set(b"greeting", b"hello", &Write::new()))?;
    /// let value = cache.run(&mut session, |guard| {
    ///     Ok(guard.get(b"greeting").map(|item| item.value().to_vec()))
    /// })?;
    /// assert_eq!(value.as_deref(), Some(&b"hello"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the operation, but not [`Error::OnDisk`].
    pub fn run<R>(
        &self,
        session: &mut Session<'_>,
        mut operation: impl FnMut(&Guard<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut room_waits = 0;
        loop {
            match self.attempt(session, &mut operation, &mut room_waits) {
                Ok(result) => return result,
                Err(needs) => {
                    let waiting = Arc::new(Waiting::for_thread(count(&needs)));
                    self.request(needs, &waiting);
                    while !waiting.is_done() {
                        thread::park();
                    }
                }
            }
        }
    }

    /// Runs an operation as [`run`](Self::run) does, for tasks: the thread is not blocked.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub async fn run_async<R>(
        &self,
        session: &mut Session<'_>,
        mut operation: impl FnMut(&Guard<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut room_waits = 0;
        loop {
            match self.attempt(session, &mut operation, &mut room_waits) {
                Ok(result) => return result,
                Err(needs) => {
                    let waiting = Arc::new(Waiting::for_task(count(&needs)));
                    self.request(needs, &waiting);
                    Done(waiting).await;
                }
            }
        }
    }

    /// Runs an operation once, or twice if memory was freed. Returns what it needs if it is not
    /// done.
    fn attempt<R>(
        &self,
        session: &mut Session<'_>,
        operation: &mut impl FnMut(&Guard<'_>) -> Result<R>,
        room_waits: &mut usize,
    ) -> std::result::Result<Result<R>, Needs> {
        let mut guard = session.guard();
        for is_last in [false, true] {
            let result = operation(&guard);
            let needed = guard.take_on_disk();
            if !needed.is_empty() {
                return Err(Needs::Items(needed));
            }
            match result {
                Err(Error::Full) if !is_last && guard.renew() => {}
                Err(Error::Full) if self.waits_for_disk() && *room_waits < MAX_ROOM_WAITS => {
                    *room_waits += 1;
                    return Err(Needs::Room);
                }
                result => return Ok(result),
            }
        }
        unreachable!("the last attempt returns")
    }

    fn request(&self, needs: Needs, waiting: &Arc<Waiting>) {
        let waiter = Arc::clone(waiting) as Arc<dyn Waiter>;
        match needs {
            Needs::Items(items) => items.into_iter().for_each(|item| self.read(item, &waiter, 0)),
            Needs::Room => self.wait_for_room(&waiter, 0),
        }
    }
}

fn count(needs: &Needs) -> usize {
    match needs {
        Needs::Items(items) => items.len(),
        Needs::Room => 1,
    }
}

/// Who is woken when all is done.
enum Sleeper {
    Thread(Thread),
    Task(Mutex<Option<Waker>>),
}

/// A thread or task that waits.
struct Waiting {
    left: AtomicUsize,
    sleeper: Sleeper,
}

impl Waiting {
    fn for_thread(left: usize) -> Self {
        Self { left: AtomicUsize::new(left), sleeper: Sleeper::Thread(thread::current()) }
    }

    fn for_task(left: usize) -> Self {
        Self { left: AtomicUsize::new(left), sleeper: Sleeper::Task(Mutex::default()) }
    }

    fn is_done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }
}

impl Waiter for Waiting {
    fn ready(&self, _: u64) {
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        match &self.sleeper {
            Sleeper::Thread(thread) => thread.unpark(),
            Sleeper::Task(waker) => {
                let waker = waker.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
    }
}

/// Completes when all is done.
struct Done(Arc<Waiting>);

impl Future for Done {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Sleeper::Task(waker) = &self.0.sleeper {
            let mut waker = waker.lock().unwrap_or_else(PoisonError::into_inner);
            // Stored before the check, so that no call is missed.
            *waker = Some(context.waker().clone());
        }
        if self.0.is_done() { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, WhenBehind};
    use nuthatch_cache::{Condition, Options as CacheOptions, Write};
    use std::task::Wake;

    /// Wakes the thread that polls.
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<R>(future: impl Future<Output = R>) -> R {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut future = std::pin::pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }

    #[test]
    fn threads_and_tasks_find_items_on_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("items"), 256 << 20);
        let options = options.when_behind(WhenBehind::Wait);
        let memory = CacheOptions::new().memory(16 << 20);
        let tiered = TieredCache::open(memory, &options).expect("a cache");
        let mut session = tiered.cache().session().expect("room");
        let key = |number: u32| format!("key:{number}").into_bytes();
        for number in 0..40_000 {
            // Without the condition, a write may remove an item on disk with a similar hash.
            let write = Write::new().condition(Condition::Absent);
            let set = |guard: &Guard<'_>| guard.set(&key(number), &[7; 1000], &write);
            tiered.run(&mut session, set).map(drop).expect("stored");
        }
        let len =
            |guard: &Guard<'_>, number| Ok(guard.get(&key(number)).map(|item| item.value().len()));
        for number in (0..40_000).step_by(97) {
            let found = tiered.run(&mut session, |guard| len(guard, number));
            assert_eq!(found.expect("done"), Some(1000), "{number}");
        }
        for number in (1..40_000).step_by(97) {
            let found = block_on(tiered.run_async(&mut session, |guard| len(guard, number)));
            assert_eq!(found.expect("done"), Some(1000), "{number}");
        }
        let missing = tiered.run(&mut session, |guard| len(guard, 50_000));
        assert_eq!(missing.expect("done"), None);
        let stats = tiered.stats();
        assert!(stats.hits > 400 && stats.dropped == 0, "{stats:?}");
        assert_eq!(tiered.cache().stats().evicted, 0);
    }
}
