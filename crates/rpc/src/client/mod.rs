//! The client: the operations of a store behind a server.

mod backup;
mod batch;
mod connect;
mod remote_server;
mod resume;
mod scan;
mod stat;
mod timeout;
pub(crate) mod tls;
mod txn;
mod watch;
mod writer;

pub use backup::BackupStream;
pub use batch::Batch;
pub use connect::{ClientOptions, DEFAULT_PORT};
pub use scan::{RowStream, Scan};
pub use stat::{StoreStat, TableInfo};
pub use txn::Txn;
pub use watch::WatchStream;
pub use writer::{Ack, BatchWriter, BatchWriterOptions};

use crate::error::{Error, Result};
use crate::messages::convert::{self, required};
use crate::messages::proto;
use bytes::Bytes;
use connect::{Calls, never_sent};
use nuthatch_store::{Condition, Kind, Range, Start, Written};
use remote_server::RemoteServer;
use resume::pause;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use tonic::{Request, Response, Status};

/// A store behind a server. Clones share one connection, which is established when it is needed and
/// again after it is lost.
///
/// Reads, and calls that have the same effect when repeated, are retried after a transient error:
/// the server cannot be reached, is stopping, or has no free reader slot. They are retried at most
/// [`ClientOptions::retries`] times. A write is retried only if it was not sent, or if the server
/// reports that it did not accept it: otherwise the client cannot know whether the server executed
/// it. Watches and writers reconnect for [`ClientOptions::reconnect`].
///
/// No call waits forever for a server that does not respond: a unary call and the start of a stream
/// fail with code `deadline` after [`ClientOptions::timeout`], and streams in progress detect a
/// lost server by pings ([`ClientOptions::keepalive`]). A watch waits as long as the server
/// responds to pings.
///
/// Each call names its table; the empty name is the main table.
///
/// # Errors
///
/// Any call can fail with these codes, which [`Error::code`] returns: `transport` if the server
/// cannot be reached, `deadline` if it does not respond in time, `unauthenticated` or `forbidden`
/// if it does not accept the token for this call, `memory` if it has no memory for it, `draining`
/// while it stops, and the codes of a store that cannot be read, such as `corrupt`. Methods list
/// only the codes of their own.
#[derive(Clone)]
pub struct Client {
    calls: Calls,
    options: ClientOptions,
    server: Arc<RemoteServer>,
}

/// A value with the metadata that a stamped table stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The value.
    pub value: Bytes,
    /// The sequence number of the change that wrote the value; `None` in a plain table.
    pub version: Option<u64>,
    /// The time of expiry, in milliseconds since 1970; `None` if the row does not expire.
    pub expires_at_ms: Option<u64>,
}

impl Client {
    /// Connects to a store at `grpc://host:port`, with the default options.
    ///
    /// # Errors
    ///
    /// As for [`connect_with`](Self::connect_with).
    pub async fn connect(address: &str) -> Result<Self> {
        Self::connect_with(address, &ClientOptions::new()).await
    }

    /// Connects to a store at `grpc://host:port`, or `grpcs://host:port` with TLS. The default port
    /// is [`DEFAULT_PORT`].
    ///
    /// # Errors
    ///
    /// Code `argument` if the address or the options are not valid, and `transport` if the server
    /// cannot be reached within [`ClientOptions::connect_timeout`].
    pub async fn connect_with(address: &str, options: &ClientOptions) -> Result<Self> {
        let calls = connect::connect(address, options).await?;
        Ok(Self { calls, options: options.clone(), server: RemoteServer::new(address) })
    }

