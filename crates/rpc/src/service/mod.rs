//! The calls of `store.proto`, one file for each kind.
//!
//! Nothing here reads the store on a thread that moves bytes: reads go to threads that may wait
//! ([`on_thread`]), writes to the store's own thread, in batches.

mod answers;
mod backup;
mod batch;
mod reads;
mod scan;
mod stat;
mod txn;
mod watch;
mod writes;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::gate::Call;
use crate::options::Options;
use crate::proto;
use crate::proto::store_server::Store as Calls;
use crate::rows::Rows;
use crate::tables::Tables;
use answers::Answers;
use nuthatch_store::{BatchWriter, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};

type Answer<T> = Result<Response<T>, Status>;

/// What all calls work with.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) tables: Tables,
    pub(crate) writer: BatchWriter,
    pub(crate) budget: Arc<Budget>,
    pub(crate) limits: Limits,
}

/// What calls may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) message_bytes: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) batches_in_flight: usize,
    pub(crate) idle: Duration,
    pub(crate) longest: Duration,
}

impl Limits {
    pub(crate) fn of(options: &Options) -> Self {
        let Options { batch_bytes, batches_in_flight, idle, longest, .. } = *options;
        let message_bytes = options.max_message_len();
        Self { message_bytes, batch_bytes, batches_in_flight, idle, longest }
    }

    /// Returns the error for a transaction that began at `since` and was ended at a limit.
    pub(crate) fn expired(&self, since: Option<Instant>) -> Error {
        if since.is_some_and(|since| since.elapsed() >= self.longest) {
            return Error::expired("it was open", self.longest, "--longest-ms");
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

    /// Does something that may wait, on a thread for that.
    async fn blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let shared = Arc::clone(&self.0);
        Ok(Response::new(on_thread(move || act(&shared)).await?))
    }
}

/// Does something that may wait, on a thread for that.
async fn on_thread<T: Send + 'static>(
    act: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(act).await {
        Ok(done) => done,
        Err(error) if error.is_cancelled() => Err(Error::draining()),
        Err(error) => Err(Error::internal(error.to_string())),
    }
}

/// The call that a request belongs to.
fn call<T>(request: &Request<T>) -> Result<Call> {
    let call = request.extensions().get::<Call>().cloned();
    call.ok_or_else(|| Error::internal("a request came past the gate"))
}

#[tonic::async_trait]
impl Calls for Service {
    type ScanStream = Answers<Rows>;
    type BatchStream = Answers<proto::BatchResponse>;
    type WatchStream = Answers<proto::WatchResponse>;
    type TxnStream = Answers<proto::TxnResponse>;
    type BackupStream = Answers<proto::BackupResponse>;

    async fn get(&self, request: Request<proto::GetRequest>) -> Answer<proto::GetResponse> {
        let request = request.into_inner();
        self.blocking(move |shared| reads::get(shared, &request)).await
    }

    async fn get_many(
        &self,
        request: Request<proto::GetManyRequest>,
    ) -> Answer<proto::GetManyResponse> {
        let request = request.into_inner();
        self.blocking(move |shared| reads::get_many(shared, &request)).await
    }

    async fn count(&self, request: Request<proto::CountRequest>) -> Answer<proto::CountResponse> {
        let request = request.into_inner();
        self.blocking(move |shared| reads::count(shared, request)).await
    }

    async fn put(&self, request: Request<proto::PutRequest>) -> Answer<proto::WriteResponse> {
        Ok(Response::new(writes::put(&self.0, request.into_inner()).await?))
    }

    async fn put_if(&self, request: Request<proto::PutIfRequest>) -> Answer<proto::PutIfResponse> {
        Ok(Response::new(writes::put_if(&self.0, request.into_inner()).await?))
    }

    async fn delete(&self, request: Request<proto::DeleteRequest>) -> Answer<proto::WriteResponse> {
        Ok(Response::new(writes::delete(&self.0, request.into_inner()).await?))
    }

    async fn delete_range(
        &self,
        request: Request<proto::DeleteRangeRequest>,
    ) -> Answer<proto::WriteResponse> {
        Ok(Response::new(writes::delete_range(&self.0, request.into_inner()).await?))
    }

    async fn scan(&self, request: Request<proto::ScanRequest>) -> Answer<Self::ScanStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(scan::start(shared, call, request.into_inner()).await?))
    }

    async fn batch(
        &self,
        request: Request<Streaming<proto::BatchRequest>>,
    ) -> Answer<Self::BatchStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(batch::start(shared, call, request.into_inner())))
    }

    async fn watch(&self, request: Request<proto::WatchRequest>) -> Answer<Self::WatchStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(watch::start(shared, call, request.into_inner()).await?))
    }

    async fn txn(&self, request: Request<Streaming<proto::TxnRequest>>) -> Answer<Self::TxnStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(txn::start(shared, call, request.into_inner())))
    }

    async fn stat(&self, _: Request<proto::StatRequest>) -> Answer<proto::StatResponse> {
        self.blocking(stat::stat).await
    }

    async fn tables(&self, _: Request<proto::TablesRequest>) -> Answer<proto::TablesResponse> {
        self.blocking(stat::tables).await
    }

    async fn create_table(
        &self,
        request: Request<proto::CreateTableRequest>,
    ) -> Answer<proto::CreateTableResponse> {
        let request = request.into_inner();
        self.blocking(move |shared| stat::create_table(shared, &request)).await
    }

    async fn backup(&self, request: Request<proto::BackupRequest>) -> Answer<Self::BackupStream> {
        let (call, shared) = (call(&request)?, Arc::clone(&self.0));
        Ok(Response::new(backup::start(shared, call, request.into_inner().compact)?))
    }
}
