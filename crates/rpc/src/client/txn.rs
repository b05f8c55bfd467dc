//! Transactions.

use super::connect::Calls;
use super::timeout::Attempt;
use super::{Batch, Client, Found, Scan, get_many_request};
use crate::error::{Error, Result};
use crate::messages::convert::{self, required};
use crate::messages::proto;
use crate::messages::proto::committed::Outcome;
use crate::messages::proto::txn_request::Operation;
use crate::messages::proto::txn_response::Answer;
use crate::messages::rows::RowBatch;
use bytes::Bytes;
use nuthatch_store::Written;
use std::fmt;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};

/// A transaction: reads from one state of the store, that of the first read, and then an optional
/// commit. The server ends it if the client sends nothing for too long (`--idle-ms`). Dropping it
/// writes nothing.
///
/// # Errors
///
/// All calls fail with code `expired` if the server has ended the transaction. Others: see
/// [`Client`].
pub struct Txn {
    client: Client,
    sender: mpsc::Sender<proto::TxnRequest>,
    responses: Streaming<proto::TxnResponse>,
}

impl Txn {
    pub(super) async fn start(client: Client) -> Result<Self> {
        let begin = |mut calls: Calls| async move {
            let (sender, receiver) = mpsc::channel(1);
            let responses = calls.txn(ReceiverStream::new(receiver)).await?;
            Ok((sender, responses.into_inner()))
        };
        let (sender, responses) = client.begin(Attempt::First, begin).await?;
        Ok(Self { client, sender, responses })
    }

    /// Returns a copy of the value of a key; `None` if the key does not exist.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, with `too-long` if the response
    /// would exceed the maximum message of the server, and with `expired` if the server ended the
    /// transaction; see also [`Client`].
    pub async fn get(&mut self, table: &str, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.entry(table, key).await?.map(|found| found.value))
    }

    /// Returns the value of a key with its version and time of expiry; `None` if the key does not
    /// exist.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, with `too-long` if the response
    /// would exceed the maximum message of the server, and with `expired` if the server ended the
    /// transaction; see also [`Client`].
    pub async fn entry(&mut self, table: &str, key: &[u8]) -> Result<Option<Found>> {
        let (table, key) = (table.to_owned(), Bytes::copy_from_slice(key));
        match self.ask(Operation::Get(proto::GetRequest { table, key })).await? {
            Answer::Get(get) => Ok(get.entry.map(Found::from)),
            _ => required(None),
        }
    }

    /// Returns the values of many keys, in the order of the keys.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, with `too-long` if the response
    /// would exceed the maximum message of the server, and with `expired` if the server ended the
    /// transaction; see also [`Client`].
    pub async fn get_many<K: AsRef<[u8]>>(
        &mut self,
        table: &str,
        keys: &[K],
    ) -> Result<Vec<Option<Bytes>>> {
        match self.ask(Operation::GetMany(get_many_request(table, keys))).await? {
            Answer::GetMany(many) => {
                Ok(many.lookups.into_iter().map(|found| Some(found.entry?.value)).collect())
            }
            _ => required(None),
        }
    }

    /// Returns the first rows of a scan that fit in a message; an empty batch after the last row.
    /// [`Scan::after`] returns the rest of the scan.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, with `too-long` if the response
    /// would exceed the maximum message of the server, and with `expired` if the server ended the
    /// transaction; see also [`Client`]. Fails with `argument` if the scan is across transactions.
    pub async fn scan(&mut self, table: &str, scan: &Scan) -> Result<RowBatch> {
        match self.ask(Operation::Scan(scan.request(table))).await? {
            Answer::Scan(rows) => Ok(rows),
            _ => required(None),
        }
    }

    /// Commits a batch, and ends the transaction. Other clients may have written since the reads:
    /// add checks for what must be unchanged.
    ///
    /// # Errors
    ///
    /// Fails with code `condition-unmet` if a check of the batch is not met, and with those of
    /// [`Client::put`]. [`Error::write`] returns the position of that check. Nothing is written
    /// then, unless the code is `transport` or `deadline`: the batch may have been committed.
    pub async fn commit(mut self, batch: Batch) -> Result<Written> {
        let Answer::Commit(committed) =
            self.ask(Operation::Commit(proto::Commit { writes: batch.0 })).await?
        else {
            return required(None);
        };
        match required(committed.outcome)? {
            Outcome::Written(written) => Ok(convert::written(written)),
            Outcome::Unmet(write) => {
                let code = "condition-unmet".to_owned();
                let message = format!(
                    "the condition at index {write} of the batch was not met; nothing was written"
                );
                Err(Error::reported(Code::Aborted as i32, code, message, Some(write)))
            }
        }
    }

    async fn ask(&mut self, operation: Operation) -> Result<Answer> {
        let Self { client, sender, responses } = self;
        let response = client.within(async {
            // If the stream has ended, the response has the reason.
            let _ = sender.send(proto::TxnRequest { operation: Some(operation) }).await;
            Ok(responses.message().await?)
        });
        required(required(response.await?)?.answer)
    }
}

impl fmt::Debug for Txn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Txn").finish_non_exhaustive()
    }
}
