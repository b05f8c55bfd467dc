//! Whether a connection is idle: the calls that it has in progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// The calls of one connection.
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

    /// Returns the number of calls so far if none is in progress.
    #[must_use]
    pub fn idle_after(&self) -> Option<u64> {
        // The order matters: if a call begins in between, the numbers differ.
        let ended = self.calls_ended.load(Ordering::Acquire);
        let begun = self.calls_begun.load(Ordering::Relaxed);
        (begun == ended).then_some(ended)
    }

    /// Waits until no call has been in progress for `limit` without interruption. Returns up to
    /// `limit` later than that.
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
