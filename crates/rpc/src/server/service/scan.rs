//! `Scan`: rows in messages, read only as fast as the client receives them.

use super::responses::{ResponseSender, ResponseStream};
use super::{Shared, on_thread};
use crate::error::{Error, Result};
use crate::messages::convert;
use crate::messages::proto;
use crate::messages::rows::Rows;
use crate::server::budget::Charge;
use crate::server::middleware::CallContext;
use nuthatch_store::{Batches, Scan, Store, Table};
use std::sync::Arc;
use tokio::time::Instant;

/// The maximum number of rows of a message.
const BATCH_ROWS: usize = 16 << 10;
/// The length of a message of rows beyond the rows.
const OVERHEAD_LEN: usize = 32;

/// Returns the scan that a request describes.
pub(super) fn requested_scan(shared: &Shared, request: &proto::ScanRequest) -> Scan {
    let proto::ScanRequest { range, reverse, limit, keys_only, .. } = request;
    let scan = Scan::new(convert::range(range.clone()));
    let scan = scan.batch_rows(BATCH_ROWS).batch_bytes(batch_bytes(shared, request));
    let scan = scan.limit(limit.unwrap_or(u64::MAX));
    let scan = if *reverse { scan.reverse() } else { scan };
    if *keys_only { scan.keys_only() } else { scan }
}

fn batch_bytes(shared: &Shared, request: &proto::ScanRequest) -> usize {
    let max = shared.limits.batch_bytes;
    match usize::try_from(request.batch_bytes) {
        Ok(0) | Err(_) => max,
        Ok(bytes) => bytes.min(max),
    }
}

pub(super) async fn start(
    shared: Arc<Shared>,
    call: CallContext,
    request: proto::ScanRequest,
) -> Result<ResponseStream<Rows>> {
    let (with, name) = (Arc::clone(&shared), request.table.clone());
    let table = on_thread(move || with.tables.find(&name)).await?;
    let batches = shared.store.batches(&table, &requested_scan(&shared, &request));
    let reading = Reading { shared, table, batches, since: None };
    Ok(ResponseStream::start(call, move |responses| {
        run(reading, responses, request.across_transactions)
    }))
}

async fn run(mut reading: Reading, responses: ResponseSender<Rows>, across: bool) -> Result<()> {
    loop {
        if reading
            .since
            .is_some_and(|since| since.elapsed() >= reading.shared.limits.max_transaction)
        {
            reading.end(across)?;
        }
        let (read, rows) = on_thread(move || {
            let rows = reading.next()?;
            Ok((reading, rows))
        })
        .await?;
        reading = read;
        if rows.is_empty() {
            return Ok(());
        }
        for (rows, charge) in rows {
            let sent = responses.send(rows, Some(charge));
            tokio::pin!(sent);
            let Some(limit) = reading.limit() else {
                sent.await;
                continue;
            };
            tokio::select! {
                () = &mut sent => {}
                () = tokio::time::sleep_until(limit) => {
                    // The client receives nothing: the transaction is not kept open for it.
                    reading.end(across)?;
                    sent.await;
                }
            }
        }
    }
}

/// A scan that continues message by message.
struct Reading {
    shared: Arc<Shared>,
    table: Table,
    batches: Batches,
    /// When its transaction began, if one is open.
    since: Option<Instant>,
}

impl Reading {
    /// Returns the next rows, in one message or, if they are long, in a few; none after the last
    /// row. Reads the store.
    fn next(&mut self) -> Result<Vec<(Rows, Charge)>> {
        self.since.get_or_insert_with(Instant::now);
        let Some(rows) = self.batches.next_batch()? else {
            self.since = None;
            return Ok(Vec::new());
        };
        messages(&self.shared, &rows)
    }

    /// Returns the time at which the transaction ends unless the client receives something.
    fn limit(&self) -> Option<Instant> {
        let limits = &self.shared.limits;
        self.since.map(|since| (since + limits.max_transaction).min(Instant::now() + limits.idle))
    }

    /// Ends the transaction. The scan continues in a later one if it may.
    fn end(&mut self, across: bool) -> Result<()> {
        let expired = self.shared.limits.expired(self.since.take());
        let store: &Store = &self.shared.store;
        self.batches = store.batches(&self.table, &self.batches.rest());
        if across { Ok(()) } else { Err(expired) }
    }
}

/// The remaining room of a message.
pub(super) struct Room {
    max: usize,
    len: usize,
    batch_bytes: usize,
    bytes: usize,
    rows: usize,
}

impl Room {
    /// Returns the room of a message for this request.
    pub(super) fn new(shared: &Shared, request: &proto::ScanRequest) -> Self {
        let batch_bytes = batch_bytes(shared, request);
        let max = shared.limits.message_bytes;
        Self { max, len: OVERHEAD_LEN, batch_bytes, bytes: 0, rows: 0 }
    }

    /// Takes room for a row. Returns false if the row belongs to the next message. Fails if it fits
    /// no message.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let row = Rows::row_len(key.len(), value.len());
        let full = self.bytes >= self.batch_bytes || self.rows >= BATCH_ROWS;
        if full || self.len + row > self.max {
            let alone = OVERHEAD_LEN + row;
            return if alone > self.max {
                Err(Error::too_long(alone, self.max))
            } else {
                Ok(false)
            };
        }
        (self.len, self.rows) = (self.len + row, self.rows + 1);
        self.bytes += key.len() + value.len();
        Ok(true)
    }
}

/// Copies rows into messages that can be sent one by one.
pub(super) fn messages(
    shared: &Shared,
    batch: &nuthatch_store::RowBatch,
) -> Result<Vec<(Rows, Charge)>> {
    let max = shared.limits.message_bytes;
    let (transaction, sequence) = (batch.transaction(), batch.sequence()?);
    let mut messages = Vec::with_capacity(1);
    let mut first = 0;
    while first < batch.len() {
        // The number of rows that fit, and their length in a message and in memory.
        let (mut count, mut len, mut bytes) = (0, OVERHEAD_LEN, 0);
        for (key, value) in batch.iter().skip(first) {
            let row = Rows::row_len(key.len(), value.len());
            if len + row > max {
                if count == 0 {
                    return Err(Error::too_long(len + row, max));
                }
                break;
            }
            (count, len, bytes) = (count + 1, len + row, bytes + key.len() + value.len());
        }
        let charge = shared.budget.charge(Rows::memory(count, bytes))?;
        let mut rows = Rows::with_capacity(count, bytes);
        batch.iter().skip(first).take(count).for_each(|(key, value)| rows.push(key, value));
        batch.check_readable()?;
        messages.push((rows.seen_at(transaction, sequence), charge));
        first += count;
    }
    Ok(messages)
}
