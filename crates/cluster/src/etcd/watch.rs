//! Watches: changes of all keys with a prefix, without gaps.

use super::client::{Etcd, with_token};
use super::convert;
use super::proto;
use super::proto::watch_client::WatchClient;
use super::proto::watch_request::RequestUnion;
use crate::request::Change;
use std::sync::Arc;
use std::time::Duration;
use tokio_stream::StreamExt;
use tonic::metadata::MetadataValue;
use tonic::{Status, Streaming};

/// The time to open a watch, and the pause before the next attempt.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(200);
/// A watch without a message for this long is opened anew: its member of etcd may be stuck.
const MAX_SILENCE: Duration = Duration::from_secs(20);
/// The maximum length of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// What a watch reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchUpdate {
    /// All changes up to a revision.
    Changes {
        /// The revision.
        revision: i64,
        /// The changes, in the order of their revisions.
        changes: Vec<Change>,
    },
    /// etcd has compacted the next revision. The watch has ended: read the keys anew.
    Compacted,
}

/// A watch of all keys with a prefix. It continues after its last revision when a connection is
/// lost, at another endpoint.
#[derive(Debug)]
pub struct Watch {
    etcd: Arc<Etcd>,
    prefix: String,
    next_revision: i64,
    stream: Option<(usize, Streaming<proto::WatchResponse>)>,
}

impl Watch {
    /// Creates a watch of all changes from a revision on.
    #[must_use]
    pub fn new(etcd: Arc<Etcd>, prefix: &str, from: i64) -> Self {
        Self { etcd, prefix: prefix.to_owned(), next_revision: from, stream: None }
    }

    /// Waits for the next changes. Not to be called again after [`WatchUpdate::Compacted`].
    pub async fn next(&mut self) -> WatchUpdate {
        loop {
            match self.receive().await {
                Ok(Some(update)) => return update,
                Ok(None) => {}
                Err(status) => {
                    if let Some((number, _)) = self.stream.take() {
                        self.etcd.note_failure(number, &status);
                    }
                    if self.etcd.is_token_invalid(&status) {
                        self.etcd.forget_token();
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Receives a message; `None` for one without changes.
    async fn receive(&mut self) -> Result<Option<WatchUpdate>, Status> {
        if self.stream.is_none() {
            self.stream = Some(self.open().await?);
        }
        let Some((_, stream)) = &mut self.stream else { return Ok(None) };
        let Ok(message) = tokio::time::timeout(MAX_SILENCE, stream.message()).await else {
            // Nothing has changed, or the member of etcd is stuck: another one knows.
            if let Some((number, _)) = self.stream.take() {
                self.etcd.change_endpoint(number);
            }
            return Ok(None);
        };
        let message = message?.ok_or_else(|| Status::unavailable("etcd has ended the watch"))?;
        if message.compact_revision > 0 {
            return Ok(Some(WatchUpdate::Compacted));
        }
        if message.canceled {
            return Err(Status::unavailable(message.cancel_reason));
        }
        let changes: Vec<Change> = message.events.into_iter().filter_map(convert::change).collect();
        let Some(revision) = changes.iter().map(Change::revision).max() else { return Ok(None) };
        self.next_revision = revision + 1;
        Ok(Some(WatchUpdate::Changes { revision, changes }))
    }

    async fn open(&self) -> Result<(usize, Streaming<proto::WatchResponse>), Status> {
        let (number, channel) = self.etcd.channel();
        let create = proto::WatchCreateRequest {
            key: self.prefix.as_bytes().to_vec(),
            range_end: convert::end_of(&self.prefix),
            start_revision: self.next_revision,
            progress_notify: false,
        };
        let create = proto::WatchRequest { request_union: Some(RequestUnion::Create(create)) };
        let opening = async {
            let token = self.etcd.token(&channel).await?;
            // The watch ends when the client ends its stream of requests.
            let requests = tokio_stream::once(create).chain(tokio_stream::pending());
            let mut request = with_token(requests, token);
            // Lets a member end the watch if it has no leader.
            request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
            let mut client =
                WatchClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
            client.watch(request).await
        };
        let opened = tokio::time::timeout(OPEN_TIMEOUT, opening).await;
        let opened = opened
            .unwrap_or_else(|_| Err(Status::deadline_exceeded("a watch was not opened in time")));
        match opened {
            Ok(stream) => Ok((number, stream.into_inner())),
            Err(status) => {
                self.etcd.note_failure(number, &status);
                Err(status)
            }
        }
    }
}
