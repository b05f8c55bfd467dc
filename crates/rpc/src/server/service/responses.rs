//! Streams of responses: a task makes them, one ahead of what the client has received.

use crate::error::{Error, Result};
use crate::server::budget::Charge;
use crate::server::middleware::CallContext;
use futures_core::Stream;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tonic::Status;

/// A response, and its charge to the limit of memory until it is encoded.
struct Item<T> {
    message: T,
    _charge: Option<Charge>,
}

/// Sends the responses of a task.
pub(super) struct ResponseSender<T>(mpsc::Sender<Result<Item<T>, Error>>);

/// The responses of a call.
pub(crate) struct ResponseStream<T>(mpsc::Receiver<Result<Item<T>, Error>>);

impl<T> ResponseSender<T> {
    /// Waits until there is room, and sends a response. Does not fail: if the client disconnects,
    /// the task is dropped.
    pub(super) async fn send(&self, message: T, charge: Option<Charge>) {
        let _ = self.0.send(Ok(Item { message, _charge: charge })).await;
    }
}

impl<T: Send + 'static> ResponseStream<T> {
    /// Starts a task that sends responses. It is dropped when the client disconnects and when the
    /// call must end ([`CallContext::must_end`]).
    pub(super) fn start<F, W>(call: CallContext, work: W) -> Self
    where
        F: Future<Output = Result<()>> + Send,
        W: FnOnce(ResponseSender<T>) -> F + Send + 'static,
    {
        // One response waits while the previous one is sent.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let ended = tokio::select! {
                biased;
                () = sender.closed() => return,
                error = call.must_end() => Err(error),
                ended = work(ResponseSender(sender.clone())) => ended,
            };
            if let Err(error) = ended {
                // Behind the responses so far. Fails if the client has disconnected.
                let _ = sender.send(Err(error)).await;
            }
        });
        Self(receiver)
    }
}

impl<T> Stream for ResponseStream<T> {
    type Item = Result<T, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.get_mut().0.poll_recv(context));
        Poll::Ready(item.map(|item| item.map(|item| item.message).map_err(Status::from)))
    }
}
