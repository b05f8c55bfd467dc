//! Batches in flight, each acknowledged by itself.

use super::connect::Calls;
use super::resume::Failures;
use super::timeout::Attempt;
use super::{Batch, Client};
use crate::error::{Error, Result};
use crate::messages::convert::{self, required};
use crate::messages::proto;
use crate::messages::proto::batch_response::Outcome;
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
/// If the connection is lost, all batches without an acknowledgement fail, because the client
/// cannot know whether they were written. Later batches use a new connection:
/// [`submit`](Self::submit) waits for it at most for
/// [`ClientOptions::reconnect`](crate::ClientOptions::reconnect).
#[derive(Clone)]
pub struct BatchWriter(Arc<Shared>);

struct Shared {
    client: Client,
    link: Mutex<Arc<Link>>,
    /// Held by the one who opens a stream in place of one that was lost.
    opening: tokio::sync::Mutex<()>,
    /// Room for batches and for bytes.
    batches: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    options: BatchWriterOptions,
}

/// One stream to the server.
struct Link {
    sender: mpsc::Sender<proto::BatchRequest>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Who waits for an acknowledgement.
#[derive(Default)]
struct Waiting {
    next: u64,
    answers: HashMap<u64, Answer>,
    /// Why there are no answers any more.
    failed: Option<Error>,
}

/// Room for a batch, as long as it has no answer.
type Room = (OwnedSemaphorePermit, OwnedSemaphorePermit);

struct Answer {
    sender: oneshot::Sender<Result<Written>>,
    _room: Room,
}

/// The acknowledgement of a batch: a future. Dropping it changes nothing: the batch is written.
pub struct Ack(oneshot::Receiver<Result<Written>>);

impl BatchWriter {
    pub(super) async fn start(client: Client, options: BatchWriterOptions) -> Result<Self> {
        let link = Mutex::new(Arc::new(Link::open(&client, &options, Attempt::First).await?));
        let batches = Arc::new(Semaphore::new(options.batches));
        let bytes = Arc::new(Semaphore::new(options.bytes));
        let opening = tokio::sync::Mutex::new(());
        Ok(Self(Arc::new(Shared { client, link, opening, batches, bytes, options })))
    }

    /// Submits a batch. Waits while the maximum amount is in flight, and while the client
    /// reconnects.
    pub async fn submit(&self, batch: Batch) -> Result<Ack> {
        let Shared { batches, bytes, options, .. } = &*self.0;
        let mut request = proto::BatchRequest { id: 0, writes: batch.0 };
        let len = (request.encoded_len() + BATCH_LEN).min(options.bytes);
        // Nobody closes the semaphores. Bytes first: a batch waits for them in its turn.
        let closed = |_| Error::internal("the writer is closed");
        let room = Arc::clone(bytes).acquire_many_owned(len as u32).await.map_err(closed)?;
        let one = Arc::clone(batches).acquire_owned().await.map_err(closed)?;
        let (answer, ack) = oneshot::channel();
        let mut answer = Answer { sender: answer, _room: (room, one) };
        let link = loop {
            let link = self.0.link();
            match lock(&link.waiting).admit(answer) {
                Ok(id) => {
                    request.id = id;
                    break Arc::clone(&link);
                }
                Err(returned) => answer = returned,
            }
            self.0.open_again(&link).await?;
        };
        // Where the stream has ended, the answer tells why.
        let _ = link.sender.send(request).await;
        Ok(Ack(ack))
    }

    /// Waits until all batches that were submitted before are acknowledged or failed. Returns an
    /// error if the connection is lost and the client could not reconnect.
    pub async fn flush(&self) -> Result<()> {
        let all = self.0.options.batches as u32;
        let _all = self.0.batches.acquire_many(all).await;
        lock(&self.0.link().waiting).failed.clone().map_or(Ok(()), Err)
    }
}

impl Shared {
    fn link(&self) -> Arc<Link> {
        Arc::clone(&lock(&self.link))
    }

    /// Opens a stream in place of one that failed, unless another caller has done so.
    async fn open_again(&self, lost: &Arc<Link>) -> Result<()> {
        let Some(failed) = lock(&lost.waiting).failed.clone() else { return Ok(()) };
        if !failed.is_transient() {
            return Err(failed);
        }
        let _opening = self.opening.lock().await;
        if !Arc::ptr_eq(lost, &self.link()) {
            return Ok(());
        }
        let mut failures = Failures::new(self.client.options.patience());
        let mut error = failed;
        while let Some(pause) = failures.next_pause() {
            tokio::time::sleep(pause).await;
            match Link::open(&self.client, &self.options, Attempt::Again).await {
                Ok(link) => {
                    *lock(&self.link) = Arc::new(link);
                    return Ok(());
                }
                Err(again) if again.is_transient() => error = again,
                Err(other) => return Err(other),
            }
        }
        Err(failures.given_up(error))
    }
}

impl Link {
    async fn open(client: &Client, options: &BatchWriterOptions, attempt: Attempt) -> Result<Self> {
        let batches = options.batches;
        let begin = |mut calls: Calls| async move {
            let (sender, receiver) = mpsc::channel(batches);
            let answers = calls.batch(ReceiverStream::new(receiver)).await?;
            Ok((sender, answers.into_inner()))
        };
        let (sender, answers) = client.begin(attempt, begin).await?;
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        tokio::spawn(listen(answers, Arc::clone(&waiting)));
        Ok(Self { sender, waiting })
    }
}

impl Waiting {
    /// Notes one who waits, and returns the number of its batch; gives it back where no answers
    /// come any more.
    fn admit(&mut self, answer: Answer) -> std::result::Result<u64, Answer> {
        if self.failed.is_some() {
            return Err(answer);
        }
        self.next += 1;
        self.answers.insert(self.next, answer);
        Ok(self.next)
    }
}

/// Hands acknowledgements to those who wait for them.
async fn listen(mut answers: Streaming<proto::BatchResponse>, waiting: Arc<Mutex<Waiting>>) {
    let failed = loop {
        match answers.message().await {
            Ok(Some(proto::BatchResponse { id, outcome })) => {
                let Some(answer) = lock(&waiting).answers.remove(&id) else { continue };
                let written = match required(outcome) {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