    /// Returns a copy of the value of a key; `None` if the key does not exist.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, and with `too-long` if the response
    /// would exceed the maximum message of the server; see also [`Client`].
    pub async fn get(&self, table: &str, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.entry(table, key).await?.map(|found| found.value))
    }

    /// Returns the value of a key with its version and time of expiry; `None` if the key does not
    /// exist.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, and with `too-long` if the response
    /// would exceed the maximum message of the server; see also [`Client`].
    pub async fn entry(&self, table: &str, key: &[u8]) -> Result<Option<Found>> {
        let (table, key) = (table.to_owned(), Bytes::copy_from_slice(key));
        let request = proto::GetRequest { table, key };
        let response = self.read(request, async |calls, request| calls.get(request).await).await?;
        Ok(response.entry.map(Found::from))
    }

    /// Returns the values of many keys, in the order of the keys, all from one state of the store;
    /// `None` for a key that does not exist.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, and with `too-long` if the response
    /// would exceed the maximum message of the server; see also [`Client`].
    pub async fn get_many<K: AsRef<[u8]>>(
        &self,
        table: &str,
        keys: &[K],
    ) -> Result<Vec<Option<Bytes>>> {
        let found = self.entries(table, keys).await?;
        Ok(found.into_iter().map(|found| Some(found?.value)).collect())
    }

    /// Returns the values of many keys with their versions and times of expiry, in the order of the
    /// keys, all from one state of the store.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, and with `too-long` if the response
    /// would exceed the maximum message of the server; see also [`Client`].
    pub async fn entries<K: AsRef<[u8]>>(
        &self,
        table: &str,
        keys: &[K],
    ) -> Result<Vec<Option<Found>>> {
        let request = get_many_request(table, keys);
        let response = self.read(request, async |calls, request| calls.get_many(request).await);
        Ok(response.await?.lookups.into_iter().map(|found| found.entry.map(Found::from)).collect())
    }

    /// Returns the number of keys in a range.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist; see also [`Client`].
    pub async fn count(&self, table: &str, range: &Range) -> Result<u64> {
        let (table, range) = (table.to_owned(), Some(convert::range_message(range)));
        let request = proto::CountRequest { table, range };
        let response = self.read(request, async |calls, request| calls.count(request).await);
        Ok(response.await?.count)
    }

    /// Writes a value, and replaces an existing one. Returns after the commit.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, with `length` if the key is empty or
    /// too long or the value is too long, and with `full` if the store cannot grow; see also
    /// [`Client`]. If the connection is lost after the request was sent (code `transport`) or the
    /// deadline passes, the write may have been executed.
    pub async fn put(&self, table: &str, key: &[u8], value: &[u8]) -> Result<Written> {
        self.put_any(table, key, value, None).await
    }

    /// Writes a value that expires at a time, in milliseconds since 1970. The table must be
    /// stamped.
    ///
    /// # Errors
    ///
    /// Fails with code `table` if the table is plain; otherwise as [`put`](Self::put).
    pub async fn put_until(
        &self,
        table: &str,
        key: &[u8],
        value: &[u8],
        expires_at_ms: u64,
    ) -> Result<Written> {
        self.put_any(table, key, value, Some(expires_at_ms)).await
    }

    async fn put_any(
        &self,
        table: &str,
        key: &[u8],
        value: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Result<Written> {
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        let request = proto::PutRequest { table: table.to_owned(), key, value, expires_at_ms };
        let response = self.write(request, async |calls, request| calls.put(request).await);
        written(response.await?)
    }

    /// Writes a value if its key meets a condition. Returns `None` if it does not; nothing is
    /// written then.
    ///
    /// # Errors
    ///
    /// Fails with code `table` if the condition is a version and the table is plain; otherwise as
    /// [`put`](Self::put). A condition that is not met is not an error.
    pub async fn put_if(
        &self,
        table: &str,
        key: &[u8],
        value: &[u8],
        condition: Condition<'_>,
    ) -> Result<Option<Written>> {
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        let (table, condition) = (table.to_owned(), Some(convert::condition_message(condition)));
        let expires_at_ms = None;
        let request = proto::PutIfRequest { table, key, value, expires_at_ms, condition };
        let response = self.write(request, async |calls, request| calls.put_if(request).await);
        Ok(response.await?.written.map(convert::written))
    }

    /// Deletes a key. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist; see also [`Client`]. If the
    /// connection is lost after the request was sent (code `transport`) or the deadline passes, the
    /// key may have been deleted.
    pub async fn delete(&self, table: &str, key: &[u8]) -> Result<bool> {
        let (table, key) = (table.to_owned(), Bytes::copy_from_slice(key));
        let request = proto::DeleteRequest { table, key };
        let response = self.write(request, async |calls, request| calls.delete(request).await);
        Ok(written(response.await?)?.deleted > 0)
    }

    /// Deletes all keys of a range. Returns their number.
    ///
    /// # Errors
    ///
    /// As [`delete`](Self::delete).
    pub async fn delete_range(&self, table: &str, range: &Range) -> Result<u64> {
        let (table, range) = (table.to_owned(), Some(convert::range_message(range)));
        let request = proto::DeleteRangeRequest { table, range };
        let response =
            self.write(request, async |calls, request| calls.delete_range(request).await);
        Ok(written(response.await?)?.deleted)
    }

    /// Commits a batch: all of its writes, or none. For many batches, use
    /// [`batch_writer`](Self::batch_writer).
    ///
    /// # Errors
    ///
    /// Code `condition-unmet` if one of its conditions is not met. Others: see [`Client`].
    pub async fn write_batch(&self, batch: Batch) -> Result<Written> {
        self.txn().await?.commit(batch).await
    }

    /// Returns a scan as a stream of batches, one for each message of the server. The server reads
    /// only as fast as the client polls the stream. The first poll sends the request.
    pub fn scan(&self, table: &str, scan: &Scan) -> RowStream {
        RowStream::new(self.clone(), table, scan.clone())
    }

    /// Opens a stream of batches, each acknowledged after its commit.
    ///
    /// # Errors
    ///
    /// Fails if the stream cannot be opened; see [`Client`]. Failures of batches are in their
    /// acknowledgements.
    pub async fn batch_writer(&self, options: &BatchWriterOptions) -> Result<BatchWriter> {
        BatchWriter::start(self.clone(), *options).await
    }

    /// Watches the changes of a table, or of all tables if `table` is `None`, within a range of
    /// keys. Returns when the server has started the watch: later commits are included.
    ///
    /// # Errors
    ///
    /// Fails with code `no-table` if the table does not exist, with `no-changes-kept` if the store
    /// keeps no changes, with `fell-behind` if it no longer keeps those after the start, and with
    /// `ahead` if the start is after its last change; see also [`Client`].
    pub async fn watch(
        &self,
        table: Option<&str>,
        range: &Range,
        start: Start,
    ) -> Result<WatchStream> {
        WatchStream::start(self.clone(), table, range, start).await
    }

    /// Begins a transaction: reads from one state of the store, then an optional commit.
    ///
    /// # Errors
    ///
    /// Fails if the stream cannot be opened; see [`Client`].
    pub async fn txn(&self) -> Result<Txn> {
        Txn::start(self.clone()).await
    }

    /// Returns statistics of the store and of its tables.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub async fn stat(&self) -> Result<StoreStat> {
        let request = proto::StatRequest {};
        let response = self.read(request, async |calls, request| calls.stat(request).await).await?;
        StoreStat::of(response)
    }

    /// Returns the names and kinds of all tables, in order, without the main table.
    ///
    /// # Errors
    ///
    /// See [`Client`].
    pub async fn tables(&self) -> Result<Vec<(String, Kind)>> {
        let request = proto::TablesRequest {};
        let response = self.read(request, async |calls, request| calls.tables(request).await);
        let tables = response.await?.tables.into_iter();
        tables.map(|table| Ok((table.name, required(convert::kind(table.kind)?)?))).collect()
    }

    /// Creates a table if it does not exist: of this kind, or a plain one if `kind` is `None`.
    /// Returns the kind that the table has.
    ///
    /// # Errors
    ///
    /// Fails with code `table` if the table exists and is of another kind than `kind`, if the name
    /// is reserved, or if the store has too many open tables, and with `length` if the name is too
    /// long; see also [`Client`].
    pub async fn create_table(&self, name: &str, kind: Option<Kind>) -> Result<Kind> {
        let (name, kind) = (name.to_owned(), convert::kind_number(kind));
        let request = proto::CreateTableRequest { name, kind };
        // Creating a table twice has the same result.
        let response = self.read(request, async |calls, request| calls.create_table(request).await);
        required(convert::kind(response.await?.kind)?)
    }

    /// Copies one state of the store: returns the bytes of its file as a stream. If `compact` is
    /// true, the server omits free pages, which takes longer.
    ///
    /// # Errors
    ///
    /// Fails if the stream cannot be opened; see [`Client`].
    pub async fn backup(&self, compact: bool) -> Result<BackupStream> {
        BackupStream::start(self, compact).await
    }

    /// Sends a call, and retries it after a transient error.
    async fn read<Q: Clone, A, F>(&self, request: Q, call: F) -> Result<A>
    where
        F: AsyncFn(&mut Calls, Request<Q>) -> Result<Response<A>, Status>,
    {
        self.retry_if(request, call, |status| Error::from(status.clone()).is_transient()).await
    }

    /// Sends a call, and retries it only if it was not sent.
    async fn write<Q: Clone, A, F>(&self, request: Q, call: F) -> Result<A>
    where
        F: AsyncFn(&mut Calls, Request<Q>) -> Result<Response<A>, Status>,
    {
        self.retry_if(request, call, never_sent).await
    }

    async fn retry_if<Q: Clone, A, F>(
        &self,
        request: Q,
        call: F,
        may_retry: impl Fn(&Status) -> bool,
    ) -> Result<A>
    where
        F: AsyncFn(&mut Calls, Request<Q>) -> Result<Response<A>, Status>,
    {
        let response = self.within(async {
            let mut failures = 0;
            let begun = Instant::now();
            loop {
                let mut attempt = Request::new(request.clone());
                if let Some(timeout) = self.options.timeout {
                    // The attempts share the timeout.
                    attempt.set_timeout(timeout.saturating_sub(begun.elapsed()));
                }
                match call(&mut self.calls.clone(), attempt).await {
                    Ok(response) => return Ok(response.into_inner()),
                    Err(status) if failures < self.options.retries && may_retry(&status) => {
                        failures += 1;
                        tokio::time::sleep(pause(failures)).await;
                    }
                    Err(status) => return Err(status.into()),
                }
            }
        });
        response.await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl From<proto::Entry> for Found {
    fn from(entry: proto::Entry) -> Self {
        let proto::Entry { value, version, expires_at_ms } = entry;
        Self { value, version, expires_at_ms }
    }
}

fn get_many_request<K: AsRef<[u8]>>(table: &str, keys: &[K]) -> proto::GetManyRequest {
    let keys = keys.iter().map(|key| Bytes::copy_from_slice(key.as_ref())).collect();
    proto::GetManyRequest { table: table.to_owned(), keys }
}

fn written(response: proto::WriteResponse) -> Result<Written> {
    Ok(convert::written(required(response.written)?))
}
