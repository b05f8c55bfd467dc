//! Scans.

use super::Client;
use super::connect::Calls;
use super::resume::{Opening, Patience, Resuming};
use super::timeout::Attempt;
use crate::error::Result;
use crate::messages::convert;
use crate::messages::proto;
use crate::messages::rows::RowBatch;
use futures_core::Stream;
use nuthatch_store::Range;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::Request;

/// The range and the options of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    range: Range,
    reverse: bool,
    limit: u64,
    keys_only: bool,
    batch_bytes: u64,
    across_transactions: bool,
    timeout: Option<Duration>,
}

impl Scan {
    /// Returns a scan of all rows of a range, in ascending order of keys.
    pub fn new(range: Range) -> Self {
        Self {
            range,
            reverse: false,
            limit: u64::MAX,
            keys_only: false,
            batch_bytes: 0,
            across_transactions: false,
            timeout: None,
        }
    }

    /// Returns a scan of all rows of a table.
    pub fn all() -> Self {
        Self::new(Range::all())
    }

    /// Makes the scan return rows in descending key order.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// Sets the maximum number of rows; no limit by default.
    #[must_use]
    pub fn limit(mut self, rows: u64) -> Self {
        self.limit = rows;
        self
    }

    /// Makes the scan return empty values in place of the stored ones.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Sets the number of bytes of keys and values at which a batch ends; by default the server's
    /// maximum, which also limits this number. A batch has at least one row.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: u64) -> Self {
        self.batch_bytes = bytes.max(1);
        self
    }

    /// Lets the scan continue in a later state of the store if the connection is lost, or if the
    /// server ends the transaction because the client received no rows for too long. By default
    /// such a scan fails.
    #[must_use]
    pub fn across_transactions(mut self) -> Self {
        self.across_transactions = true;
        self
    }

    /// Sets the maximum duration of the whole scan; no limit by default.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Returns the request.
    pub(super) fn request(&self, table: &str) -> proto::ScanRequest {
        let Self { range, reverse, limit, keys_only, batch_bytes, .. } = self;
        proto::ScanRequest {
            table: table.to_owned(),
            range: Some(convert::range_message(range)),
            reverse: *reverse,
            limit: (*limit < u64::MAX).then_some(*limit),
            keys_only: *keys_only,
            batch_bytes: *batch_bytes,
            across_transactions: self.across_transactions,
        }
    }

    /// Returns the rest of the scan after the last of these rows.
    #[must_use]
    pub fn after(self, rows: &RowBatch) -> Self {
        let Some((last, _)) = rows.iter().next_back() else { return self };
        let limit = match self.limit {
            u64::MAX => u64::MAX,
            limit => limit.saturating_sub(rows.len() as u64),
        };
        let Self { range, reverse, .. } = self;
        let range = if reverse { range.before(last) } else { range.after(last) };
        Self { range, limit, ..self }
    }
}

impl From<Range> for Scan {
    fn from(range: Range) -> Self {
        Self::new(range)
    }
}

/// The rows of a scan: a [`Stream`] of batches. Dropping it ends the scan on the server.
pub struct RowStream {
    client: Client,
    table: String,
    /// The rest of the scan.
    scan: Scan,
    /// Whether rows were received: the others must be from the same state, unless the scan may
    /// continue across transactions.
    has_rows: bool,
    stream: Resuming<RowBatch>,
}

impl RowStream {
    pub(super) fn new(client: Client, table: &str, scan: Scan) -> Self {
        let patience = if scan.across_transactions {
            client.options.patience()
        } else {
            Patience::Retries(client.options.retries)
        };
        let stream = Resuming::new(patience);
        Self { client, table: table.to_owned(), scan, has_rows: false, stream }
    }

    /// Returns the next batch; `None` after the last one.
    ///
    /// # Errors
    ///
    /// An item is an error with code `no-table` if the table does not exist, and with `expired` if
    /// the server ended the transaction; see also [`Client`]. The stream ends after it, and
    /// [`rest`](Self::rest) returns what is left.
    pub async fn next(&mut self) -> Option<Result<RowBatch>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns the rest of the scan after the received batches. After an error it can continue in a
    /// later state of the store.
    pub fn rest(&self) -> Scan {
        self.scan.clone()
    }
}

fn open(client: &Client, table: &str, scan: &Scan, after: Duration) -> Opening<RowBatch> {
    let client = client.clone();
    // A scan with a timeout of its own is not retried if it did not begin in time.
    let reconnects = scan.across_transactions && scan.timeout.is_none();
    let attempt = if reconnects { Attempt::Reconnect } else { Attempt::First };
    let (timeout, request) = (scan.timeout, scan.request(table));
    Box::pin(async move {
        tokio::time::sleep(after).await;
        let begin = |mut calls: Calls| {
            let mut request = Request::new(request.clone());
            if let Some(timeout) = timeout {
                request.set_timeout(timeout);
            }
            async move { Ok(calls.scan(request).await?.into_inner()) }
        };
        client.begin(attempt, begin).await
    })
}

impl Stream for RowStream {
    type Item = Result<RowBatch>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Self { client, table, scan, has_rows, stream } = this;
        let resumes = scan.across_transactions || !*has_rows;
        let polled = stream.poll(context, resumes, |after| open(client, table, scan, after));
        if let Poll::Ready(Some(Ok(rows))) = &polled {
            *has_rows = true;
            *scan = scan.clone().after(rows);
        }
        polled
    }
}

impl fmt::Debug for RowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowStream").field("rest", &self.scan).finish_non_exhaustive()
    }
}
