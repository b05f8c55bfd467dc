//! What a connection does: whether its client has begun HTTP/2, and which calls are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// The activity of one connection.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// The client has sent its HTTP/2 preface and the beginning of its settings.
    has_begun: AtomicBool,
    calls_begun: AtomicU64,
    calls_ended: AtomicU64,
}

/// A call in progress. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenCall(Arc<Activity>);

impl Activity {
    /// Notes that the client has begun HTTP/2.
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Returns whether the client has begun HTTP/2.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Notes that a call begins.
    pub(crate) fn begin_call(self: &Arc<Self>) -> OpenCall {
        self.calls_begun.fetch_add(1, Ordering::Relaxed);
        OpenCall(Arc::clone(self))
    }

    /// Returns how many calls there have been if none is open.
    pub(crate) fn idle_after(&self) -> Option<u64> {
        // In this order, a call that begins in between makes the numbers differ.
        let ended = self.calls_ended.load(Ordering::Acquire);
        let begun = self.calls_begun.load(Ordering::Relaxed);
        (begun == ended).then_some(ended)
    }

    /// Waits until no call was open for `limit` without interruption. It waits up to twice as long.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        loop {
            let before = self.idle_after();
            sleep(limit).await;
            if before.is_some() && before == self.idle_after() {
                return;
            }
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.calls_ended.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_while_no_call_is_open() {
        let activity = Arc::new(Activity::default());
        assert_eq!(activity.idle_after(), Some(0));
        let (first, second) = (activity.begin_call(), activity.begin_call());
        drop(first);
        assert_eq!(activity.idle_after(), None);
        drop(second);
        assert_eq!(activity.idle_after(), Some(2), "a call in between is noticed");
    }
}
