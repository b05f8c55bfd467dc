//! Answers that are a stream: made by a task, one ahead of what the client takes.

use crate::budget::Charge;
use crate::error::{Error, Result};
use crate::gate::Call;
use futures_core::Stream;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tonic::Status;

/// An answer, and what it holds of the limit of memory until it is encoded.
struct Item<T> {
    message: T,
    _charge: Option<Charge>,
}

/// Where a task leaves its answers.
pub(super) struct Outlet<T>(mpsc::Sender<Result<Item<T>, Error>>);

/// The answers of a call.
pub(crate) struct Answers<T>(mpsc::Receiver<Result<Item<T>, Error>>);

impl<T> Outlet<T> {
    /// Waits until there is room, and leaves an answer. A client that is gone ends the task, so
    /// that this does not fail.
    pub(super) async fn send(&self, message: T, charge: Option<Charge>) {
        let _ = self.0.send(Ok(Item { message, _charge: charge })).await;
    }
}

impl<T: Send + 'static> Answers<T> {
    /// Starts a task that answers. It is dropped, wherever it is, when the client is gone, when
    /// its deadline has passed, and when the server has waited for long enough.
    pub(super) fn start<F, W>(call: Call, work: W) -> Self
    where
        F: Future<Output = Result<()>> + Send,
        W: FnOnce(Outlet<T>) -> F + Send + 'static,
    {
        // One waits while the network takes the one before.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let ended = tokio::select! {
                biased;
                () = sender.closed() => return,
                error = call.over() => Err(error),
                ended = work(Outlet(sender.clone())) => ended,
            };
            if let Err(error) = ended {
                // Behind the answers that are there; unless the client is gone.
                let _ = sender.send(Err(error)).await;
            }
        });
        Self(receiver)
    }
}

impl<T> Stream for Answers<T> {
    type Item = Result<T, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.get_mut().0.poll_recv(context));
        Poll::Ready(item.map(|item| item.map(|item| item.message).map_err(Status::from)))
    }
}
