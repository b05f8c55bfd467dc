//! Requests, as calls of the v3 API.

use super::client::{Etcd, Response as EtcdResponse, with_token};
use super::convert;
use super::problem::Operation;
use super::proto::kv_client::KvClient;
use super::proto::lease_client::LeaseClient;
use super::proto::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseRevokeRequest, LeaseRevokeResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse,
    RangeRequest, RangeResponse, ResponseHeader, TxnResponse, WatchResponse,
};
use crate::request::{Failure, Reply, Request, Response};
use std::time::Duration;
use tonic::Status;

/// The maximum length of a response in bytes. All keys of 1,000 nodes have less than 2 MiB.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

impl Etcd {
    /// Executes a request, within a deadline.
    ///
    /// # Errors
    ///
    /// Fails if no response arrives, or if etcd refuses the request. It may have been executed,
    /// unless the failure is [`Failure::LeaseAbsent`].
    pub async fn execute(
        &self,
        request: &Request,
        deadline: Duration,
    ) -> Result<Response, Failure> {
        match request {
            Request::Grant { ttl_s } => self.grant(*ttl_s, deadline).await,
            Request::KeepAlive { lease } => self.keep_alive(*lease, deadline).await,
            Request::Revoke { lease } => self.revoke(*lease, deadline).await,
            Request::Read(key) => self.read(convert::range(key, false), deadline).await,
            Request::ReadPrefix(prefix) => self.read(convert::range(prefix, true), deadline).await,
            Request::Commit(txn) => {
                let txn = convert::txn(txn);
                let response = self.call(Operation::Commit, deadline, async |channel, token| {
                    let response =
                        KvClient::new(channel).txn(with_token(txn.clone(), token)).await?;
                    Ok(response.into_inner())
                });
                let response = response.await?;
                let succeeded = response.succeeded;
                Ok(with_header(response.header, Reply::Committed { succeeded }))
            }
        }
    }

    /// Returns the seconds until a lease ends; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if no response arrives within the deadline.
    pub async fn time_to_live(
        &self,
        lease: i64,
        deadline: Duration,
    ) -> Result<Option<u64>, Failure> {
        let request = LeaseTimeToLiveRequest { id: lease, keys: false };
        let response = self.call(Operation::TimeToLive, deadline, async |channel, token| {
            let mut client = LeaseClient::new(channel);
            Ok(client.lease_time_to_live(with_token(request, token)).await?.into_inner())
        });
        Ok(u64::try_from(response.await?.ttl).ok())
    }

    async fn read(&self, range: RangeRequest, deadline: Duration) -> Result<Response, Failure> {
        let response = self.call(Operation::Read, deadline, async |channel, token| {
            let mut client = KvClient::new(channel).max_decoding_message_size(MAX_RESPONSE_BYTES);
            Ok(client.range(with_token(range.clone(), token)).await?.into_inner())
        });
        let response = response.await?;
        let keys = response.kvs.iter().map(convert::key_value).collect();
        Ok(with_header(response.header, Reply::Read(keys)))
    }

    async fn grant(&self, ttl_s: i64, deadline: Duration) -> Result<Response, Failure> {
        let request = LeaseGrantRequest { ttl: ttl_s, id: 0 };
        let response = self.call(Operation::Grant, deadline, async |channel, token| {
            let mut client = LeaseClient::new(channel);
            Ok(client.lease_grant(with_token(request, token)).await?.into_inner())
        });
        let response = response.await?;
        let reply = Reply::Granted { lease: response.id, ttl_s: response.ttl };
        Ok(with_header(response.header, reply))
    }

    async fn keep_alive(&self, lease: i64, deadline: Duration) -> Result<Response, Failure> {
        let response = self.call(Operation::KeepAlive, deadline, async |channel, token| {
            let request = tokio_stream::once(LeaseKeepAliveRequest { id: lease });
            let mut client = LeaseClient::new(channel);
            let stream = client.lease_keep_alive(with_token(request, token)).await?;
            let response = stream.into_inner().message().await?;
            response.ok_or_else(|| Status::unavailable("etcd has ended the call"))
        });
        let response = response.await?;
        let reply = Reply::KeptAlive { ttl_s: response.ttl };
        Ok(with_header(response.header, reply))
    }

    async fn revoke(&self, lease: i64, deadline: Duration) -> Result<Response, Failure> {
        let request = LeaseRevokeRequest { id: lease };
        let response = self.call(Operation::Revoke, deadline, async |channel, token| {
            let mut client = LeaseClient::new(channel);
            Ok(client.lease_revoke(with_token(request, token)).await?.into_inner())
        });
        Ok(with_header(response.await?.header, Reply::Revoked))
    }
}

fn with_header(header: Option<ResponseHeader>, reply: Reply) -> Response {
    let header = header.unwrap_or_default();
    Response { revision: header.revision, term: header.raft_term, reply }
}

/// Lets the client check the headers of these messages.
macro_rules! responses {
    ($($message:ty)*) => {
        $(impl EtcdResponse for $message {
            fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }
        })*
    };
}

responses! {
    LeaseGrantResponse LeaseKeepAliveResponse LeaseRevokeResponse LeaseTimeToLiveResponse
    RangeResponse TxnResponse WatchResponse
}
