//! `Watch`: committed changes, as they are committed.

use super::responses::{ResponseSender, ResponseStream};
use super::{Shared, on_thread};
use crate::error::{Error, Result};
use crate::messages::convert;
use crate::messages::proto;
use crate::server::middleware::CallContext;
use futures_core::Stream;
use nuthatch_store::{Start, Watch};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

pub(super) async fn start(
    shared: Arc<Shared>,
    call: CallContext,
    request: proto::WatchRequest,
) -> Result<ResponseStream<proto::WatchResponse>> {
    let with = Arc::clone(&shared);
    let watch = on_thread(move || begin(&with, request)).await?;
    let drain = call.drain.clone();
    Ok(ResponseStream::start(call, move |responses| async move {
        // A watch never ends by itself, so draining ends it.
        tokio::select! {
            () = drain.draining() => Err(Error::draining()),
            ended = run(shared, watch, responses) => ended,
        }
    }))
}

fn begin(shared: &Shared, request: proto::WatchRequest) -> Result<Watch> {
    use proto::watch_request::Start as Wanted;
    let proto::WatchRequest { table, range, start } = request;
    let start = match start {
        None => Start::Now,
        Some(Wanted::After(sequence)) => Start::After(sequence),
        Some(Wanted::Oldest(true)) => Start::Oldest,
        Some(Wanted::Oldest(false)) => {
            return Err(Error::argument("oldest: expected true, found false"));
        }
    };
    let table = table.map(|name| shared.tables.find(&name)).transpose()?;
    Ok(shared.store.watch(table.as_ref(), convert::range(range), start)?)
}

async fn run(
    shared: Arc<Shared>,
    watch: Watch,
    responses: ResponseSender<proto::WatchResponse>,
) -> Result<()> {
    let sequence = watch.next_sequence().saturating_sub(1);
    responses.send(proto::WatchResponse { changes: Vec::new(), sequence }, None).await;
    let mut changes = watch.into_stream();
    while let Some(batch) = poll_fn(|context| Pin::new(&mut changes).poll_next(context)).await {
        let batch = batch?;
        let max = shared.limits.message_bytes;
        let mut message = proto::WatchResponse::default();
        let mut len = 0;
        for change in batch.into_iter().map(convert::change_message) {
            let change_len =
                prost::Message::encoded_len(&change) + prost::length_delimiter_len(max) + 1;
            if change_len > max {
                return Err(Error::too_long(change_len, max));
            }
            if len + change_len > max {
                send(&shared, &responses, std::mem::take(&mut message), len).await?;
                len = 0;
            }
            len += change_len;
            message.sequence = change.sequence;
            message.changes.push(change);
        }
        send(&shared, &responses, message, len).await?;
    }
    Ok(())
}

async fn send(
    shared: &Shared,
    responses: &ResponseSender<proto::WatchResponse>,
    message: proto::WatchResponse,
    len: usize,
) -> Result<()> {
    let charge = shared.budget.charge(len as u64)?;
    responses.send(message, Some(charge)).await;
    Ok(())
}
