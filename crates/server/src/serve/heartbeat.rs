//! Detects worker threads that do not respond, for the watchdog of a service manager.

use crate::worker::Common;
use std::sync::{Arc, Weak};

/// Checks whether the worker threads of a server respond.
#[derive(Debug)]
pub struct Heartbeat {
    common: Weak<Common>,
    /// The number of iterations of each event loop at the last check.
    seen: Vec<u64>,
}

impl Heartbeat {
    pub(super) fn new(common: &Arc<Common>) -> Self {
        Self { common: Arc::downgrade(common), seen: Vec::new() }
    }

    /// Returns whether each worker thread has completed an iteration of its event loop since the
    /// last check, or since the server started. Wakes all of them for the next check, so that idle
    /// ones complete one, too. Returns true once the server has ended.
    pub fn check(&mut self) -> bool {
        let Some(common) = self.common.upgrade() else { return true };
        let iterations = common.server.iterations().into_iter();
        let counts: Vec<u64> = iterations.map(|totals| totals.times.iter().sum()).collect();
        let is_alive = counts.iter().zip(&self.seen).all(|(now, before)| now > before);
        if is_alive {
            self.seen = counts;
        }
        common.wake();
        is_alive
    }
}
