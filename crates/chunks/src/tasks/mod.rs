//! The cache for tasks: file work is done by threads of its own, never by those of an executor.

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
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use task::{Answer, Place};

/// A cache whose calls are futures. Cheap to clone; the threads end with the last clone.
#[derive(Clone, Debug)]
pub struct TaskChunks(Arc<Crew>);

/// A buffer that was lent to a task. It comes back whatever happened: one that is used again and
/// again costs no new memory.
#[derive(Debug)]
pub struct Filled {
    /// The buffer, as long as it was.
    pub buffer: Vec<u8>,
    /// Where in it each chunk begins, and where the last one ends.
    pub found: Result<Lookup<Vec<u64>>>,
}

#[derive(Debug)]
struct Crew {
    chunks: Arc<Chunks>,
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

impl TaskChunks {
    /// Starts so many threads, at least one, that work on a cache. If there are several, one of
    /// them is kept free of puts, so that reads go on while all puts wait.
    pub fn new(chunks: Arc<Chunks>, threads: usize) -> std::io::Result<Self> {
        let threads = threads.max(1);
        let queue = Arc::new(Queue::new(threads));
        let mut crew = Crew { chunks, queue, threads: Vec::new() };
        for number in 0..threads {
            let (queue, chunks) = (crew.queue.clone(), crew.chunks.clone());
            let work = move || {
                while let Some((lane, job)) = queue.next() {
                    // Whoever waits for work that panicked panics; others need the thread.
                    let _ = catch_unwind(AssertUnwindSafe(|| job(&chunks)));
                    queue.ended(lane);
                }
            };
            let thread = std::thread::Builder::new().name(format!("chunks-{number}"));
            crew.threads.push(thread.spawn(work)?);
        }
        Ok(Self(Arc::new(crew)))
    }

    /// The cache itself, for calls that block.
    pub fn chunks(&self) -> &Arc<Chunks> {
        &self.0.chunks
    }

    /// Does some work on one of the threads. It begins when this is called; dropping the future
    /// does not take it back. Work that puts is for [`TaskChunks::run_put`].
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Chunks) -> T + Send + 'static,
    ) -> Task<T> {
        self.queue(Lane::Reads, work)
    }

    /// As [`TaskChunks::run`], for work that puts, and so may wait for other threads or processes
    /// that change the folder. It never keeps all threads from work that reads.
    pub fn run_put<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Chunks) -> T + Send + 'static,
    ) -> Task<T> {
        self.queue(Lane::Puts, work)
    }

    /// Waits until no work that puts is queued or under way. A process that ends before loses it.
    pub fn wait_for_puts(&self) {
        let queue = &self.0.queue;
        let mut jobs = lock(&queue.jobs);
        while !jobs.puts.is_empty() || jobs.putting > 0 {
            jobs = queue.put.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn queue<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce(&Chunks) -> T + Send + 'static,
    ) -> Task<T> {
        let answer = Arc::new(Mutex::new(Answer::Waiting(None)));
        let place = Place(answer.clone());
        let job: Job = Box::new(move |chunks| place.fill(work(chunks)));
        self.0.queue.add(lane, job);
        Task(answer)
    }

    /// As [`Chunks::get`].
    pub fn get(&self, key: Key, range: Range<u64>) -> Task<Result<Lookup<Read>>> {
        self.run(move |chunks| chunks.get(&key, range))
    }

    /// As [`Chunks::get_into`].
    pub fn get_into(&self, key: Key, range: Range<u64>, mut buffer: Vec<u8>) -> Task<Filled> {
        self.run(move |chunks| {
            let found = chunks.get_into(&key, range, &mut buffer);
            Filled { buffer, found }
        })
    }

    /// As [`Chunks::view`].
    pub fn view(&self, key: Key, range: Range<u64>) -> Task<Result<Lookup<View>>> {
        self.run(move |chunks| chunks.view(&key, range))
    }

    /// As [`Chunks::put`].
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

impl Drop for Crew {
    fn drop(&mut self) {
        lock(&self.queue.jobs).closed = true;
        self.queue.come.notify_all();
        let own = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // The last clone may go with a job of one of the threads.
            if thread.thread().id() != own {
                let _ = thread.join();
            }
        }
    }
}
