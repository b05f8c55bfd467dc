//! Shutdown and reload on signals.

use crate::outcome::Failure;
use crate::process::{Request, end_at_once};
use nuthatch_rpc::Stopper as StoreStopper;
use nuthatch_server::Stopper;
use std::time::Duration;
use tracing::{error, info};

/// The servers that a signal stops.
pub(crate) struct Shutdown {
    pub(crate) cache: Stopper,
    pub(crate) store: Option<StoreStopper>,
    /// The maximum time for requests in progress to finish.
    pub(crate) drain_time: Duration,
}

impl Shutdown {
    /// Handles a request: reloads, drains, or ends at once.
    pub(crate) fn handle(&self, request: Request, reload: impl FnOnce() -> Result<(), Failure>) {
        match request {
            Request::Reload => match reload() {
                Ok(()) => info!(target: "nuthatch::server", "reloaded"),
                Err(Failure::Usage(problem) | Failure::Error(problem)) => {
                    let text = "reload failed; the previous settings stay in use";
                    error!(target: "nuthatch::server", %problem, "{text}");
                }
                Err(Failure::ClosedPipe) => {}
            },
            Request::StopAtOnce => self.end_at_once(),
            Request::Stop => {
                self.cache.drain(self.drain_time);
                if let Some(store) = &self.store {
                    store.stop();
                }
            }
        }
    }

    fn end_at_once(&self) {
        self.cache.stop();
        if self.store.is_some() {
            // Dropping the store server would wait for its calls.
            end_at_once();
        }
    }
}
