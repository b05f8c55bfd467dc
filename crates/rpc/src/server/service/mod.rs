//! The methods of `store.proto`, one file for each kind.
//!
//! No I/O thread reads the store: reads run on threads that may block ([`on_thread`]), and writes
//! are submitted in batches to the thread of the store.

mod backup;
mod batch;
mod reads;
mod responses;
mod scan;
mod stat;
mod txn;
mod watch;
mod writes;

use crate::error::{Error, Result};
use crate::messages::proto;
use crate::messages::proto::store_server::Store as Calls;
use crate::messages::rows::Rows;
use crate::server::budget::Budget;
use crate::server::middleware::CallContext;
use crate::server::options::Options;
use crate::server::tables::Tables;
use nuthatch_store::{BatchWriter, Store};
use responses::ResponseStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};

type CallResult<T> = Result<Response<T>, Status>;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) tables: Tables,
    pub(crate) writer: BatchWriter,
    pub(crate) budget: Arc<Budget>,
    pub(crate) limits: Limits,
}

/// Limits of calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) message_bytes: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) batches_in_flight: usize,
    pub(crate) idle: Duration,
    pub(crate) max_transaction: Duration,
}

impl Limits {
    pub(crate) fn of(options: &Options) -> Self {
        let Options { batch_bytes, batches_in_flight, idle, max_transaction, .. } = *options;
        let message_bytes = options.max_message_len();
        Self { message_bytes, batch_bytes, batches_in_flight, idle, max_transaction }
    }

    /// Returns the error for a transaction that began at `since` and was ended at a limit.
    pub(crate) fn expired(&self, since: Option<Instant>) -> Error {
        if since.is_some_and(|since| since.elapsed() >= self.max_transaction) {
            return Error::expired("it was open", self.max_transaction, "--longest-ms");
        }
        Error::expired("its client neither read nor sent", self.idle, "--idle-ms")
    }
}

/// The service.
#[derive(Clone)]
pub(crate) struct Service(Arc<Shared>);

impl Service {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }

    /// Runs an operation that may block, on a thread for that.
    async fn blocking<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> CallResult<T> {
        let shared = Arc::clone(&self.0);
        Ok(Response::new(on_thread(move || operation(&shared)).await?))
    }
}

/// Runs an operation that may block, on a thread for that.
async fn on_thread<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(operation).await {
        Ok(done) => done,
        Err(error) if error.is_cancelled() => Err(Error::draining()),
        Err(error) => Err(Error::internal(error.to_string())),
    }
}

/// Returns the context of the call of a request.
fn call<T>(request: &Request<T>) -> Result<CallContext> {
    let call = request.extensions().get::<CallContext>().cloned();
    call.ok_or_else(|| Error::internal("a request bypassed the middleware"))
}

#[tonic::async_trait]
impl Calls for Service {
    type ScanStream = ResponseStream<Rows>;
    type BatchStream = ResponseStream<proto::BatchResponse>;
    type WatchStream = ResponseStream<proto::WatchResponse>;
    type TxnStream = ResponseStream<proto::TxnResponse>;
    type BackupStream = ResponseStream<proto::BackupResponse>;

    async fn get(&self, request: Request<proto::GetRequest>) -> CallResult<proto::GetResponse> {
        let request = request.into_inner();
        self.blocking(move |shared| reads::get(shared, &request)).await
    }

    async fn get_many(
        &self,
        request: Request<proto::GetManyRequest>,
    ) -> CallResult<proto::GetManyResponse> {
        let request = request.into_inner();
        self.blocking(move |shared| reads::get_many(shared, &request)).await
    }

    async fn count(
        &self,
        request: Request<proto::CountRequest>,
    ) -> CallResult<proto::CountResponse> {
        let request = request.into_inner();
        self.blocking(move |shared| reads::count(shared, request)).await
    }

    async fn put(&self, request: Request<proto::PutRequest>) -> CallResult<proto::WriteResponse> {
        Ok(Response::new(writes::put(&self.0, request.into_inner()).await?))
    }

    async fn put_if(
        &self,
        request: Request<proto::PutIfRequest>,
    ) -> CallResult<proto::PutIfResponse> {
        Ok(Response::new(writes::put_if(&self.0, request.into_inner()).await?))
    }

    async fn delete(
        &self,
        request: Request<proto::DeleteRequest>,
    ) -> CallResult<proto::WriteResponse> {
        Ok(Response::new(writes::delete(&self.0, request.into_inner()).await?))
    }

    async fn delete_range(
        &self,
        request: Request<proto::DeleteRangeRequest>,
    ) -> CallResult<proto::WriteResponse> {
        Ok(Response::new(writes::delete_range(&self.0, request.into_inner()).await?))
    }

    async fn scan(&self, request: Request<proto::ScanRequest>) -> CallResult<Self::ScanStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(scan::start(shared, call, request.into_inner()).await?))
    }

    async fn batch(
        &self,
        request: Request<Streaming<proto::BatchRequest>>,
    ) -> CallResult<Self::BatchStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(batch::start(shared, call, request.into_inner())))
    }

    async fn watch(&self, request: Request<proto::WatchRequest>) -> CallResult<Self::WatchStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(watch::start(shared, call, request.into_inner()).await?))
    }

    async fn txn(
        &self,
        request: Request<Streaming<proto::TxnRequest>>,
    ) -> CallResult<Self::TxnStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(txn::start(shared, call, request.into_inner())))
    }

    async fn stat(&self, _: Request<proto::StatRequest>) -> CallResult<proto::StatResponse> {
        self.blocking(stat::stat).await
    }

    async fn tables(&self, _: Request<proto::TablesRequest>) -> CallResult<proto::TablesResponse> {
        self.blocking(stat::tables).await
    }

    async fn create_table(
        &self,
        request: Request<proto::CreateTableRequest>,
    ) -> CallResult<proto::CreateTableResponse> {
        let request = request.into_inner();
        self.blocking(move |shared| stat::create_table(shared, &request)).await
    }

    async fn backup(
        &self,
        request: Request<proto::BackupRequest>,
    ) -> CallResult<Self::BackupStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(backup::start(shared, call, request.into_inner().compact)?))
    }
}
