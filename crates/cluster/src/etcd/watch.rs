//! Watches: changes of all keys with a prefix, without gaps.

use super::client::{Etcd, Failed, Target, with_token};
use super::convert;
use super::diagnosis::{requires_login, watch_end};
use super::login::Token;
use super::problem::Operation;
use super::proto;
use super::proto::watch_client::WatchClient;
use super::proto::watch_request::RequestUnion;
use crate::request::Change;
use std::sync::Arc;
use std::time::Duration;
use tokio_stream::StreamExt;
use tonic::{Code, Status, Streaming};

/// The time to open a watch, and the pause before the next attempt.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(200);
/// The pause if etcd has refused the watch repeatedly: each attempt may need a login, which is
/// expensive.
const RETRY_REFUSED: Duration = Duration::from_secs(2);
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
    stream: Option<Stream>,
    /// How often etcd has refused the watch since the last message.
    refusals: u32,
}

/// An open watch.
#[derive(Debug)]
struct Stream {
    target: Target,
    token: Option<Token>,
    messages: Streaming<proto::WatchResponse>,
}

impl Watch {
    /// Creates a watch of all changes from a revision on.
    #[must_use]
    pub fn new(etcd: Arc<Etcd>, prefix: &str, from: i64) -> Self {
        Self { etcd, prefix: prefix.to_owned(), next_revision: from, stream: None, refusals: 0 }
    }

    /// Waits for the next changes. Not to be called again after [`WatchUpdate::Compacted`].
    pub async fn next(&mut self) -> WatchUpdate {
        loop {
            let result = match self.stream.take() {
                Some(stream) => self.receive(stream).await,
                None => self.open().await.map(|()| None),
            };
            match result {
                Ok(Some(update)) => return update,
                Ok(None) => {}
                Err(status) => {
                    let is_refused =
                        matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied);
                    self.refusals = if is_refused { self.refusals + 1 } else { 0 };
                    // A token that has expired is refused once.
                    let pause = if self.refusals > 1 { RETRY_REFUSED } else { RETRY };
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// Receives a message; `None` for one without changes. An error ends the stream.
    async fn receive(&mut self, mut stream: Stream) -> Result<Option<WatchUpdate>, Status> {
        let message = tokio::time::timeout(MAX_SILENCE, stream.messages.message()).await;
        let Ok(message) = message else {
            // Nothing has changed, or the member of etcd is stuck: another one knows.
            self.etcd.change_endpoint(&stream.target);
            return Ok(None);
        };
        let message = message.and_then(|message| {
            let message = message.ok_or_else(|| Status::unavailable("etcd has ended the watch"))?;
            self.etcd.check_cluster(message.header.as_ref())?;
            let is_compacted = message.compact_revision > 0;
            if message.canceled && !is_compacted {
                return Err(watch_end(&message.cancel_reason));
            }
            Ok(message)
        });
        let message = message.inspect_err(|status| self.note_failure(&stream, status))?;
        self.refusals = 0;
        self.etcd.note_success(&stream.target, Operation::Watch);
        if message.compact_revision > 0 {
            return Ok(Some(WatchUpdate::Compacted));
        }
        self.stream = Some(stream);
        let changes: Vec<Change> = message.events.into_iter().filter_map(convert::change).collect();
        let Some(revision) = changes.iter().map(Change::revision).max() else { return Ok(None) };
        self.next_revision = revision + 1;
        Ok(Some(WatchUpdate::Changes { revision, changes }))
    }

    fn note_failure(&self, stream: &Stream, status: &Status) {
        let Stream { target, token, .. } = stream;
        // Some versions of etcd report an invalid token as a missing permission.
        if requires_login(status) || status.code() == Code::PermissionDenied {
            target.forget_token(token.as_ref());
        }
        let failed = Failed { request: Operation::Watch, status: status.clone() };
        self.etcd.note_failure(target, &failed);
    }

    async fn open(&mut self) -> Result<(), Status> {
        let target = self.etcd.target();
        let create = proto::WatchCreateRequest {
            key: self.prefix.as_bytes().to_vec(),
            range_end: convert::end_of(&self.prefix),
            start_revision: self.next_revision,
            progress_notify: false,
        };
        let create = proto::WatchRequest { request_union: Some(RequestUnion::Create(create)) };
        let opening = async {
            let token = self.etcd.token(&target).await?;
            // The watch ends when the client ends its stream of requests.
            let requests = tokio_stream::once(create).chain(tokio_stream::pending());
            let request = with_token(requests, token.clone());
            let mut client =
                WatchClient::new(target.channel()).max_decoding_message_size(MAX_MESSAGE_BYTES);
            let opened = client.watch(request).await.map_err(failed);
            Ok((token, opened?.into_inner()))
        };
        let opened = tokio::time::timeout(OPEN_TIMEOUT, opening).await.unwrap_or_else(|_| {
            Err(failed(Status::deadline_exceeded(format!("no response within {OPEN_TIMEOUT:?}"))))
        });
        match opened {
            Ok((token, messages)) => {
                self.stream = Some(Stream { target, token, messages });
                Ok(())
            }
            Err(failed) => {
                self.etcd.note_failure(&target, &failed);
                Err(failed.status)
            }
        }
    }
}

fn failed(status: Status) -> Failed {
    Failed { request: Operation::Watch, status }
}
