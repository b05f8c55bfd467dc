//! Batches in flight, each acknowledged by itself.

use super::{Batch, Client};
use crate::convert::{self, told};
use crate::error::{Error, Result};
use crate::proto;
use crate::proto::batch_response::Outcome;
use nuthatch_store::Written;
use prost::Message;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// What a batch counts as, beyond its bytes.
const BATCH_LEN: usize = 64;

/// Options of a [`BatchWriter`].
#[derive(Clone, Copy, Debug)]
pub struct BatchWriterOptions {
    batches: usize,
    bytes: usize,
}

impl BatchWriterOptions {
    /// Up to 1024 batches or 16 MiB in flight.
    pub fn new() -> Self {
        Self { batches: 1024, bytes: 16 << 20 }
    }

    /// How many batches may wait for their acknowledgement.
    #[must_use]
    pub fn batches(mut self, most: usize) -> Self {
        self.batches = most.clamp(1, 1 << 20);
        self
    }

    /// How many bytes of batches may; a longer one goes alone.
    #[must_use]
    pub fn bytes(mut self, most: usize) -> Self {
        self.bytes = most.clamp(1, 1 << 30);
        self
    }
}

impl Default for BatchWriterOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Sends batches in one stream. Can be cloned. What was submitted is sent, and written, also when
/// the last of them is dropped.
///
/// When the connection is lost, all that wait for an acknowledgement fail, and so does the writer
/// from then on: whether those batches were written is not known.
#[derive(Clone)]
pub struct BatchWriter(Arc<Shared>);

struct Shared {
    sender: mpsc::Sender<proto::BatchRequest>,
    waiting: Arc<Mutex<Waiting>>,
    /// Room for batches and for bytes.
    batches: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    options: BatchWriterOptions,
}

/// Who waits for an acknowledgement.
#[derive(Default)]
struct Waiting {
    next: u64,
    answers: HashMap<u64, Answer>,
    /// Why there are no answers any more.
    failed: Option<Error>,
}

struct Answer {
    sender: oneshot::Sender<Result<Written>>,
    _room: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// The acknowledgement of a batch: a future. Dropping it changes nothing: the batch is written.
pub struct Ack(oneshot::Receiver<Result<Written>>);

impl BatchWriter {
    pub(super) async fn start(client: Client, options: BatchWriterOptions) -> Result<Self> {
        let (sender, receiver) = mpsc::channel(options.batches);
        let mut calls = client.calls.clone();
        let answers = calls.batch(ReceiverStream::new(receiver)).await?.into_inner();
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        tokio::spawn(listen(answers, Arc::clone(&waiting)));
        let batches = Arc::new(Semaphore::new(options.batches));
        let bytes = Arc::new(Semaphore::new(options.bytes));
        Ok(Self(Arc::new(Shared { sender, waiting, batches, bytes, options })))
    }

    /// Submits a batch; waits while as much is in flight as may be.
    pub async fn submit(&self, batch: Batch) -> Result<Ack> {
        let Shared { sender, waiting, batches, bytes, options } = &*self.0;
        let mut request = proto::BatchRequest { id: 0, writes: batch.0 };
        let len = (request.encoded_len() + BATCH_LEN).min(options.bytes);
        // Nobody closes the semaphores. Bytes first: a batch waits for them in its turn.
        let closed = |_| Error::internal("the writer is closed");
        let room = Arc::clone(bytes).acquire_many_owned(len as u32).await.map_err(closed)?;
        let one = Arc::clone(batches).acquire_owned().await.map_err(closed)?;
        let (answer, ack) = oneshot::channel();
        {
            let mut waiting = lock(waiting);
            if let Some(error) = &waiting.failed {
                return Err(error.clone());
            }
            waiting.next += 1;
            request.id = waiting.next;
            waiting.answers.insert(request.id, Answer { sender: answer, _room: (room, one) });
        }
        // Where the stream has ended, the answer tells why.
        let _ = sender.send(request).await;
        Ok(Ack(ack))
    }

    /// Waits until everything that was submitted before has its answer.
    pub async fn flush(&self) -> Result<()> {
        let all = self.0.options.batches as u32;
        let _all = self.0.batches.acquire_many(all).await;
        lock(&self.0.waiting).failed.clone().map_or(Ok(()), Err)
    }
}

/// Hands acknowledgements to those who wait for them.
async fn listen(mut answers: Streaming<proto::BatchResponse>, waiting: Arc<Mutex<Waiting>>) {
    let failed = loop {
        match answers.message().await {
            Ok(Some(proto::BatchResponse { id, outcome })) => {
                let Some(answer) = lock(&waiting).answers.remove(&id) else { continue };
                let written = match told(outcome) {
                    Ok(Outcome::Written(written)) => Ok(convert::written(written)),
                    Ok(Outcome::Problem(problem)) => Err(convert::problem(problem)),
                    Err(error) => Err(error),
                };
                // Whoever wanted to know may be gone.
                let _ = answer.sender.send(written);
            }
            Ok(None) => break Error::internal("the server ended the stream"),
            Err(status) => break Error::from(status),
        }
    };
    let left = {
        let mut waiting = lock(&waiting);
        waiting.failed = Some(failed.clone());
        std::mem::take(&mut waiting.answers)
    };
    for answer in left.into_values() {
        let _ = answer.sender.send(Err(failed.clone()));
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    // What is behind the lock is whole after each statement.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Future for Ack {
    type Output = Result<Written>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.get_mut().0).poll(context));
        Poll::Ready(answer.unwrap_or_else(|_| Err(Error::internal("the runtime has ended"))))
    }
}

impl fmt::Debug for BatchWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchWriter").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ack").finish_non_exhaustive()
    }
}
