//! When connections were last heard of, to the second, and when to look for those that are silent.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How often connections are looked through while silent ones are ended.
const EVERY_S: u64 = 1;

/// A worker's time, read once a turn.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    now_s: u64,
    looked_s: u64,
    due: bool,
}

impl Idle {
    /// How long a turn may wait for events: for ever while nobody is ended for being silent.
    pub(crate) fn timeout(timeout_s: Option<u64>) -> Option<Duration> {
        timeout_s.map(|_| Duration::from_secs(EVERY_S))
    }

    /// Reads the time.
    pub(crate) fn look(&mut self) {
        // The coarse clock costs next to nothing, and no one can set it back.
        self.now_s = clock_gettime(ClockId::MonotonicCoarse).tv_sec.unsigned_abs();
        self.due = self.now_s >= self.looked_s + EVERY_S;
        if self.due {
            self.looked_s = self.now_s;
        }
    }

    /// Seconds, as this turn began.
    #[inline]
    pub(crate) fn now_s(&self) -> u64 {
        self.now_s
    }

    /// Whether it is time to look for silent connections.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }
}
