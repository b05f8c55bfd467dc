//! The phases in which a server stops: it drains, so that work in progress can finish, then it
//! ends.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The phase of a server. It only advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// No new work begins. Work in progress may finish.
    Draining,
    /// Work in progress is abandoned.
    Ended,
}

/// The phase of a server: serving, draining or ended. All clones share it.
#[derive(Clone, Debug)]
pub struct Lifecycle(Arc<watch::Sender<Phase>>);

impl Lifecycle {
    /// Creates the lifecycle of a server that serves.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Serving)))
    }

    /// Returns a signal that tasks can wait for.
    #[must_use]
    pub fn signal(&self) -> DrainSignal {
        DrainSignal(self.0.subscribe())
    }

    /// Begins to drain, unless the server drains or has ended already. Calls `log` before that,
    /// since the process may end at any time after tasks see the new phase.
    pub fn drain(&self, log: impl FnOnce()) {
        self.0.send_if_modified(|phase| {
            let is_serving = *phase == Phase::Serving;
            if is_serving {
                log();
                *phase = Phase::Draining;
            }
            is_serving
        });
    }

    /// Waits until the server drains, gives work in progress the time `limit` to finish, and then
    /// ends the server.
    pub async fn end_after(&self, limit: Duration) {
        self.signal().draining().await;
        sleep(limit).await;
        self.0.send_replace(Phase::Ended);
    }

    /// Returns whether the server drains or has ended.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.0.borrow() != Phase::Serving
    }
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self::new()
    }
}

/// Lets tasks wait until a server drains or ends.
#[derive(Clone, Debug)]
pub struct DrainSignal(watch::Receiver<Phase>);

impl DrainSignal {
    /// Waits until the server drains or has ended.
    pub async fn draining(&self) {
        self.reached(Phase::Draining).await;
    }

    /// Waits until the server abandons work in progress.
    pub async fn ended(&self) {
        self.reached(Phase::Ended).await;
    }

    async fn reached(&self, phase: Phase) {
        // An error means that the server was dropped: it has reached every phase.
        let _ = self.0.clone().wait_for(|now| *now >= phase).await;
    }
}

/// A handle that stops a server, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    pub(crate) lifecycle: Lifecycle,
    pub(crate) log: fn(),
}

impl Stopper {
    /// Makes the server drain: no new work begins, and work in progress may finish within the time
    /// that the options of the server set. Returns at once.
    pub fn stop(&self) {
        self.lifecycle.drain(self.log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn is_ready(future: impl Future) -> bool {
        matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
    }

    #[test]
    fn a_server_drains_once_and_logs_it_before_tasks_see_it() {
        let (lifecycle, logged) = (Lifecycle::new(), Cell::new(0));
        let signal = lifecycle.signal();
        assert!(!is_ready(signal.draining()) && !lifecycle.is_draining());
        for _ in 0..2 {
            lifecycle.drain(|| logged.set(logged.get() + 1));
        }
        assert_eq!(logged.get(), 1);
        assert!(is_ready(signal.draining()) && lifecycle.is_draining());
        assert!(!is_ready(signal.ended()));
    }

    #[test]
    fn tasks_of_a_server_that_was_dropped_end() {
        let signal = Lifecycle::new().signal();
        assert!(is_ready(signal.ended()));
    }
}
