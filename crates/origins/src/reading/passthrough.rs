//! Bytes that are sent to the reader and not stored: one request for a whole range.

use crate::counts::Count;
use crate::error::Result;
use crate::not_kept::NotKept;
use crate::origin::RangeResponse;
use crate::reading::fetch::next_of;
use crate::reading::version::Version;
use crate::retry::{Attempts, Fault};
use bytes::Bytes;
use nuthatch_trace_context::Instrument;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

/// The maximum number of received pieces that wait for the reader. Then the task stops receiving.
const MAX_QUEUED: usize = 4;

/// A range as the origin sends it. Dropping it ends the request.
#[derive(Debug)]
pub(crate) struct Passthrough {
    receiver: Receiver<Result<Bytes>>,
    task: AbortHandle,
}

impl Passthrough {
    /// Begins to send a range to a reader. `cause` is why it is not stored; `None` if the cache has
    /// no folder.
    pub(crate) fn begin(
        version: &Arc<Version>,
        range: Range<u64>,
        cause: Option<NotKept>,
    ) -> Result<Self> {
        // A folder that cannot be opened has been logged already.
        if let Some(cause) = cause.filter(|cause| *cause != NotKept::Folder) {
            version.log_not_kept(cause);
        }
        let (sender, receiver) = channel(MAX_QUEUED);
        let passing =
            PassthroughTask { version: version.clone(), rest: range, cause, block: None, sender };
        let address = &*version.opened.address;
        let span = nuthatch_trace_context::span!("origin fetch", "client", url.full = address);
        let task = version.engine.spawn(passing.run().instrument(span))?.abort_handle();
        Ok(Self { receiver, task })
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        self.receiver.poll_recv(context)
    }
}

impl Drop for Passthrough {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The task that receives bytes for the reader.
struct PassthroughTask {
    version: Arc<Version>,
    rest: Range<u64>,
    cause: Option<NotKept>,
    /// The last block of which bytes were sent to the reader.
    block: Option<u64>,
    sender: Sender<Result<Bytes>>,
}

impl PassthroughTask {
    async fn run(mut self) {
        let version = self.version.clone();
        let begin = self.rest.start;
        let mut attempts = Attempts::new(&version.engine.settings, &version.opened.address);
        while !self.rest.is_empty() && !self.sender.is_closed() {
            version.count(Count::Requests, 1);
            version.count(Count::Retries, u64::from(attempts.is_retry()));
            let mut ended = self.receive(&mut attempts).await;
            let torn = self.rest.start > begin && !self.rest.is_empty();
            if torn && version.head.validator.is_none() {
                // Without a validator, the rest could be of another version.
                let (expected, found) = ("the whole range in one response", "a part of it");
                ended = Err(version.opened.unexpected(expected, found).into());
            }
            let Err(fault) = ended else { continue };
            match attempts.failed(fault) {
                Ok(retry_delay) => tokio::time::sleep(retry_delay).await,
                Err(error) => {
                    version.failed(&error);
                    let _ = self.sender.send(Err(error)).await;
                    return;
                }
            }
        }
    }

    async fn receive(&mut self, attempts: &mut Attempts<'_>) -> Result<(), Fault> {
        let version = self.version.clone();
        let response = version.origin.get(self.rest.clone(), &version.opened);
        let RangeResponse { range: promised, mut body } =
            version.engine.with_read_timeout(response).await?;
        let mut at = promised.start;
        while !self.rest.is_empty() {
            let next = next_of(&mut body, &version);
            let Some(bytes) = version.engine.with_read_timeout(next).await? else {
                let early = || Err(Fault::broken("the response ended early"));
                return if at < promised.end { early() } else { Ok(()) };
            };
            let end = at + bytes.len() as u64;
            let wanted = self.rest.start.max(at)..self.rest.end.min(end);
            if wanted.start < wanted.end {
                let piece = (wanted.start - at) as usize..(wanted.end - at) as usize;
                self.rest.start = wanted.end;
                attempts.progress();
                version.count(Count::FromOrigin, wanted.end - wanted.start);
                self.count_blocks(&wanted);
                if self.sender.send(Ok(bytes.slice(piece))).await.is_err() {
                    self.rest.start = self.rest.end;
                }
            }
            at = end;
        }
        Ok(())
    }

    /// Counts the blocks of which these are the first bytes.
    fn count_blocks(&mut self, bytes: &Range<u64>) {
        let block_len = self.version.engine.settings.block_len;
        let (first, last) = (bytes.start / block_len, (bytes.end - 1) / block_len);
        let is_new = u64::from(self.block != Some(first));
        if let Some(cause) = self.cause {
            self.version.count_not_kept(cause, last - first + is_new);
        }
        self.block = Some(last);
    }
}
