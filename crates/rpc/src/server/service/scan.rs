//! `Scan`: rows in messages, read no further than the client takes them.

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

/// Rows of a message, at most.
const BATCH_ROWS: usize = 16 << 10;
/// What a message of rows has beyond them.
const AROUND: usize = 32;

/// The scan that a message asks for.
pub(super) fn wanted(shared: &Shared, request: &proto::ScanRequest) -> Scan {
    let proto::ScanRequest { range, reverse, limit, keys_only, .. } = request;
    let scan = Scan::new(convert::range(range.clone()));
    let scan = scan.batch_rows(BATCH_ROWS).batch_bytes(batch_bytes(shared, request));
    let scan = scan.limit(limit.unwrap_or(u64::MAX));
    let scan = if *reverse { scan.reverse() } else { scan };
    if *keys_only { scan.keys_only() } else { scan }
}

fn batch_bytes(shared: &Shared, request: &proto::ScanRequest) -> usize {
    let most = shared.limits.batch_bytes;
    match usize::try_from(request.batch_bytes) {
        Ok(0) | Err(_) => most,
        Ok(bytes) => bytes.min(most),
    }
}

pub(super) async fn start(
    shared: Arc<Shared>,
    call: CallContext,
    request: proto::ScanRequest,
) -> Result<ResponseStream<Rows>> {
    let (with, name) = (Arc::clone(&shared), request.table.clone());
    let table = on_thread(move || with.tables.find(&name)).await?;
    let batches = shared.store.batches(&table, &wanted(&shared, &request));
    let reading = Reading { shared, table, batches, since: None };
    Ok(ResponseStream::start(call, move |responses| {
        run(reading, responses, request.across_snapshots)
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
                    // Nobody takes anything: no transaction is kept open for that.
                    reading.end(across)?;
                    sent.await;
                }
            }
        }
    }
}

/// A scan that goes on message by message.
struct Reading {
    shared: Arc<Shared>,
    table: Table,
    batches: Batches,
    /// When its transaction began, if it has one.
    since: Option<Instant>,
}

impl Reading {
    /// The next rows, in one message or, where they are long, a few; none after the last. Reads
    /// the store.
    fn next(&mut self) -> Result<Vec<(Rows, Charge)>> {
        self.since.get_or_insert_with(Instant::now);
        let Some(rows) = self.batches.next_batch()? else {
            self.since = None;
            return Ok(Vec::new());
        };
        messages(&self.shared, &rows)
    }

    /// Until when the client must take something for the transaction to stay.
    fn limit(&self) -> Option<Instant> {
        let limits = &self.shared.limits;
        self.since.map(|since| (since + limits.max_transaction).min(Instant::now() + limits.idle))
    }

    /// Ends the transaction. The scan goes on in a later one if it may.
    fn end(&mut self, across: bool) -> Result<()> {
        let expired = self.shared.limits.expired(self.since.take());
        let store: &Store = &self.shared.store;
        self.batches = store.batches(&self.table, &self.batches.rest());
        if across { Ok(()) } else { Err(expired) }
    }
}

/// How much more fits in a message.
pub(super) struct Room {
    most: usize,
    len: usize,
    batch_bytes: usize,
    bytes: usize,
    rows: usize,
}

impl Room {
    /// The room of a message for this request.
    pub(super) fn new(shared: &Shared, request: &proto::ScanRequest) -> Self {
        let batch_bytes = batch_bytes(shared, request);
        let most = shared.limits.message_bytes;
        Self { most, len: AROUND, batch_bytes, bytes: 0, rows: 0 }
    }

    /// Takes a row in, unless it is for the next message. Fails where it is for none.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let row = Rows::row_len(key.len(), value.len());
        let full = self.bytes >= self.batch_bytes || self.rows >= BATCH_ROWS;
        if full || self.len + row > self.most {
            let alone = AROUND + row;
            return if alone > self.most {
                Err(Error::too_long(alone, self.most))
            } else {
                Ok(false)
            };
        }
        (self.len, self.rows) = (self.len + row, self.rows + 1);
        self.bytes += key.len() + value.len();
        Ok(true)
    }
}

/// Copies rows into messages, each of which may be sent.
pub(super) fn messages(
    shared: &Shared,
    batch: &nuthatch_store::RowBatch,
) -> Result<Vec<(Rows, Charge)>> {
    let most = shared.limits.message_bytes;
    let (snapshot, sequence) = (batch.snapshot_id(), batch.sequence()?);
    let mut messages = Vec::with_capacity(1);
    let mut first = 0;
    while first < batch.len() {
        // How many rows fit, and what they take as a message and in memory.
        let (mut count, mut len, mut bytes) = (0, AROUND, 0);
        for (key, value) in batch.iter().skip(first) {
            let row = Rows::row_len(key.len(), value.len());
            if len + row > most {
                if count == 0 {
                    return Err(Error::too_long(len + row, most));
                }
                break;
            }
            (count, len, bytes) = (count + 1, len + row, bytes + key.len() + value.len());
        }
        let charge = shared.budget.charge(Rows::memory(count, bytes))?;
        let mut rows = Rows::with_capacity(count, bytes);
        batch.iter().skip(first).take(count).for_each(|(key, value)| rows.push(key, value));
        batch.check_readable()?;
        messages.push((rows.seen_at(snapshot, sequence), charge));
        first += count;
    }
    Ok(messages)
}
