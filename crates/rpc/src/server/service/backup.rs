//! `Backup`: a copy of the store, through a pipe.

use super::Shared;
use super::responses::{ResponseSender, ResponseStream};
use crate::error::{Error, Result};
use crate::messages::proto;
use crate::server::middleware::CallContext;
use bytes::{Bytes, BytesMut};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The length of a message in bytes.
const PART: usize = 64 << 10;

pub(super) fn start(
    shared: Arc<Shared>,
    call: CallContext,
    compact: bool,
) -> Result<ResponseStream<proto::BackupResponse>> {
    let failed =
        |operation: &str, error: std::io::Error| Error::internal(format!("{operation}: {error}"));
    let (reader, writer) = std::io::pipe().map_err(|e| failed("make a pipe", e))?;
    let reader = Receiver::from_owned_fd(OwnedFd::from(reader));
    let reader = reader.map_err(|e| failed("make a pipe", e))?;
    let (done, ended) = oneshot::channel();
    let (store, writer) = (shared.store.clone(), File::from(OwnedFd::from(writer)));
    // The copy takes as long as the client needs to receive it, so it has a thread of its own. The
    // thread ends when the pipe is closed.
    let thread = std::thread::Builder::new().name("nuthatch-backup".to_owned());
    let copying = thread.spawn(move || {
        let copied = store.backup_to(&writer, compact);
        drop(writer);
        // The receiver may have been dropped.
        let _ = done.send(copied);
    });
    copying.map_err(|e| failed("start a thread", e))?;
    Ok(ResponseStream::start(call, move |responses| async move {
        pass_on(&shared, reader, &responses).await?;
        match ended.await {
            Ok(copied) => Ok(copied?),
            Err(_) => Err(Error::internal("the thread that copies died")),
        }
    }))
}

/// Sends the bytes of the pipe until its end.
async fn pass_on(
    shared: &Shared,
    mut pipe: Receiver,
    responses: &ResponseSender<proto::BackupResponse>,
) -> Result<()> {
    loop {
        let charge = shared.budget.charge(PART as u64)?;
        let mut part = BytesMut::with_capacity(PART);
        while part.len() < PART {
            let read = pipe.read_buf(&mut part).await;
            if read.map_err(|e| Error::internal(format!("read a pipe: {e}")))? == 0 {
                break;
            }
        }
        if part.is_empty() {
            return Ok(());
        }
        let data: Bytes = part.freeze();
        let sent = responses.send(proto::BackupResponse { data }, Some(charge));
        // Closing the pipe here ends the transaction of the copy.
        timeout(shared.limits.idle, sent).await.map_err(|_| shared.limits.expired(None))?;
    }
}
