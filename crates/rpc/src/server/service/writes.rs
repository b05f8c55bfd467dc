//! Writes. Each is submitted as a batch to the thread of the store, so writes of several callers
//! share a commit.

use super::{Shared, on_thread};
use crate::error::{Error, Result};
use crate::messages::convert;
use crate::messages::proto;
use nuthatch_store::{Ack, Batch, Error as StoreError, Table, Written};
use prost::Message;
use std::sync::Arc;

pub(super) async fn put(
    shared: &Arc<Shared>,
    request: proto::PutRequest,
) -> Result<proto::WriteResponse> {
    let _charge = shared.budget.charge(request.encoded_len() as u64)?;
    let proto::PutRequest { table, key, value, expires_at_ms } = request;
    let table = table_named(shared, &table).await?;
    let operation = proto::PutOperation { key, value, expires_at_ms };
    answer(write(shared, with_put(Batch::new(), &table, operation)).await?)
}

pub(super) async fn put_if(
    shared: &Arc<Shared>,
    request: proto::PutIfRequest,
) -> Result<proto::PutIfResponse> {
    let _charge = shared.budget.charge(request.encoded_len() as u64)?;
    let proto::PutIfRequest { table, key, value, expires_at_ms, condition } = request;
    let condition = convert::condition(condition.as_ref())?;
    let table = table_named(shared, &table).await?;
    let batch = Batch::new().check(&table, &key[..], condition);
    let batch = with_put(batch, &table, proto::PutOperation { key, value, expires_at_ms });
    let written = match write(shared, batch).await {
        Ok(written) => Some(convert::written_message(written)),
        Err(StoreError::ConditionUnmet { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(proto::PutIfResponse { written })
}

pub(super) async fn delete(
    shared: &Arc<Shared>,
    request: proto::DeleteRequest,
) -> Result<proto::WriteResponse> {
    let table = table_named(shared, &request.table).await?;
    answer(write(shared, Batch::new().delete(&table, request.key)).await?)
}

pub(super) async fn delete_range(
    shared: &Arc<Shared>,
    request: proto::DeleteRangeRequest,
) -> Result<proto::WriteResponse> {
    let proto::DeleteRangeRequest { table, range } = request;
    let Some(range) = range else {
        return Err(Error::argument("range: expected one, found none"));
    };
    let table = table_named(shared, &table).await?;
    let batch = Batch::new().delete_range(&table, convert::range(Some(range)));
    answer(write(shared, batch).await?)
}

/// Returns the batch that a message describes.
pub(super) async fn batch(shared: &Arc<Shared>, writes: Vec<proto::Write>) -> Result<Batch> {
    use proto::write::Operation;
    let mut batch = Batch::new();
    for (nth, write) in writes.into_iter().enumerate() {
        let table = table_named(shared, &write.table).await?;
        batch = match write.operation {
            Some(Operation::Put(put)) => with_put(batch, &table, put),
            Some(Operation::Delete(key)) => batch.delete(&table, key),
            Some(Operation::DeleteRange(range)) => {
                batch.delete_range(&table, convert::range(Some(range)))
            }
            Some(Operation::Check(check)) => {
                let condition = convert::condition(check.condition.as_ref())?;
                batch.check(&table, check.key, condition)
            }
            None => return Err(Error::argument(format!("write {nth}: expected one, found none"))),
        };
    }
    Ok(batch)
}

/// Submits a batch as soon as the queue has room.
pub(super) async fn submit(shared: &Shared, batch: Batch) -> Result<Ack, StoreError> {
    shared.writer.submit_async(batch).await
}

async fn write(shared: &Shared, batch: Batch) -> Result<Written, StoreError> {
    submit(shared, batch).await?.await
}

async fn table_named(shared: &Arc<Shared>, name: &str) -> Result<Table> {
    if let Some(table) = shared.tables.opened(name) {
        return Ok(table);
    }
    let (shared, name) = (Arc::clone(shared), name.to_owned());
    on_thread(move || shared.tables.find(&name)).await
}

fn with_put(batch: Batch, table: &Table, put: proto::PutOperation) -> Batch {
    let proto::PutOperation { key, value, expires_at_ms } = put;
    match expires_at_ms {
        Some(at) => batch.put_until(table, key, value, at),
        None => batch.put(table, key, value),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the end of calls that fail")]
fn answer(written: Written) -> Result<proto::WriteResponse> {
    Ok(proto::WriteResponse { written: Some(convert::written_message(written)) })
}
