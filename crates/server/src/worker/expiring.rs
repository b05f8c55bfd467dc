//! Removal of expired items by the event loop, a bounded step in an iteration.

use super::Worker;
use std::time::Duration;

/// Items that a step examines, which takes a fraction of a millisecond.
const ITEMS_PER_STEP: usize = 1000;

/// Milliseconds between steps while many items have expired, and otherwise.
const BUSY_PERIOD_MS: u64 = 5;
const PERIOD_MS: u64 = 100;

impl Worker<'_> {
    /// Returns how long the event loop may wait before expired items are removed; `None` if no
    /// item expires.
    pub(super) fn expiry_wait(&self) -> Option<Duration> {
        let left_ms = self.expires_at_ms.saturating_sub(self.clock.now_ms()).max(1);
        self.session.has_expiring().then(|| Duration::from_millis(left_ms))
    }

    /// Removes expired items when a step is due.
    pub(super) fn expire(&mut self) {
        let now_ms = self.clock.now_ms();
        if now_ms < self.expires_at_ms || !self.session.has_expiring() {
            return;
        }
        let is_busy = self.session.guard().expire_step(ITEMS_PER_STEP);
        self.expires_at_ms = now_ms + if is_busy { BUSY_PERIOD_MS } else { PERIOD_MS };
    }
}
