//! Batch writers: writes of many tasks, grouped into transactions, each acknowledged separately.
//!
//! Batches wait in a queue. One thread takes the waiting batches, writes them in one transaction,
//! and acknowledges each batch after the commit. While it waits for the disk, the next group
//! gathers, so the more tasks write, the more of them share a commit.

mod ack;
mod batch;
mod queue;
mod work;

pub use ack::{Ack, Written};
pub use batch::Batch;

use crate::error::{Error, Result};
use crate::options::Durability;
use crate::process::OfProcess;
use crate::store::Store;
use queue::{Group, Queue};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What happens to a group if one of its batches fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failure {
    /// The other batches are committed, unless the transaction as a whole fails.
    #[default]
    Alone,
    /// The other batches fail with [`Error::Group`].
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
    /// Returns the defaults: durable commits of up to 4096 batches or 16 MiB, and a queue of 64
    /// MiB.
    pub fn new() -> Self {
        let group = Group { batches: 4096, bytes: 16 << 20, linger: Duration::ZERO };
        let (durability, failure) = (Durability::Sync, Failure::Alone);
        Self { group, queue_bytes: 64 << 20, durability, failure }
    }

    /// Sets the maximum number of batches that share a transaction, at least one; 4096 by default.
    #[must_use]
    pub fn group_batches(mut self, max: usize) -> Self {
        self.group.batches = max.max(1);
        self
    }

    /// Sets the maximum bytes of batches that share a transaction; 16 MiB by default. A longer
    /// batch has its own transaction.
    #[must_use]
    pub fn group_bytes(mut self, max: usize) -> Self {
        self.group.bytes = max;
        self
    }

    /// Sets how long a group waits for more batches; zero by default. Even then, all batches that
    /// arrive while one group is written form the next group.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.group.linger = linger;
        self
    }

    /// Sets the maximum bytes of waiting batches; 64 MiB by default. Further submissions wait. An
    /// empty queue accepts a batch of any length.
    #[must_use]
    pub fn queue_bytes(mut self, max: usize) -> Self {
        self.queue_bytes = max;
        self
    }

    /// Sets the durability of commits, and so of acknowledged batches; [`Durability::Sync`] by
    /// default.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets what happens to a group if one of its batches fails; [`Failure::Alone`] by default.
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

/// Commits the batches of many tasks and threads in groups. Clones share one queue. When the last
/// clone is dropped, the waiting batches are written in the background: call [`flush`](Self::flush)
/// to wait for them.
#[derive(Clone)]
pub struct BatchWriter(Arc<Handle>);

struct Handle(OfProcess<Arc<Queue>>);

impl Drop for Handle {
    fn drop(&mut self) {
        // In a child made by `fork` no thread writes, and the queue may be locked forever.
        if self.0.is_own() {
            self.0.close();
        }
    }
}

impl Store {
    /// Starts a thread that commits the batches of many tasks in groups.
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
    /// Submits a batch. Blocks while the queue is full.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the writer's thread has ended, and [`Error::Forked`] in a child made by
    /// `fork`.
    pub fn submit(&self, batch: Batch) -> Result<Ack> {
        self.queue().push_when_room(batch)
    }

    /// Submits a batch without waiting.
    ///
    /// # Errors
    ///
    /// Returns the batch with [`Error::QueueFull`] if the queue is full, [`Error::Closed`] if the
    /// writer's thread has ended, or [`Error::Forked`] in a child made by `fork`.
    pub fn try_submit(&self, batch: Batch) -> std::result::Result<Ack, (Batch, Error)> {
        self.queue().offer(batch)
    }

    /// Submits a batch. The future waits until the queue has accepted the batch, and returns its
    /// acknowledgement.
    pub fn submit_async(&self, batch: Batch) -> Submitting<'_> {
        Submitting { queue: self.queue(), batch: Some(batch) }
    }

    /// Checks that this process started the writer. In a child made by `fork` no thread writes, so
    /// batches would never be acknowledged.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child made by `fork`.
    pub fn check_process(&self) -> Result<()> {
        self.queue().check_process()
    }

    /// Waits until all batches that were submitted before this call are acknowledged.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit) and [`Ack::wait`]. The errors of these batches are in their
    /// own acknowledgements.
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

/// A future that waits until the queue accepts a batch, and returns the batch's [`Ack`].
pub struct Submitting<'w> {
    queue: &'w Queue,
    batch: Option<Batch>,
}

impl Future for Submitting<'_> {
    type Output = Result<Ack>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // If it is polled again after it was ready, it submits an empty batch.
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
