//! Shutdown and reload on signals.

use super::cluster::ClusterDrain;
use crate::outcome::Failure;
use crate::process::{Request, end_at_once};
use nuthatch_rpc::Stopper as StoreStopper;
use nuthatch_server::Stopper;
use std::thread;
use std::time::{Duration, Instant};
use tracing::{error, info};

/// Maximum time in which the servers end after a second signal.
const MAX_END_TIME: Duration = Duration::from_secs(1);

/// The servers that a signal stops.
#[derive(Clone)]
pub(crate) struct Shutdown {
    pub(crate) cache: Stopper,
    pub(crate) store: Option<StoreStopper>,
    /// The maximum time for requests in progress to finish.
    pub(crate) drain_time: Duration,
    /// Moves the slots of a node of a cluster to others first.
    pub(crate) cluster: Option<ClusterDrain>,
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
            Request::Stop => self.stop(),
        }
    }

    fn stop(&self) {
        let Self { cache, store, drain_time, cluster } = self.clone();
        let stop = move || {
            cache.drain(drain_time);
            if let Some(store) = &store {
                store.stop();
            }
        };
        let Some(cluster) = cluster else { return stop() };
        // The next signal is handled meanwhile.
        let (stop_later, thread) = (stop.clone(), thread::Builder::new());
        let drain = move || {
            cluster.run();
            stop_later();
        };
        if thread.name("nuthatch-drain".to_owned()).spawn(drain).is_err() {
            stop();
        }
    }

    fn end_at_once(&self) {
        self.cache.stop();
        if self.store.is_some() {
            // Dropping the store server would wait for its calls.
            end_at_once();
        }
        // The server usually ends before. It waits for a write that the disk does not complete.
        let end = || {
            let start = Instant::now();
            while start.elapsed() < MAX_END_TIME {
                thread::park_timeout(MAX_END_TIME);
            }
            end_at_once()
        };
        if thread::Builder::new().name("nuthatch-end".to_owned()).spawn(end).is_err() {
            end_at_once();
        }
    }
}
