//! Detects whether a connection is idle, from the calls that it has in progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// The calls of one connection. The connection is idle while none is in progress.
#[derive(Debug, Default)]
pub struct Activity {
    calls_begun: AtomicU64,
    calls_ended: AtomicU64,
}

/// A call in progress. Dropping it ends the call.
#[derive(Debug)]
pub struct OpenCall(Arc<Activity>);

impl Activity {
    /// Begins a call, which is in progress until the returned value is dropped.
    #[must_use]
    pub fn begin_call(self: &Arc<Self>) -> OpenCall {
        self.calls_begun.fetch_add(1, Ordering::Relaxed);
        OpenCall(Arc::clone(self))
    }

    /// Returns the number of calls so far if none is in progress, and `None` otherwise. If two
    /// calls of this function return the same number, the connection was idle in between.
    #[must_use]
    pub fn idle_after(&self) -> Option<u64> {
        // The order matters: if a call begins in between, the numbers differ.
        let ended = self.calls_ended.load(Ordering::Acquire);
        let begun = self.calls_begun.load(Ordering::Relaxed);
        (begun == ended).then_some(ended)
    }

    /// Waits until the connection has been idle for `limit` without interruption. May return up to
    /// `limit` later.
    pub async fn idle_for(&self, limit: Duration) {
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
