//! Waits until the set of nodes is stable.

use crate::boot_clock::BootTime;
use std::time::Duration;

/// Changes that follow each other delay a plan at most for this multiple of the pause.
const MAX_PAUSES: u32 = 4;

/// When a plan may be executed after nodes have joined or left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settle {
    pause: Duration,
    /// The first and the last change since the set was stable.
    changes: Option<(BootTime, BootTime)>,
}

impl Settle {
    pub(super) fn new(pause: Duration) -> Self {
        Self { pause, changes: None }
    }

    /// Notes that the set of nodes has changed.
    pub(super) fn note_change(&mut self, now: BootTime) {
        let first = self.changes.map_or(now, |(first, _)| first);
        self.changes = Some((first, now));
    }

    /// Returns when the set counts as stable; `None` if it does already.
    pub(super) fn stable_at(&self) -> Option<BootTime> {
        let (first, last) = self.changes?;
        Some(last.plus(self.pause).min(first.plus(self.pause * MAX_PAUSES)))
    }

    /// Returns whether the set is stable.
    pub(super) fn is_stable(&mut self, now: BootTime) -> bool {
        if self.stable_at().is_some_and(|at| at <= now) {
            self.changes = None;
        }
        self.changes.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_changes_delay_a_plan_for_a_limited_time() {
        let at = |ms| BootTime::default().plus(Duration::from_millis(ms));
        let mut settle = Settle::new(Duration::from_millis(100));
        assert!(settle.is_stable(at(0)));
        settle.note_change(at(0));
        settle.note_change(at(50));
        assert!(!settle.is_stable(at(149)));
        assert!(settle.is_stable(at(150)));
        (0..8).for_each(|number| settle.note_change(at(1000 + 50 * number)));
        assert_eq!(settle.stable_at(), Some(at(1400)));
    }
}
