//! Sends the items of slots to the node that becomes their owner, while this node serves them.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the thread that moves slots, one transfer at a time |
//! | `transfer.rs` | the steps of a transfer |
//! | `batches.rs` | the frames of a transfer, at a limited rate |
//! | `connection.rs` | a connection to another node |

mod batches;
mod connection;
mod transfer;

pub use connection::NodeAccess;

use super::Cluster;
use super::move_reports::MoveReport;
use super::transitions::Outgoing;
use crate::compression::Compression;
use crate::log;
use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use transfer::{Stopped, Transfer};

/// The pause after a transfer that failed: the next one would fail as well.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The thread that moves slots. Dropping it ends the thread.
pub(crate) struct Mover {
    cluster: Arc<Cluster>,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started, or if no session of the cache is free.
    pub(crate) fn start(cluster: Arc<Cluster>, compression: Arc<Compression>) -> io::Result<Self> {
        let (opened, is_opened) = mpsc::channel();
        let shared = Arc::clone(&cluster);
        let thread = thread::Builder::new().name("nuthatch-moves".into()).spawn(move || {
            match shared.cache.session() {
                Ok(session) => {
                    let _ = opened.send(Ok(()));
                    let mut transfer = Transfer::new(&shared, &compression, session);
                    shared.move_slots(&mut transfer);
                }
                Err(error) => {
                    let _ = opened.send(Err(io::Error::other(error)));
                }
            }
        })?;
        let mover = Self { cluster, thread: Some(thread) };
        is_opened.recv().map_err(|_| io::Error::other("a thread did not start"))??;
        Ok(mover)
    }
}

impl fmt::Debug for Mover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mover").finish_non_exhaustive()
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.cluster.transitions().is_stopping = true;
        self.cluster.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic has stopped the program already: see `Running::wait`.
            let _ = thread.join();
        }
    }
}

impl Cluster {
    /// Executes one transfer after the other, until the server stops.
    fn move_slots(&self, transfer: &mut Transfer<'_>) {
        while let Some(outgoing) = self.next_transfer() {
            let number = outgoing.transfer;
            let start = Instant::now();
            self.moves.begin(&outgoing.slots);
            let ended = transfer.run(&outgoing);
            let sent = self.moves.end(ended.is_ok());
            match ended {
                Ok(()) => {
                    log::slots_moved(outgoing.target, outgoing.slots.len(), sent, start.elapsed());
                    self.reports.send(MoveReport::Finished { transfer: number });
                }
                Err(Stopped::Cancelled) => {}
                Err(Stopped::Failed(problem)) => {
                    log::move_failed(outgoing.target, outgoing.slots.len(), &problem);
                    self.resume(number);
                    // Until then the membership begins no other transfer.
                    self.pause(number, Instant::now() + RETRY_PAUSE);
                    self.reports.send(MoveReport::Failed { transfer: number });
                }
            }
        }
    }

    /// Waits until a transfer has to begin. Returns `None` when the server stops.
    fn next_transfer(&self) -> Option<Outgoing> {
        let mut transitions = self.transitions();
        loop {
            if transitions.is_stopping {
                return None;
            }
            if let Some(outgoing) = transitions.outgoing.as_mut().filter(|next| !next.is_begun) {
                outgoing.is_begun = true;
                return Some(outgoing.clone());
            }
            transitions = self.changed.wait(transitions).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Serves the slots of a transfer again that has failed.
    fn resume(&self, transfer: u64) {
        let mut transitions = self.transitions();
        let Some(outgoing) = &mut transitions.outgoing else { return };
        if outgoing.transfer == transfer {
            outgoing.is_sealed = false;
            let slots = outgoing.slots.clone();
            self.serve(&mut transitions, &slots);
            self.moving.remove(&slots);
        }
    }

    /// Waits until this time, or until a transfer is not wanted any more. Returns whether it still
    /// is.
    fn pause(&self, transfer: u64, until: Instant) -> bool {
        let mut transitions = self.transitions();
        loop {
            let is_it = |outgoing: &Outgoing| outgoing.transfer == transfer;
            if transitions.is_stopping || !transitions.outgoing.as_ref().is_some_and(is_it) {
                return false;
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else { return true };
            let wait = self.changed.wait_timeout(transitions, left);
            transitions = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
