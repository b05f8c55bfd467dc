//! `Batch`: many batches in flight, acknowledged in order.

use super::responses::{ResponseSender, ResponseStream};
use super::{Shared, writes};
use crate::error::{Error, Result};
use crate::messages::convert;
use crate::messages::proto;
use crate::messages::proto::batch_response::Outcome;
use crate::server::budget::Charge;
use crate::server::middleware::CallContext;
use nuthatch_store::Ack;
use prost::Message;
use std::sync::Arc;
use tokio::sync::mpsc;
use tonic::Streaming;

/// A batch that was read, with the result of its submission.
struct Pending {
    id: u64,
    submitted: Result<Ack>,
    /// The charge for its memory until it is written.
    charge: Option<Charge>,
}

pub(super) fn start(
    shared: Arc<Shared>,
    call: CallContext,
    requests: Streaming<proto::BatchRequest>,
) -> ResponseStream<proto::BatchResponse> {
    let (pending, submitted) = mpsc::channel(shared.limits.batches_in_flight);
    let drain = call.drain.clone();
    ResponseStream::start(call, move |responses| async move {
        let take = async move {
            tokio::select! {
                // Batches that were submitted before are acknowledged.
                () = drain.draining() => Err(Error::draining()),
                taken = take(&shared, requests, pending) => taken,
            }
        };
        let (taken, ()) = tokio::join!(take, acknowledge(submitted, responses));
        taken
    })
}

/// Reads batches and submits them until the client ends its stream.
async fn take(
    shared: &Arc<Shared>,
    mut requests: Streaming<proto::BatchRequest>,
    pending: mpsc::Sender<Pending>,
) -> Result<()> {
    loop {
        // Waits for room first: each submitted batch is acknowledged.
        let Ok(room) = pending.reserve().await else { return Ok(()) };
        let Some(request) = requests.message().await? else { return Ok(()) };
        let (id, charge) = (request.id, shared.budget.charge(request.encoded_len() as u64));
        let (submitted, charge) = match charge {
            Ok(charge) => (submit(shared, request).await, Some(charge)),
            Err(error) => (Err(error), None),
        };
        room.send(Pending { id, submitted, charge });
    }
}

async fn submit(shared: &Arc<Shared>, request: proto::BatchRequest) -> Result<Ack> {
    let batch = writes::batch(shared, request.writes).await?;
    Ok(writes::submit(shared, batch).await?)
}

/// Acknowledges each batch when it is written. The store writes batches in order.
async fn acknowledge(
    mut submitted: mpsc::Receiver<Pending>,
    responses: ResponseSender<proto::BatchResponse>,
) {
    while let Some(Pending { id, submitted, charge }) = submitted.recv().await {
        let written = match submitted {
            Ok(ack) => ack.await.map_err(Error::from),
            Err(error) => Err(error),
        };
        let outcome = match written {
            Ok(written) => Outcome::Written(convert::written_message(written)),
            Err(error) => Outcome::Problem(convert::problem_message(&error)),
        };
        drop(charge);
        responses.send(proto::BatchResponse { id, outcome: Some(outcome) }, None).await;
    }
}
