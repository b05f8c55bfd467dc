//! `Watch`: committed changes, as they are committed.

use super::answers::{Answers, Outlet};
use super::{Shared, on_thread};
use crate::convert;
use crate::error::{Error, Result};
use crate::gate::Call;
use crate::proto;
use futures_core::Stream;
use nuthatch_store::{Start, Watch};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

pub(super) async fn start(
    shared: Arc<Shared>,
    call: Call,
    request: proto::WatchRequest,
) -> Result<Answers<proto::WatchResponse>> {
    let with = Arc::clone(&shared);
    let watch = on_thread(move || begin(&with, request)).await?;
    let drain = call.drain.clone();
    Ok(Answers::start(call, move |outlet| async move {
        // It has no end of its own, so that there is nothing to wait for when the server stops.
        tokio::select! {
            () = drain.draining() => Err(Error::draining()),
            ended = run(shared, watch, outlet) => ended,
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
    outlet: Outlet<proto::WatchResponse>,
) -> Result<()> {
    let sequence = watch.next_sequence().saturating_sub(1);
    outlet.send(proto::WatchResponse { changes: Vec::new(), sequence }, None).await;
    let mut changes = watch.into_stream();
    while let Some(batch) = poll_fn(|context| Pin::new(&mut changes).poll_next(context)).await {
        let batch = batch?;
        let most = shared.limits.message_bytes;
        let mut message = proto::WatchResponse::default();
        let mut len = 0;
        for change in batch.into_iter().map(convert::change_message) {
            let change_len =
                prost::Message::encoded_len(&change) + prost::length_delimiter_len(most) + 1;
            if change_len > most {
                return Err(Error::too_long(change_len, most));
            }
            if len + change_len > most {
                send(&shared, &outlet, std::mem::take(&mut message), len).await?;
                len = 0;
            }
            len += change_len;
            message.sequence = change.sequence;
            message.changes.push(change);
        }
        send(&shared, &outlet, message, len).await?;
    }
    Ok(())
}

async fn send(
    shared: &Shared,
    outlet: &Outlet<proto::WatchResponse>,
    message: proto::WatchResponse,
    len: usize,
) -> Result<()> {
    let charge = shared.budget.charge(len as u64)?;
    outlet.send(message, Some(charge)).await;
    Ok(())
}
