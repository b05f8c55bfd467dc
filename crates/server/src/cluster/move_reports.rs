//! The ends of transfers, for the membership.

use std::sync::OnceLock;

/// The end of a transfer, for the membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveReport {
    /// The items are at the target, and the slots are sealed.
    Finished {
        /// The number of the transfer.
        transfer: u64,
    },
    /// The transfer has failed, and the slots are served on.
    Failed {
        /// The number of the transfer.
        transfer: u64,
    },
}

/// Receives the ends of transfers.
#[derive(Default)]
pub(super) struct Reports(OnceLock<Box<dyn Fn(MoveReport) + Send + Sync>>);

impl Reports {
    /// Sets what receives the ends of transfers, once.
    pub(super) fn send_to(&self, receive: impl Fn(MoveReport) + Send + Sync + 'static) {
        // A node has one membership.
        let _ = self.0.set(Box::new(receive));
    }

    /// Passes the end of a transfer on.
    pub(super) fn send(&self, report: MoveReport) {
        if let Some(receive) = self.0.get() {
            receive(report);
        }
    }
}
