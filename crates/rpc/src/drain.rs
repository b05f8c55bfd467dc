//! How a server stops: first nothing new begins, then what goes on ends.

use tokio::sync::watch;

/// How far a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// What is under way may go on for a while.
    Draining,
    /// Nothing goes on.
    Ended,
}

/// Tells how far the server is.
#[derive(Clone, Debug)]
pub(crate) struct Drain(watch::Receiver<Phase>);

pub(crate) fn channel() -> (watch::Sender<Phase>, Drain) {
    let (sender, receiver) = watch::channel(Phase::Serving);
    (sender, Drain(receiver))
}

impl Drain {
    /// Waits until the server was told to stop.
    pub(crate) async fn begun(self) {
        self.reached(Phase::Draining).await;
    }

    /// Waits until nothing may go on any more.
    pub(crate) async fn ended(self) {
        self.reached(Phase::Ended).await;
    }

    async fn reached(mut self, phase: Phase) {
        // A server that is gone has reached it.
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}
