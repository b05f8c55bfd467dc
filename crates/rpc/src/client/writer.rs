//! Batch writers: many batches in one stream, each acknowledged separately.

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

/// The bytes that a batch counts as, besides its content.
const BATCH_LEN: usize = 64;

/// Options of a [`BatchWriter`].
#[derive(Clone, Copy, Debug)]
pub struct BatchWriterOptions {
    batches: usize,
    bytes: usize,
}

impl BatchWriterOptions {
    /// Returns the defaults: up to 1024 batches or 16 MiB in flight.
    pub fn new() -> Self {
        Self { batches: 1024, bytes: 16 << 20 }
    }

    /// Sets the maximum number of batches without an acknowledgement; 1024 by default.
    #[must_use]
    pub fn batches(mut self, max: usize) -> Self {
        self.batches = max.clamp(1, 1 << 20);
        self
    }

    /// Sets the maximum bytes of these batches; 16 MiB by default. A longer batch is sent when no
    /// other is in flight.
    #[must_use]
    pub fn bytes(mut self, max: usize) -> Self {
        self.bytes = max.clamp(1, 1 << 30);
        self
    }
}

impl Default for BatchWriterOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Sends batches in one stream. Clones share the stream. Submitted batches are sent and written
/// even if all clones are dropped.
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
    /// Held by the caller that reopens a lost stream.
    opening: tokio::sync::Mutex<()>,
    /// Permits for further batches and for further bytes.
    batches: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    options: BatchWriterOptions,
}

/// One stream to the server.
struct Link {
    sender: mpsc::Sender<proto::BatchRequest>,
    waiting: Arc<Mutex<Waiting>>,
}

/// The callers that wait for acknowledgements.
#[derive(Default)]
struct Waiting {
    next: u64,
    responses: HashMap<u64, Answer>,
    /// Why no more responses arrive.
    failed: Option<Error>,
}

/// The room of a batch, held until its response.
type Room = (OwnedSemaphorePermit, OwnedSemaphorePermit);

struct Answer {
    sender: oneshot::Sender<Result<Written>>,
    _room: Room,
}

/// The acknowledgement of a batch: a future. The batch is written even if this is dropped.
pub struct Ack(oneshot::Receiver<Result<Written>>);

impl BatchWriter {
    pub(super) async fn start(client: Client, options: BatchWriterOptions) -> Result<Self> {
        let link = Mutex::new(Arc::new(Link::open(&client, &options, Attempt::First).await?));
        let batches = Arc::new(Semaphore::new(options.batches));
        let bytes = Arc::new(Semaphore::new(options.bytes));
        let opening = tokio::sync::Mutex::new(());
        Ok(Self(Arc::new(Shared { client, link, opening, batches, bytes, options })))
    }

    /// Submits a batch. Waits while the maximum number of batches or bytes is in flight, and while
    /// the client reconnects.
    ///
    /// # Errors
    ///
    /// Fails if the stream is lost and the client cannot reopen it, with the reason; see
    /// [`Client`]. The batch was not sent then.
    pub async fn submit(&self, batch: Batch) -> Result<Ack> {
        let Shared { batches, bytes, options, .. } = &*self.0;
        let mut request = proto::BatchRequest { id: 0, writes: batch.0 };
        let len = (request.encoded_len() + BATCH_LEN).min(options.bytes);
        // The semaphores are never closed. Bytes are acquired first, in the order of the callers.
        let closed = |_| Error::internal("the writer is closed");
        let room = Arc::clone(bytes).acquire_many_owned(len as u32).await.map_err(closed)?;
        let one = Arc::clone(batches).acquire_owned().await.map_err(closed)?;
        let (response, ack) = oneshot::channel();
        let mut response = Answer { sender: response, _room: (room, one) };
        let link = loop {
            let link = self.0.link();
            match lock(&link.waiting).admit(response) {
                Ok(id) => {
                    request.id = id;
                    break Arc::clone(&link);
                }
                Err(returned) => response = returned,
            }
            self.0.open_again(&link).await?;
        };
        // If the stream has ended, the response has the reason.
        let _ = link.sender.send(request).await;
        Ok(Ack(ack))
    }

    /// Waits until all batches that were submitted before this call are acknowledged or have
    /// failed.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the stream is lost.
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

    /// Reopens a failed stream, unless another caller has done so.
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
            match Link::open(&self.client, &self.options, Attempt::Reconnect).await {
                Ok(link) => {
                    *lock(&self.link) = Arc::new(link);
                    return Ok(());
                }
                Err(again) if again.is_transient() => error = again,
                Err(other) => return Err(other),
            }
        }
        Err(failures.final_error(error))
    }
}

impl Link {
    async fn open(client: &Client, options: &BatchWriterOptions, attempt: Attempt) -> Result<Self> {
        let batches = options.batches;
        let begin = |mut calls: Calls| async move {
            let (sender, receiver) = mpsc::channel(batches);
            let responses = calls.batch(ReceiverStream::new(receiver)).await?;
            Ok((sender, responses.into_inner()))
        };
        let (sender, responses) = client.begin(attempt, begin).await?;
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        tokio::spawn(listen(responses, Arc::clone(&waiting)));
        Ok(Self { sender, waiting })
    }
}

impl Waiting {
    /// Registers a caller that waits, and returns the number of its batch. Returns the caller if no
    /// more responses arrive.
    fn admit(&mut self, response: Answer) -> std::result::Result<u64, Answer> {
        if self.failed.is_some() {
            return Err(response);
        }
        self.next += 1;
        self.responses.insert(self.next, response);
        Ok(self.next)
    }
}

/// Passes acknowledgements to the callers that wait for them.
async fn listen(mut responses: Streaming<proto::BatchResponse>, waiting: Arc<Mutex<Waiting>>) {
    let failed = loop {
        match responses.message().await {
            Ok(Some(proto::BatchResponse { id, outcome })) => {
                let Some(response) = lock(&waiting).responses.remove(&id) else { continue };
                let written = match required(outcome) {
                    Ok(Outcome::Written(written)) => Ok(convert::written(written)),
                    Ok(Outcome::Problem(problem)) => Err(convert::problem(problem)),
                    Err(error) => Err(error),
                };
                // The caller may have stopped waiting.
                let _ = response.sender.send(written);
            }
            Ok(None) => break Error::internal("the server ended the stream"),
            Err(status) => break Error::from(status),
        }
    };
    let left = {
        let mut waiting = lock(&waiting);
        waiting.failed = Some(failed.clone());
        std::mem::take(&mut waiting.responses)
    };
    for response in left.into_values() {
        let _ = response.sender.send(Err(failed.clone()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The content is valid after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Future for Ack {
    type Output = Result<Written>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(Pin::new(&mut self.get_mut().0).poll(context));
        Poll::Ready(response.unwrap_or_else(|_| Err(Error::internal("the runtime has ended"))))
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
