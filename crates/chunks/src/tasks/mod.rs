//! The cache for tasks: file work is done by threads of its own, never by those of an executor.

use crate::chunks::{Chunks, Read, Stored};
use crate::error::Result;
use crate::key::Key;
use crate::plan::Lookup;
use crate::view::View;
use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce(&Chunks) + Send>;

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

struct Queue {
    jobs: Mutex<Jobs>,
    come: Condvar,
    /// Notified when work that puts has ended.
    put: Condvar,
}

/// Work that waits for a thread. A put may wait for another thread or process that reclaims a
/// segment; so puts never take all threads, and a read does not wait behind them.
struct Jobs {
    reads: VecDeque<(u64, Job)>,
    puts: VecDeque<(u64, Job)>,
    /// How many jobs were queued: older ones go first.
    count: u64,
    /// Threads that work on puts, and how many may.
    putting: usize,
    max_putting: usize,
    closed: bool,
}

/// Which queue a job waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Reads,
    Puts,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jobs {
    /// Takes the oldest job that may begin.
    fn take(&mut self) -> Option<(Lane, Job)> {
        let may_put = self.putting < self.max_putting;
        let put = self.puts.front().filter(|_| may_put).map(|(number, _)| *number);
        let read = self.reads.front().map(|(number, _)| *number);
        let is_put = put.is_some_and(|put| read.is_none_or(|read| put < read));
        let lane = if is_put { Lane::Puts } else { Lane::Reads };
        let queue = if is_put { &mut self.puts } else { &mut self.reads };
        let (_, job) = queue.pop_front()?;
        self.putting += usize::from(is_put);
        Some((lane, job))
    }
}

impl Queue {
    fn new(threads: usize) -> Self {
        let jobs = Jobs {
            reads: VecDeque::new(),
            puts: VecDeque::new(),
            count: 0,
            putting: 0,
            max_putting: (threads - 1).max(1),
            closed: false,
        };
        Self { jobs: Mutex::new(jobs), come: Condvar::new(), put: Condvar::new() }
    }

    fn add(&self, lane: Lane, job: Job) {
        let mut jobs = lock(&self.jobs);
        jobs.count += 1;
        let entry = (jobs.count, job);
        match lane {
            Lane::Reads => jobs.reads.push_back(entry),
            Lane::Puts => jobs.puts.push_back(entry),
        }
        drop(jobs);
        self.come.notify_one();
    }

    /// Waits for a job. Returns `None` when the queue is closed and empty.
    fn next(&self) -> Option<(Lane, Job)> {
        let mut jobs = lock(&self.jobs);
        loop {
            if let Some(job) = jobs.take() {
                return Some(job);
            }
            if jobs.closed && jobs.puts.is_empty() {
                return None;
            }
            jobs = self.come.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a job has ended.
    fn ended(&self, lane: Lane) {
        if lane == Lane::Puts {
            lock(&self.jobs).putting -= 1;
            self.put.notify_all();
            // All of them: when the queue is closed, each thread has to end.
            self.come.notify_all();
        }
    }
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

enum Answer<T> {
    Waiting(Option<Waker>),
    Here(T),
    /// The work panicked, or the answer was taken.
    Gone,
}

/// Where the answer of a job goes.
struct Place<T>(Arc<Mutex<Answer<T>>>);

impl<T> Place<T> {
    fn fill(self, value: T) {
        self.set(Answer::Here(value));
    }

    fn set(&self, answer: Answer<T>) {
        let mut place = lock(&self.0);
        if let Answer::Waiting(waker) = &mut *place {
            let waker = waker.take();
            *place = answer;
            drop(place);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        self.set(Answer::Gone);
    }
}

/// Work that is under way. A future; panics when polled if the work panicked.
#[must_use]
pub struct Task<T>(Arc<Mutex<Answer<T>>>);

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut place = lock(&self.0);
        match std::mem::replace(&mut *place, Answer::Gone) {
            Answer::Here(value) => Poll::Ready(value),
            Answer::Waiting(_) => {
                *place = Answer::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
            Answer::Gone => panic!("the work panicked, or its answer was taken before"),
        }
    }
}
