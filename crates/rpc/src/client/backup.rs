//! Downloads of backups.

use super::Client;
use super::connect::Calls;
use super::timeout::Attempt;
use crate::error::Result;
use crate::messages::proto;
use bytes::Bytes;
use std::fmt;
use tonic::Streaming;

/// The bytes of a copy of a store. The copy is complete when [`next`](Self::next) returns `None`.
pub struct BackupStream(Streaming<proto::BackupResponse>);

impl BackupStream {
    pub(super) async fn start(client: &Client, compact: bool) -> Result<Self> {
        let request = proto::BackupRequest { compact };
        let begin = |mut calls: Calls| async move { Ok(calls.backup(request).await?.into_inner()) };
        Ok(Self(client.begin(Attempt::First, begin).await?))
    }

    /// Returns the next bytes; `None` after the last ones.
    ///
    /// # Errors
    ///
    /// An item is an error if the server ended the stream early or the connection was lost. The
    /// copy is incomplete then.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        match self.0.message().await {
            Ok(part) => part.map(|part| Ok(part.data)),
            Err(status) => Some(Err(status.into())),
        }
    }
}

impl fmt::Debug for BackupStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackupStream").finish_non_exhaustive()
    }
}
