//! Watches.

use super::Client;
use super::connect::Calls;
use super::resume::{Opening, Resuming};
use super::timeout::Attempt;
use crate::error::Result;
use crate::messages::convert::{self, required};
use crate::messages::proto;
use crate::messages::proto::watch_request::Start as Wanted;
use futures_core::Stream;
use nuthatch_store::{Change, Range, Start};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tonic::Streaming;

/// Committed changes in order: a [`Stream`] of batches that ends only with an error. After a lost
/// connection it continues after the last received change: see
/// [`ClientOptions::reconnect`](crate::ClientOptions::reconnect).
pub struct WatchStream {
    client: Client,
    request: proto::WatchRequest,
    sequence: u64,
    stream: Resuming<proto::WatchResponse>,
}

impl WatchStream {
    pub(super) async fn start(
        client: Client,
        table: Option<&str>,
        range: &Range,
        start: Start,
    ) -> Result<Self> {
        let start = match start {
            Start::Now => None,
            Start::After(sequence) => Some(Wanted::After(sequence)),
            Start::Oldest => Some(Wanted::Oldest(true)),
        };
        let (table, range) = (table.map(str::to_owned), Some(convert::range_message(range)));
        let request = proto::WatchRequest { table, range, start };
        let mut stream = begin(&client, Attempt::First, &request).await?;
        let first = client.within(async { Ok(stream.message().await?) }).await?;
        let sequence = required(first)?.sequence;
        let stream = Resuming::begun(stream, client.options.patience());
        Ok(Self { client, request, sequence, stream })
    }

    /// Returns the sequence number of the last received change, or the one that the watch began
    /// after. Another watch continues with [`Start::After`] this number.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits for the next changes, and returns them. Returns `None` only after an error.
    ///
    /// # Errors
    ///
    /// An item is an error with code `fell-behind` if the store no longer keeps the next change,
    /// and with `transport` if the client could not reconnect in time; see also [`Client`]. The
    /// watch ends after it.
    pub async fn next(&mut self) -> Option<Result<Vec<Change>>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

async fn begin(
    client: &Client,
    attempt: Attempt,
    request: &proto::WatchRequest,
) -> Result<Streaming<proto::WatchResponse>> {
    let begin = |mut calls: Calls| {
        let request = request.clone();
        async move { Ok(calls.watch(request).await?.into_inner()) }
    };
    client.begin(attempt, begin).await
}

fn open(
    client: &Client,
    request: proto::WatchRequest,
    after: Duration,
) -> Opening<proto::WatchResponse> {
    let client = client.clone();
    Box::pin(async move {
        tokio::time::sleep(after).await;
        begin(&client, Attempt::Reconnect, &request).await
    })
}

impl Stream for WatchStream {
    type Item = Result<Vec<Change>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { client, request, sequence, stream } = self.get_mut();
        loop {
            let again =
                proto::WatchRequest { start: Some(Wanted::After(*sequence)), ..request.clone() };
            let polled = stream.poll(context, true, |after| open(client, again.clone(), after));
            match ready!(polled) {
                Some(Ok(proto::WatchResponse { changes, sequence: last })) => {
                    *sequence = last;
                    // The first message of each stream has no changes.
                    if !changes.is_empty() {
                        let changes = changes.into_iter().map(convert::change).collect();
                        return Poll::Ready(Some(changes));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}
