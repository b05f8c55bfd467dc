//! Sends the items of slots to the node that becomes their owner, while this node serves them.
//!
//! | file | content |
//! |---|---|
//! | `mod.rs` | the thread that moves slots, one transfer at a time |
//! | `transfer.rs` | the steps of a transfer |
//! | `sender.rs` | the items of slots, in memory and on disk, and changed keys |
//! | `stopped.rs` | why a transfer has ended early |
//! | `batches.rs` | the frames of a transfer, at a limited rate |

mod batches;
mod sender;
mod stopped;
mod transfer;

use super::Cluster;
use super::move_reports::MoveReport;
use super::slot_thread::SlotThread;
use super::transitions::Outgoing;
use crate::compression::Compression;
use crate::log;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use stopped::Stopped;
use transfer::Transfer;

/// The pause after a transfer that failed: the next one would fail as well.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

impl Cluster {
    /// Starts the thread that moves slots.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started, or if no session of the cache is free.
    pub(crate) fn start_moving(
        cluster: Arc<Self>,
        compression: Arc<Compression>,
    ) -> io::Result<SlotThread> {
        SlotThread::start(cluster, "nuthatch-moves", move |cluster, session| {
            cluster.move_slots(&mut Transfer::new(cluster, &compression, session));
        })
    }

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
        let Some(outgoing) = transitions.wanted(transfer) else { return };
        outgoing.is_sealed = false;
        let slots = outgoing.slots.clone();
        self.serve(&mut transitions, &slots, &self.map());
        self.moving.remove(&slots);
    }

    /// Waits until this time, or until a transfer is not wanted any more. Returns whether it still
    /// is.
    fn pause(&self, transfer: u64, until: Instant) -> bool {
        let mut transitions = self.transitions();
        loop {
            if transitions.is_stopping || transitions.wanted(transfer).is_none() {
                return false;
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else { return true };
            let wait = self.changed.wait_timeout(transitions, left);
            transitions = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
