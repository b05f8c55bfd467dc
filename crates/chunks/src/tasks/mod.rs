//! The cache for tasks: file operations run on threads of their own, never on those of an executor.

mod queue;
mod task;

pub use task::Task;

use crate::chunks::Chunks;
use crate::error::Result;
use crate::get::Read;
use crate::key::Key;
use crate::plan::Lookup;
use crate::put::Stored;
use crate::view::View;
use queue::{Job, Lane, Queue, lock};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use task::{Progress, Promise};

/// A cache whose calls are futures. Cheap to clone; the threads end with the last clone.
#[derive(Clone, Debug)]
pub struct TaskChunks(Arc<Pool>);

/// A buffer that a task has filled. It is returned in any case, so that the caller can reuse it.
#[derive(Debug)]
pub struct Filled {
    /// The buffer, with its length unchanged.
    pub buffer: Vec<u8>,
    /// The beginning of each chunk in the buffer, and the end of the last one.
    pub found: Result<Lookup<Vec<u64>>>,
}

/// The threads and their queue.
#[derive(Debug)]
struct Pool {
    chunks: Arc<Chunks>,
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

impl TaskChunks {
    /// Starts threads, at least one, that work on a cache. If there are several, one is kept free
    /// of puts, so that reads go on while all puts wait.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if a thread cannot be started.
    pub fn new(chunks: Arc<Chunks>, threads: usize) -> std::io::Result<Self> {
        let threads = threads.max(1);
        let queue = Arc::new(Queue::new(threads));
        let mut pool = Pool { chunks, queue, threads: Vec::new() };
        for number in 0..threads {
            let (queue, chunks) = (pool.queue.clone(), pool.chunks.clone());
            let work = move || {
                while let Some((started, job)) = queue.next() {
                    // The caller that waits for work that panicked panics. The thread goes on with
                    // other work.
                    let _ = catch_unwind(AssertUnwindSafe(|| job(&chunks)));
                    queue.ended(started);
                }
            };
            let thread = std::thread::Builder::new().name(format!("chunks-{number}"));
            pool.threads.push(thread.spawn(work)?);
        }
        Ok(Self(Arc::new(pool)))
    }

    /// Returns the cache itself, for calls that block.
    pub fn chunks(&self) -> &Arc<Chunks> {
        &self.0.chunks
    }

    /// Runs work on one of the threads. It is queued when this is called; dropping the future does
    /// not cancel it. Use [`TaskChunks::run_put`] for work that puts.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Chunks) -> T + Send + 'static,
    ) -> Task<T> {
        self.queue(Lane::Reads, work)
    }

    /// Does the same as [`TaskChunks::run`] for work that puts, and so may wait for other threads
    /// or processes that change the folder. Such work never occupies all threads.
    pub fn run_put<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Chunks) -> T + Send + 'static,
    ) -> Task<T> {
        self.queue(Lane::Puts, work)
    }

    /// Waits until all work that puts and was queued before the call has ended. A process that ends
    /// earlier loses it.
    pub fn wait_for_puts(&self) {
        self.0.queue.wait_for_puts();
    }

    fn queue<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce(&Chunks) -> T + Send + 'static,
    ) -> Task<T> {
        let progress = Arc::new(Mutex::new(Progress::Waiting(None)));
        let promise = Promise(progress.clone());
        let job: Job = Box::new(move |chunks| promise.fulfill(work(chunks)));
        self.0.queue.add(lane, job);
        Task(progress)
    }

    /// Does the same as [`Chunks::get`].
    pub fn get(&self, key: Key, range: Range<u64>) -> Task<Result<Lookup<Read>>> {
        self.run(move |chunks| chunks.get(&key, range))
    }

    /// Does the same as [`Chunks::get_into`].
    pub fn get_into(&self, key: Key, range: Range<u64>, mut buffer: Vec<u8>) -> Task<Filled> {
        self.run(move |chunks| {
            let found = chunks.get_into(&key, range, &mut buffer);
            Filled { buffer, found }
        })
    }

    /// Does the same as [`Chunks::view`].
    pub fn view(&self, key: Key, range: Range<u64>) -> Task<Result<Lookup<View>>> {
        self.run(move |chunks| chunks.view(&key, range))
    }

    /// Does the same as [`Chunks::put`].
    pub fn put(
        &self,
        key: Key,
        range: Range<u64>,
        offsets: Vec<u64>,
        data: impl AsRef<[u8]> + Send + 'static,
    ) -> Task<Result<Stored>> {
        self.run_put(move |chunks| chunks.put(&key, range, &offsets, data.as_ref()))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.queue.jobs).is_closed = true;
        self.queue.job_added.notify_all();
        let current = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // One of the threads may drop the last clone, with a job.
            if thread.thread().id() != current {
                let _ = thread.join();
            }
        }
    }
}
