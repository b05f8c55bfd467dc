//! Operations that run on threads of their own: they read and verify large files, which would block
//! the threads for network I/O.

use crate::failure::{Failure, Outcome};
use crate::runtime::Work;
use std::future::{Future, poll_fn};
use std::pin::pin;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Returns work that runs a future on a thread that may block. If the work is dropped, the future
/// ends when it waits the next time.
pub(super) fn apart<T, F>(future: F) -> Work<T>
where
    T: Send + 'static,
    F: Future<Output = Outcome<T>> + Send + 'static,
{
    Work::awaited(async move {
        let (mut sender, receiver) = oneshot::channel();
        let handle = Handle::current();
        tokio::task::spawn_blocking(move || {
            let outcome = handle.block_on(async {
                let mut future = pin!(future);
                poll_fn(|context| {
                    if sender.poll_closed(context).is_ready() {
                        return std::task::Poll::Ready(None);
                    }
                    future.as_mut().poll(context).map(Some)
                })
                .await
            });
            if let Some(outcome) = outcome {
                // Fails if the work was dropped in the meantime.
                let _ = sender.send(outcome);
            }
        });
        receiver.await.unwrap_or_else(|_| Err(Failure::lost()))
    })
}
