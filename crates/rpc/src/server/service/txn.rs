//! `Txn`: reads from one state of the store, then writes if conditions hold.

use super::responses::{ResponseSender, ResponseStream};
use super::{Shared, on_thread, reads, scan, writes};
use crate::error::{Error, Result};
use crate::messages::convert;
use crate::messages::proto;
use crate::messages::proto::committed::Outcome;
use crate::messages::proto::txn_request::Operation;
use crate::messages::proto::txn_response::Answer;
use crate::messages::rows::Rows;
use crate::server::middleware::{CallContext, until};
use nuthatch_store::{Error as StoreError, Read, ReadTxn};
use prost::Message;
use std::sync::Arc;
use tokio::time::Instant;
use tonic::Streaming;

/// An open transaction.
struct Open {
    txn: ReadTxn<'static>,
    since: Instant,
}

pub(super) fn start(
    shared: Arc<Shared>,
    call: CallContext,
    requests: Streaming<proto::TxnRequest>,
) -> ResponseStream<proto::TxnResponse> {
    let allowed = call.clone();
    ResponseStream::start(call, move |responses| run(shared, allowed, requests, responses))
}

async fn run(
    shared: Arc<Shared>,
    call: CallContext,
    mut requests: Streaming<proto::TxnRequest>,
    responses: ResponseSender<proto::TxnResponse>,
) -> Result<()> {
    let mut open: Option<Open> = None;
    loop {
        let request = tokio::select! {
            request = requests.message() => request?,
            () = until(limit(&shared, open.as_ref())) => {
                return Err(expired(&shared, open.as_ref()));
            }
        };
        let Some(request) = request else { return Ok(()) };
        let charge = shared.budget.charge(request.encoded_len() as u64)?;
        let answer = match request.operation {
            None => return Err(Error::argument("operation: expected one, found none")),
            Some(Operation::Commit(commit)) => {
                call.check_write()?;
                // While it is open, the store could not reuse pages or move the map.
                drop(open);
                let commit = Answer::Commit(commit_all(&shared, commit).await?);
                responses.send(proto::TxnResponse { answer: Some(commit) }, None).await;
                return Ok(());
            }
            Some(operation) => {
                let with = Arc::clone(&shared);
                let (txn, answer) = on_thread(move || read(&with, open, operation)).await?;
                open = Some(txn);
                answer
            }
        };
        drop(charge);
        let message = proto::TxnResponse { answer: Some(answer) };
        let charge = shared.budget.charge(message.encoded_len() as u64)?;
        tokio::select! {
            () = responses.send(message, Some(charge)) => {}
            () = until(limit(&shared, open.as_ref())) => {
                return Err(expired(&shared, open.as_ref()));
            }
        }
    }
}

/// Returns the time at which the transaction ends unless the client sends something.
fn limit(shared: &Shared, open: Option<&Open>) -> Option<Instant> {
    let limits = &shared.limits;
    open.map(|open| (open.since + limits.max_transaction).min(Instant::now() + limits.idle))
}

fn expired(shared: &Shared, open: Option<&Open>) -> Error {
    shared.limits.expired(open.map(|open| open.since))
}

/// Reads in the transaction, which begins at the first read.
fn read(shared: &Shared, open: Option<Open>, operation: Operation) -> Result<(Open, Answer)> {
    let name = match &operation {
        Operation::Get(get) => &get.table,
        Operation::GetMany(get) => &get.table,
        Operation::Scan(scan) => &scan.table,
        Operation::Commit(_) => return Err(Error::internal("a commit is no read")),
    };
    // A transaction does not see a table that is opened after it began.
    shared.tables.find(name)?;
    let open = match open {
        Some(open) => open,
        None => Open { txn: shared.store.read_owned()?, since: Instant::now() },
    };
    let answer = match operation {
        Operation::Get(get) => Answer::Get(reads::get_in(shared, &open.txn, &get)?),
        Operation::GetMany(get) => Answer::GetMany(reads::get_many_in(shared, &open.txn, &get)?),
        Operation::Scan(scan) => Answer::Scan(rows(shared, &open.txn, &scan)?),
        Operation::Commit(_) => return Err(Error::internal("a commit is no read")),
    };
    Ok((open, answer))
}

/// Returns rows that fit in one message.
fn rows(shared: &Shared, txn: &ReadTxn<'static>, request: &proto::ScanRequest) -> Result<Rows> {
    if request.across_transactions {
        return Err(Error::argument("across_transactions: expected false in a transaction"));
    }
    let table = shared.tables.find(&request.table)?;
    let requested_scan = scan::requested_scan(shared, request);
    let mut rows = Rows::default().seen_at(txn.id(), txn.sequence()?);
    let mut room = scan::Room::new(shared, request);
    for row in txn.scan(&table, &requested_scan)? {
        let (key, value) = row?;
        if !room.take(key, value)? {
            break;
        }
        rows.push(key, value);
    }
    txn.check_readable()?;
    Ok(rows)
}

async fn commit_all(shared: &Arc<Shared>, commit: proto::Commit) -> Result<proto::Committed> {
    let batch = writes::batch(shared, commit.writes).await?;
    let outcome = match writes::submit(shared, batch).await?.await {
        Ok(written) => Outcome::Written(convert::written_message(written)),
        Err(StoreError::ConditionUnmet { write }) => Outcome::Unmet(write as u64),
        Err(error) => return Err(error.into()),
    };
    Ok(proto::Committed { outcome: Some(outcome) })
}
