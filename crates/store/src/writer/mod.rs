//! Writes of many tasks, grouped into transactions, each acknowledged by itself.
//!
//! Batches wait in a queue; one thread takes what waits, writes it in one transaction, and answers
//! each batch after the commit. While it waits for the disk, the next group gathers: so the more
//! tasks write, the more share a commit.

mod ack;
mod batch;
mod queue;
mod work;

pub use ack::{Ack, Written};
pub use batch::Batch;

use crate::error::{Error, Result};
use crate::fork::OfProcess;
use crate::options::Durability;
use crate::store::Store;
use queue::{Group, Queue};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What happens to the batches of a group of which one fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failure {
    /// It fails alone: the others are committed.
    #[default]
    Alone,
    /// They fail with it, with [`Error::Group`].
    Group,
}

/// Options of a [`BatchWriter`].
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    group: Group,
    queue_bytes: usize,
    durability: Durability,
    failure: Failure,
}

impl BatchOptions {
    /// Durable commits of up to 4096 batches or 16 MiB, and a queue of 64 MiB.
    pub fn new() -> Self {
        let group = Group { batches: 4096, bytes: 16 << 20, linger: Duration::ZERO };
        let (durability, failure) = (Durability::Sync, Failure::Alone);
        Self { group, queue_bytes: 64 << 20, durability, failure }
    }

    /// How many batches share a transaction, at most.
    #[must_use]
    pub fn group_batches(mut self, most: usize) -> Self {
        self.group.batches = most.max(1);
        self
    }

    /// How many bytes share a transaction, at most; a longer batch has one for itself.
    #[must_use]
    pub fn group_bytes(mut self, most: usize) -> Self {
        self.group.bytes = most;
        self
    }

    /// How long a group waits to become larger. None by default: it gathers while the one before is
    /// written.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.group.linger = linger;
        self
    }

    /// How many bytes can wait. Whoever submits more waits as well.
    #[must_use]
    pub fn queue_bytes(mut self, most: usize) -> Self {
        self.queue_bytes = most;
        self
    }

    /// What commits wait for, and so what an acknowledgement says.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What happens to a group of which one batch fails.
    #[must_use]
    pub fn failure(mut self, failure: Failure) -> Self {
        self.failure = failure;
        self
    }
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Takes batches of many tasks and threads, and writes them in groups. Can be cloned; what waits is
/// written when the last one is dropped, by a thread that nobody waits for then: see
/// [`flush`](Self::flush).
#[derive(Clone)]
pub struct BatchWriter(Arc<Handle>);

struct Handle(OfProcess<Arc<Queue>>);

impl Drop for Handle {
    fn drop(&mut self) {
        // In a child made by `fork` no thread writes, and the queue may stay locked.
        if self.0.is_own() {
            self.0.close();
        }
    }
}

impl Store {
    /// Starts a thread that writes batches of many tasks in groups.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child made by `fork`, and [`Error::Io`] if the thread cannot be
    /// started.
    pub fn batch_writer(&self, options: &BatchOptions) -> Result<BatchWriter> {
        self.0.environment.check_process()?;
        let queue = Arc::new(Queue::new(options.queue_bytes));
        let worker = work::Worker::new(self.clone(), Arc::clone(&queue), *options);
        let thread = std::thread::Builder::new().name("nuthatch-write".to_owned());
        let started = thread.spawn(move || worker.run());
        started.map_err(|e| Error::io(self.path(), "start a thread", e))?;
        Ok(BatchWriter(Arc::new(Handle(OfProcess::new(queue)))))
    }
}

impl BatchWriter {
    /// Submits a batch; waits on this thread while the queue has no room.
    pub fn submit(&self, batch: Batch) -> Result<Ack> {
        self.queue().push_when_room(batch)
    }

    /// Submits a batch, or gives it back with [`Error::QueueFull`].
    pub fn try_submit(&self, batch: Batch) -> std::result::Result<Ack, (Batch, Error)> {
        self.queue().offer(batch)
    }

    /// Submits a batch; the future is ready when the queue has taken it, and answers its
    /// acknowledgement.
    pub fn submit_async(&self, batch: Batch) -> Submitting<'_> {
        Submitting { queue: self.queue(), batch: Some(batch) }
    }

    /// Checks that this process started the writer. In a child made by `fork` no thread writes, so
    /// no acknowledgement comes there.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child made by `fork`.
    pub fn check_process(&self) -> Result<()> {
        self.queue().check_process()
    }

    /// Waits until everything that was submitted before has its answer.
    pub fn flush(&self) -> Result<()> {
        self.submit(Batch::new())?.wait().map(|_| ())
    }

    fn queue(&self) -> &Queue {
        &self.0.0
    }
}

impl fmt::Debug for BatchWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchWriter").finish_non_exhaustive()
    }
}

/// A batch that waits for room in a queue.
pub struct Submitting<'w> {
    queue: &'w Queue,
    batch: Option<Batch>,
}

impl Future for Submitting<'_> {
    type Output = Result<Ack>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // Polled again after it was ready, it has nothing to submit.
        let batch = this.batch.take().unwrap_or_default();
        match this.queue.offer_or_wake(batch, context.waker()) {
            Ok(ack) => Poll::Ready(Ok(ack)),
            Err((batch, Error::QueueFull)) => {
                this.batch = Some(batch);
                Poll::Pending
            }
            Err((_, error)) => Poll::Ready(Err(error)),
        }
    }
}

impl fmt::Debug for Submitting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitting").field("batch", &self.batch).finish_non_exhaustive()
    }
}
